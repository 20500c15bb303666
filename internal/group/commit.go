package group

import (
	"unicode/utf16"

	"tidemark/internal/wire"
)

// CommitRequest commits offsets. Generation is negative of a consumer that is not a member, as one with partitions
// of its own choice is not.
type CommitRequest struct {
	Group       string
	MemberID    string
	InstanceID  *string
	Generation  int32 // or the member epoch
	Version     int16 // of the request
	RetentionMs int64 // -1: that of the broker
	Topics      []CommitTopic
}

// CommitTopic are offsets for one topic.
type CommitTopic struct {
	Topic      string
	TopicID    wire.UUID
	Partitions []CommitPartition
}

// CommitPartition is an offset for one partition.
type CommitPartition struct {
	Partition   int32
	Offset      int64
	LeaderEpoch int32   // -1: not known
	Metadata    *string // nil: none
	CommitMs    int64   // negative: now
}

// committer is who commits.
type committer struct {
	memberID      string
	instanceID    *string
	generation    int32
	transactional bool
	version       int16
}

// commitCheck tells whether an offset of a partition may be committed.
type commitCheck func(topicID wire.UUID, topic string, partition int32) error

// versionWithGroupErrors is the version of OffsetCommit from which on errors of consumer groups may be told.
const versionWithGroupErrors = 9

// Commit commits offsets. There is one error for each partition, in the order of the request.
//
// Errors: ErrUnknownMember, ErrFencedInstance, ErrIllegalGeneration, ErrRebalance, ErrNotFound. Of each:
// ErrMetadataTooLarge.
func (m *Machine) Commit(r *CommitRequest) (each []error, w *Write, err error) {
	g := m.groups[r.Group]
	c := &committer{r.MemberID, r.InstanceID, r.Generation, false, r.Version}
	switch {
	case g == nil && r.Generation >= 0 && r.Version >= versionWithGroupErrors:
		return nil, nil, notFound(r.Group)
	case g == nil && r.Generation >= 0:
		return nil, nil, ErrIllegalGeneration
	case g != nil:
		check, err := g.checkCommit(c)
		if err == nil {
			err = m.checkPartitions(check, r)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if k, ok := g.(*classic); ok {
		k.committed(r.MemberID)
	}
	each, w = m.commit(r, noProducer)
	return each, w, nil
}

// noProducer stands for no transaction.
const noProducer = -1

// CommitTransactional commits offsets as a part of a producer's transaction: they count from its commit marker on.
// RetentionMs, Version and topic ids are not used.
//
// Errors: ErrUnknownMember, ErrFencedInstance, ErrIllegalGeneration. Of each: ErrMetadataTooLarge.
func (m *Machine) CommitTransactional(r *CommitRequest, producer int64) (each []error, w *Write, err error) {
	g := m.groups[r.Group]
	switch {
	case g == nil && r.Generation >= 0:
		return nil, nil, ErrIllegalGeneration
	case g != nil:
		check, err := g.checkCommit(&committer{r.MemberID, r.InstanceID, r.Generation, true, r.Version})
		if err == nil {
			err = m.checkPartitions(check, r)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	each, w = m.commit(r, producer)
	return each, w, nil
}

// checkPartitions checks each partition of a commit. The id of a topic that is told by its name is that of now.
func (m *Machine) checkPartitions(check commitCheck, r *CommitRequest) error {
	if check == nil {
		return nil
	}
	for _, t := range r.Topics {
		id := t.TopicID
		if topic := m.o.Image().Topic(t.Topic); topic != nil && id == (wire.UUID{}) {
			id = topic.ID
		}
		for _, p := range t.Partitions {
			if err := check(id, t.Topic, p.Partition); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptOffset is an offset on its way into the table.
type keptOffset struct {
	topic     string
	partition int32
	offset    Offset
}

func (m *Machine) commit(r *CommitRequest, producer int64) (each []error, w *Write) {
	now, longest := m.host.NowMs(), int(m.o.Config().MetadataMaxBytes)
	n := 0
	for _, t := range r.Topics {
		n += len(t.Partitions)
	}
	each = make([]error, 0, n)
	records := make([]Record, 0, n)
	kept := make([]keptOffset, 0, n)
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.Metadata != nil && utf16Len(*p.Metadata) > longest {
				each = append(each, ErrMetadataTooLarge)
				continue
			}
			o := p.offset(now)
			if producer == noProducer {
				o.TopicID = t.TopicID
				if r.RetentionMs != -1 {
					o.ExpireMs = now + r.RetentionMs
				}
			}
			each = append(each, nil)
			records = append(records, offsetRecord(r.Group, t.Topic, p.Partition, o))
			kept = append(kept, keptOffset{t.Topic, p.Partition, o})
		}
	}
	if len(records) == 0 {
		return each, nil
	}
	return each, &Write{Records: records, apply: func(base int64) {
		for i, k := range kept {
			k.offset.record = base + int64(i)
			m.keep(r.Group, k.topic, k.partition, k.offset, producer)
		}
	}}
}

func (p *CommitPartition) offset(nowMs int64) Offset {
	o := Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, CommitMs: nowMs, ExpireMs: noExpiry}
	if p.CommitMs >= 0 {
		o.CommitMs = p.CommitMs
	}
	if o.LeaderEpoch < 0 {
		o.LeaderEpoch = unknownLeaderEpoch
	}
	if p.Metadata != nil {
		o.Metadata = *p.Metadata
	}
	return o
}

// utf16Len is the length of a Java string.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// checkCommit tells whether a member, or a consumer without membership, may commit now.
//
// Kafka: ClassicGroup.validateOffsetCommit.
func (c *classic) checkCommit(by *committer) (each commitCheck, err error) {
	if by.generation < 0 && c.state == Empty {
		return nil, nil
	}
	if by.generation >= 0 || by.memberID != "" || by.instanceID != nil {
		if err := c.checkMember(by.memberID, by.instanceID); err != nil {
			return nil, err
		}
		if by.generation != c.generation {
			return nil, ErrIllegalGeneration
		}
	} else if !by.transactional {
		return nil, ErrUnknownMember
	}
	if !by.transactional && c.state == CompletingRebalance {
		return nil, ErrRebalance
	}
	return nil, nil
}

// checkFetch: anybody may ask for the offsets of a classic group.
func (c *classic) checkFetch(*string, int32) error { return nil }

// committed takes a commit as a sign of life.
func (c *classic) committed(memberID string) {
	if one := c.byID[memberID]; one != nil && (c.state == Stable || c.state == PreparingRebalance) {
		c.expectHeartbeat(one, one.sessionTimeoutMs)
	}
}
