package group

import "tidemark/internal/wire"

// subscription is what a consumer of the classic protocol tells:
//
//	int16 version | [] STRING topic | BYTES? user data | v1: [] { STRING topic, [] int32 partition } that it has
//	| v2: int32 generation | v3: STRING? rack
type subscription struct {
	topics []string
	has    []topicPartitionsByName
	rack   *string
}

// topicPartitionsByName are partitions of a topic.
type topicPartitionsByName struct {
	topic      string
	partitions []int32
}

const (
	smallestTopic           = 2
	smallestTopicPartitions = 2 + 4
	ownedInSubscription     = 1
	generationInSubscript   = 2
	rackInSubscription      = 3
)

// readSubscription reads a subscription; not ok when it is none. With topicsOnly what later versions added is left.
func readSubscription(b []byte, topicsOnly bool) (s subscription, ok bool) {
	r := wire.NewReader(b)
	version := r.Int16()
	n := r.ArrayLen(smallestTopic)
	if version < 0 || n < 0 {
		return s, false
	}
	for range n {
		s.topics = append(s.topics, r.Str())
	}
	r.Bytes()
	if !topicsOnly && version >= ownedInSubscription {
		s.has = readTopicPartitions(r)
		if version >= generationInSubscript {
			r.Int32()
		}
		if version >= rackInSubscription {
			s.rack = r.NullableString()
		}
	}
	return s, r.Err() == nil
}

func readTopicPartitions(r *wire.Reader) (all []topicPartitionsByName) {
	for range max(0, r.ArrayLen(smallestTopicPartitions)) {
		one := topicPartitionsByName{topic: r.Str()}
		for range max(0, r.ArrayLen(partitionBytes)) {
			one.partitions = append(one.partitions, r.Int32())
		}
		all = append(all, one)
	}
	return all
}

// noteSubscriptions reads the topics of consumers out of their metadata; see [classic.subscribes].
//
// Kafka: ClassicGroup.computeSubscribedTopics.
func (c *classic) noteSubscriptions() {
	c.subscribed, c.subscribedKnown = nil, false
	if c.protocolType != ConsumerProtocolType {
		return
	}
	if len(c.members) > 0 && c.protocol == nil {
		return
	}
	topics := map[string]bool{}
	for _, one := range c.members {
		s, ok := readSubscription(one.metadata(c.protocol), true)
		if !ok {
			c.m.log.Warn("subscription of a member cannot be read", "group", c.id, "member", one.id)
			return
		}
		for _, t := range s.topics {
			topics[t] = true
		}
	}
	c.subscribed, c.subscribedKnown = topics, true
}

// subscribes tells whether a member may be subscribed to a topic: of consumers whose topics are not known, anyone
// may be.
func (c *classic) subscribes(topic string) bool {
	if c.subscribedKnown {
		return c.subscribed[topic]
	}
	return c.protocolType == ConsumerProtocolType
}

// readAssignment reads the assignment of a consumer of the classic protocol; not ok when it is none, or has user data
// that another protocol could not keep:
//
//	int16 version | [] { STRING topic, [] int32 partition } | BYTES? user data
func readAssignment(b []byte) (all []topicPartitionsByName, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	r := wire.NewReader(b)
	version := r.Int16()
	all = readTopicPartitions(r)
	userData := r.Bytes()
	return all, r.Err() == nil && version >= 0 && len(userData) == 0
}

// newestAssignment is the last version of assignments; they are all alike.
const newestAssignment = 3

// writeAssignment makes an assignment in the version of a subscription.
func writeAssignment(all []topicPartitionsByName, subscription []byte) []byte {
	version := wire.NewReader(subscription).Int16()
	b := wire.AppendInt16(nil, min(version, newestAssignment))
	b = wire.AppendArrayLen(b, len(all))
	for _, t := range all {
		b = wire.AppendString(b, t.topic)
		b = wire.AppendArrayLen(b, len(t.partitions))
		for _, p := range t.partitions {
			b = wire.AppendInt32(b, p)
		}
	}
	return wire.AppendBytes(b, nil)
}
