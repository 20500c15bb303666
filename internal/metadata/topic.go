package metadata

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Topic is a topic with its partitions; read only.
type Topic struct {
	Name string
	ID   UUID

	partitions tree[int32, *Partition]
}

func newTopic(name string, id UUID) *Topic {
	return &Topic{Name: name, ID: id, partitions: newTree[int32, *Partition](cmp.Compare[int32])}
}

// Partition returns a partition, or nil.
func (t *Topic) Partition(id int32) *Partition {
	p, _ := t.partitions.get(id)
	return p
}

// Partitions yields all partitions, by number.
func (t *Topic) Partitions() iter.Seq2[int32, *Partition] { return t.partitions.all() }

// NumPartitions is the number of partitions.
func (t *Topic) NumPartitions() int { return t.partitions.len() }

func (t *Topic) with(id int32, p *Partition) *Topic {
	next := *t
	next.partitions = t.partitions.set(id, p)
	return &next
}

// Partition is the state of one partition; read only.
type Partition struct {
	Replicas            []int32 // in order of preference
	Directories         []UUID  // one for each replica, in the same order
	ISR                 []int32
	RemovingReplicas    []int32
	AddingReplicas      []int32
	ELR                 []int32 // eligible leader replicas (KIP-966)
	LastKnownELR        []int32
	Leader              int32 // NoLeader when there is none
	LeaderEpoch         int32 // rises with every leader that is set, the same one too
	PartitionEpoch      int32 // rises with every change
	LeaderRecoveryState int8
}

// Directory returns the log directory of a replica, and false when broker has no
// replica of the partition.
func (p *Partition) Directory(broker int32) (UUID, bool) {
	i := slices.Index(p.Replicas, broker)
	if i < 0 || i >= len(p.Directories) {
		return ZeroUUID, false
	}
	return p.Directories[i], true
}

func newPartition(r *PartitionRecord) (*Partition, error) {
	if len(r.Directories) > 0 && len(r.Directories) != len(r.Replicas) {
		return nil, fmt.Errorf("%d directories for %d replicas", len(r.Directories), len(r.Replicas))
	}
	return &Partition{
		Replicas:            r.Replicas,
		Directories:         directoriesOr(r.Directories, len(r.Replicas)),
		ISR:                 r.ISR,
		RemovingReplicas:    r.RemovingReplicas,
		AddingReplicas:      r.AddingReplicas,
		ELR:                 r.EligibleLeaderReplicas,
		LastKnownELR:        r.LastKnownELR,
		Leader:              r.Leader,
		LeaderEpoch:         r.LeaderEpoch,
		PartitionEpoch:      r.PartitionEpoch,
		LeaderRecoveryState: r.LeaderRecoveryState,
	}, nil
}

// directoriesOr fills in the migrating id for every replica when no directories
// were said.
func directoriesOr(dirs []UUID, replicas int) []UUID {
	if len(dirs) > 0 {
		return dirs
	}
	return make([]UUID, replicas)
}

// With returns the partition after a change. The partition epoch rises by one,
// and the leader epoch too when the record sets a leader, even the same one or
// none.
func (p *Partition) With(r *PartitionChangeRecord) (*Partition, error) {
	next := *p
	next.PartitionEpoch++
	next.ISR = valueOr(r.ISR, p.ISR)
	next.Replicas = valueOr(r.Replicas, p.Replicas)
	next.RemovingReplicas = valueOr(r.RemovingReplicas, p.RemovingReplicas)
	next.AddingReplicas = valueOr(r.AddingReplicas, p.AddingReplicas)
	next.ELR = valueOr(r.EligibleLeaderReplicas, p.ELR)
	next.LastKnownELR = valueOr(r.LastKnownELR, p.LastKnownELR)
	if r.Leader != NoLeaderChange {
		next.Leader = r.Leader
		next.LeaderEpoch++
	}
	if r.LeaderRecoveryState != NoRecoveryChange {
		next.LeaderRecoveryState = r.LeaderRecoveryState
	}
	next.Directories = directoriesOr(valueOr(r.Directories, p.Directories), len(next.Replicas))
	if len(next.Directories) != len(next.Replicas) {
		return nil, fmt.Errorf("%d directories for %d replicas", len(next.Directories), len(next.Replicas))
	}
	return &next, nil
}

func valueOr[T any](v, otherwise []T) []T {
	if v == nil {
		return otherwise
	}
	return v
}

// clearELR returns the partition without eligible and last known leaders, or
// the same one when it has none.
func (p *Partition) clearELR() *Partition {
	if len(p.ELR) == 0 && len(p.LastKnownELR) == 0 {
		return p
	}
	next := *p
	next.ELR, next.LastKnownELR = nil, nil
	next.PartitionEpoch++
	return &next
}

// Record returns the record that creates the partition as it is, in the version
// of that level of metadata.version.
func (p *Partition) Record(topic UUID, id int32, level int16) Record {
	r := &PartitionRecord{
		PartitionID:         id,
		TopicID:             topic,
		Replicas:            p.Replicas,
		ISR:                 p.ISR,
		RemovingReplicas:    p.RemovingReplicas,
		AddingReplicas:      p.AddingReplicas,
		Leader:              p.Leader,
		LeaderRecoveryState: p.LeaderRecoveryState,
		LeaderEpoch:         p.LeaderEpoch,
		PartitionEpoch:      p.PartitionEpoch,
	}
	version := PartitionVersion(level)
	if version >= 1 {
		r.Directories = p.Directories
	}
	if version >= 2 {
		r.EligibleLeaderReplicas = nilIfEmpty(p.ELR)
		r.LastKnownELR = nilIfEmpty(p.LastKnownELR)
	}
	return Record{Version: version, Body: r}
}

func nilIfEmpty(v []int32) []int32 {
	if len(v) == 0 {
		return nil
	}
	return v
}
