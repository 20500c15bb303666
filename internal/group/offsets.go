package group

import "tidemark/internal/wire"

// offsetTable holds offsets by group, topic and partition.
type offsetTable map[string]map[string]map[int32]Offset

func (t offsetTable) get(group, topic string, partition int32) (o Offset, ok bool) {
	o, ok = t[group][topic][partition]
	return o, ok
}

func (t offsetTable) put(group, topic string, partition int32, o Offset) {
	topics := t[group]
	if topics == nil {
		topics = map[string]map[int32]Offset{}
		t[group] = topics
	}
	partitions := topics[topic]
	if partitions == nil {
		partitions = map[int32]Offset{}
		topics[topic] = partitions
	}
	partitions[partition] = o
}

func (t offsetTable) remove(group, topic string, partition int32) {
	topics := t[group]
	partitions := topics[topic]
	delete(partitions, partition)
	if partitions != nil && len(partitions) == 0 {
		delete(topics, topic)
		if len(topics) == 0 {
			delete(t, group)
		}
	}
}

// pendingOffsets are the offsets of open transactions.
type pendingOffsets struct {
	byProducer map[int64]offsetTable
	// open counts the transactions that commit an offset.
	open map[string]map[string]map[int32]int
}

func newPendingOffsets() pendingOffsets {
	return pendingOffsets{byProducer: map[int64]offsetTable{}, open: map[string]map[string]map[int32]int{}}
}

func (p *pendingOffsets) has(group, topic string, partition int32) bool {
	return p.open[group][topic][partition] > 0
}

func (p *pendingOffsets) put(producer int64, group, topic string, partition int32, o Offset) {
	table := p.byProducer[producer]
	if table == nil {
		table = offsetTable{}
		p.byProducer[producer] = table
	}
	if _, again := table.get(group, topic, partition); !again {
		p.count(group, topic, partition, 1)
	}
	table.put(group, topic, partition, o)
}

func (p *pendingOffsets) count(group, topic string, partition int32, n int) {
	topics := p.open[group]
	if topics == nil {
		topics = map[string]map[int32]int{}
		p.open[group] = topics
	}
	partitions := topics[topic]
	if partitions == nil {
		partitions = map[int32]int{}
		topics[topic] = partitions
	}
	if partitions[partition] += n; partitions[partition] > 0 {
		return
	}
	delete(partitions, partition)
	if len(partitions) == 0 {
		delete(topics, topic)
	}
	if len(topics) == 0 {
		delete(p.open, group)
	}
}

// remove forgets an offset in all transactions.
func (p *pendingOffsets) remove(group, topic string, partition int32) {
	if !p.has(group, topic, partition) {
		return
	}
	for _, table := range p.byProducer {
		if _, ok := table.get(group, topic, partition); ok {
			table.remove(group, topic, partition)
			p.count(group, topic, partition, -1)
		}
	}
}

// take ends a transaction and returns its offsets.
func (p *pendingOffsets) take(producer int64) offsetTable {
	table := p.byProducer[producer]
	delete(p.byProducer, producer)
	for group, topics := range table {
		for topic, partitions := range topics {
			for partition := range partitions {
				p.count(group, topic, partition, -1)
			}
		}
	}
	return table
}

func (m *Machine) replayOffset(key Key, r Replayed) error {
	if r.Value == nil {
		m.forget(key.Group, key.Topic, key.Partition)
		return nil
	}
	o, err := DecodeOffset(r.Value)
	if err != nil {
		return err
	}
	o.record = r.Offset
	m.keep(key.Group, key.Topic, key.Partition, o, r.ProducerID)
	return nil
}

// keep takes on an offset; one of a transaction is pending until its end. A group that is not known becomes a simple
// one: offsets without members.
func (m *Machine) keep(group, topic string, partition int32, o Offset, producer int64) {
	if m.groups[group] == nil {
		m.groups[group] = newClassic(m, group)
	}
	if producer >= 0 {
		m.pending.put(producer, group, topic, partition, o)
		return
	}
	m.offsets.put(group, topic, partition, o)
}

// forget takes on the tombstone of an offset.
func (m *Machine) forget(group, topic string, partition int32) {
	m.offsets.remove(group, topic, partition)
	m.pending.remove(group, topic, partition)
}

// ReplayMarker ends the transaction of a producer: with a commit its offsets count, unless a later record has
// overtaken them.
func (m *Machine) ReplayMarker(producer int64, commit bool) {
	table := m.pending.take(producer)
	if !commit {
		return
	}
	for group, topics := range table {
		for topic, partitions := range topics {
			for partition, o := range partitions {
				if now, ok := m.offsets.get(group, topic, partition); !ok || o.record > now.record {
					m.offsets.put(group, topic, partition, o)
				}
			}
		}
	}
}

// TopicPartitions names partitions of a topic.
type TopicPartitions struct {
	Topic      string
	TopicID    wire.UUID // zero: not known
	Partitions []int32
}
