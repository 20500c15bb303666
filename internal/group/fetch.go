package group

import (
	"cmp"
	"maps"
	"slices"

	"tidemark/internal/wire"
)

// FetchedTopic are the offsets of one topic.
type FetchedTopic struct {
	Topic      string
	TopicID    wire.UUID
	Partitions []FetchedPartition
}

// FetchedPartition is the offset of one partition.
type FetchedPartition struct {
	Partition   int32
	Err         error // ErrUnstableOffset
	Offset      int64 // -1: none
	LeaderEpoch int32 // -1: not known
	Metadata    string
}

func noOffset(partition int32, err error) FetchedPartition {
	return FetchedPartition{Partition: partition, Err: err, Offset: -1, LeaderEpoch: unknownLeaderEpoch}
}

// FetchRequest asks for the offsets of a group.
type FetchRequest struct {
	Group       string
	MemberID    *string // nil: not told
	MemberEpoch int32   // -1: not told
	Topics      []TopicPartitions
	All         bool // topics instead of Topics
	Stable      bool // an offset that an open transaction commits is ErrUnstableOffset
}

// Fetch tells offsets. Those of a topic with another id than the one that is asked for do not count. All offsets are
// told by topic and partition.
//
// Errors: ErrUnknownMember, ErrStaleMemberEpoch, ErrIllegalGeneration.
func (m *Machine) Fetch(r *FetchRequest) ([]FetchedTopic, error) {
	if g := m.groups[r.Group]; g != nil {
		if err := g.checkFetch(r.MemberID, r.MemberEpoch); err != nil {
			return nil, err
		}
	}
	if r.All {
		return m.fetchAll(r.Group, r.Stable), nil
	}
	out := make([]FetchedTopic, len(r.Topics))
	for i, t := range r.Topics {
		out[i] = FetchedTopic{Topic: t.Topic, TopicID: t.TopicID}
		for _, p := range t.Partitions {
			out[i].Partitions = append(out[i].Partitions, m.fetch(r.Group, t, p, r.Stable))
		}
	}
	return out, nil
}

func (m *Machine) fetch(group string, t TopicPartitions, partition int32, stable bool) FetchedPartition {
	o, ok := m.offsets.get(group, t.Topic, partition)
	switch {
	case stable && m.pending.has(group, t.Topic, partition):
		return noOffset(partition, ErrUnstableOffset)
	case !ok, otherTopic(o.TopicID, t.TopicID):
		return noOffset(partition, nil)
	}
	return o.fetched(partition)
}

// otherTopic tells whether two ids, if both are known, are of different topics.
func otherTopic(a, b wire.UUID) bool {
	return a != b && a != wire.UUID{} && b != wire.UUID{}
}

func (o Offset) fetched(partition int32) FetchedPartition {
	return FetchedPartition{Partition: partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata}
}

func (m *Machine) fetchAll(group string, stable bool) []FetchedTopic {
	var out []FetchedTopic
	for _, topic := range slices.Sorted(maps.Keys(m.offsets[group])) {
		t := FetchedTopic{Topic: topic}
		for partition, o := range m.offsets[group][topic] {
			if stable && m.pending.has(group, topic, partition) {
				t.Partitions = append(t.Partitions, noOffset(partition, ErrUnstableOffset))
				continue
			}
			t.Partitions = append(t.Partitions, o.fetched(partition))
		}
		slices.SortFunc(t.Partitions, func(a, b FetchedPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		out = append(out, t)
	}
	return out
}
