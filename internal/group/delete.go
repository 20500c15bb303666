package group

import (
	"maps"
	"slices"

	"tidemark/internal/wire"
)

// Delete removes groups with their offsets. There is one error for each, nil where it is gone.
//
// Errors of each: ErrNotFound, ErrNotEmpty.
func (m *Machine) Delete(ids []string) (each []error, w *Write) {
	var records []Record
	each = make([]error, len(ids))
	for i, id := range ids {
		g := m.groups[id]
		if g == nil {
			each[i] = notFound(id)
			continue
		}
		if each[i] = g.checkDelete(); each[i] == nil {
			records = append(records, m.groupTombstones(id, g)...)
		}
	}
	return each, m.erase(records)
}

// erase writes tombstones.
func (m *Machine) erase(records []Record) *Write {
	if len(records) == 0 {
		return nil
	}
	return &Write{Records: records, apply: func(base int64) {
		for i, r := range records {
			if err := m.Replay(Replayed{Offset: base + int64(i), ProducerID: noProducer, Key: r.Key}); err != nil {
				m.log.Error("own tombstone cannot be replayed", "error", err)
			}
		}
	}}
}

// groupTombstones are the records that end a group and all its offsets, those of open transactions too.
func (m *Machine) groupTombstones(id string, g group) []Record {
	var records []Record
	for _, topic := range slices.Sorted(maps.Keys(m.offsets[id])) {
		for _, partition := range slices.Sorted(maps.Keys(m.offsets[id][topic])) {
			records = append(records, Record{Key: offsetKey(id, topic, partition)})
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(m.pending.open[id])) {
		for _, partition := range slices.Sorted(maps.Keys(m.pending.open[id][topic])) {
			if _, ok := m.offsets.get(id, topic, partition); !ok {
				records = append(records, Record{Key: offsetKey(id, topic, partition)})
			}
		}
	}
	return append(records, g.tombstones()...)
}

func (c *classic) checkDelete() error {
	if c.state != Empty {
		return ErrNotEmpty
	}
	return nil
}

// DeleteOffsets removes offsets. There is one error for each partition, in the order of the request.
//
// Errors: ErrNotFound, ErrNotEmpty. Of each: ErrSubscribed.
func (m *Machine) DeleteOffsets(id string, topics []TopicPartitions) (each []error, w *Write, err error) {
	g := m.groups[id]
	if g == nil {
		return nil, nil, notFound(id)
	}
	if err := g.checkOffsetDelete(); err != nil {
		return nil, nil, err
	}
	var records []Record
	for _, t := range topics {
		for _, p := range t.Partitions {
			if g.subscribes(t.Topic) {
				each = append(each, ErrSubscribed)
				continue
			}
			each = append(each, nil)
			if _, ok := m.offsets.get(id, t.Topic, p); ok || m.pending.has(id, t.Topic, p) {
				records = append(records, Record{Key: offsetKey(id, t.Topic, p)})
			}
		}
	}
	return each, m.erase(records), nil
}

func (c *classic) checkOffsetDelete() error {
	if c.state != Empty && c.protocolType != ConsumerProtocolType {
		return ErrNotEmpty
	}
	return nil
}

// DeletedTopic is a topic that is gone.
type DeletedTopic struct {
	Name string
	ID   wire.UUID
}

// TopicsDeleted removes the offsets of topics that are gone, in writes of about batchBytes.
func (m *Machine) TopicsDeleted(topics []DeletedTopic, batchBytes int) []*Write {
	var b batches
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		for _, t := range topics {
			for _, partition := range m.partitionsOf(id, t) {
				b.add(Record{Key: offsetKey(id, t.Name, partition)}, batchBytes)
			}
		}
	}
	return m.eraseAll(b)
}

// partitionsOf are the partitions of a topic for which a group has an offset, in a transaction or not.
func (m *Machine) partitionsOf(id string, t DeletedTopic) []int32 {
	found := map[int32]bool{}
	note := func(table offsetTable) {
		for partition, o := range table[id][t.Name] {
			if !otherTopic(o.TopicID, t.ID) {
				found[partition] = true
			}
		}
	}
	note(m.offsets)
	if len(m.pending.open[id][t.Name]) > 0 {
		for _, table := range m.pending.byProducer {
			note(table)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// batches gathers records in batches of bounded size.
type batches struct {
	full  [][]Record
	last  []Record
	bytes int // of last
}

func (b *batches) add(r Record, batchBytes int) {
	if b.bytes > 0 && b.bytes+len(r.Key) > batchBytes {
		b.full = append(b.full, b.last)
		b.last, b.bytes = nil, 0
	}
	b.last = append(b.last, r)
	b.bytes += len(r.Key)
}

func (m *Machine) eraseAll(b batches) []*Write {
	var writes []*Write
	for _, records := range append(b.full, b.last) {
		if w := m.erase(records); w != nil {
			writes = append(writes, w)
		}
	}
	return writes
}
