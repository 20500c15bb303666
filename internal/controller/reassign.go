package controller

import (
	"errors"
	"slices"

	"tidemark/internal/metadata"
)

// NewReplicas are the replicas that one partition is to have.
type NewReplicas struct {
	Partition int32
	Replicas  []int32 // nil: the reassignment that is going on is taken back
}

// TopicReassignment is the partitions of one topic.
type TopicReassignment struct {
	Topic      string
	Partitions []NewReplicas
}

// AlterReassignments moves partitions to other replicas (KIP-455). Its result is a [PartitionResults].
type AlterReassignments struct {
	Topics []TopicReassignment
	// KeepFactor refuses another number of replicas than there is (KIP-860).
	KeepFactor bool
}

// PartitionResults has the topics and partitions of a command, in its order.
type PartitionResults struct {
	Topics []TopicPartitionsResult
}

// TopicPartitionsResult is one topic of a result.
type TopicPartitionsResult struct {
	Topic      string
	Partitions []PartitionResult
}

// PartitionResult is the outcome for one partition.
type PartitionResult struct {
	Partition int32
	Err       *Error
}

func (c AlterReassignments) decide(d *decider) (any, error) {
	var res PartitionResults
	for _, t := range c.Topics {
		out := TopicPartitionsResult{Topic: t.Topic}
		for _, p := range t.Partitions {
			err := d.reassign(t.Topic, p, c.KeepFactor)
			out.Partitions = append(out.Partitions, PartitionResult{p.Partition, asError(err, ErrUnknownServerError)})
		}
		res.Topics = append(res.Topics, out)
	}
	return res, nil
}

func (d *decider) reassign(topic string, n NewReplicas, keepFactor bool) error {
	t := d.Image.Topic(topic)
	if t == nil {
		return refuse(ErrUnknownTopic, "Unable to find a topic named %s.", topic)
	}
	p := t.Partition(n.Partition)
	if p == nil {
		return refuse(ErrUnknownTopic, "Unable to find partition %s:%d.", topic, n.Partition)
	}
	if n.Replicas == nil {
		return d.cancelReassignment(t, n.Partition, p)
	}
	if err := d.checkReplicas(n.Replicas, 0); err != nil {
		return err
	}
	if had := len(without(union(p.Replicas, p.AddingReplicas), p.RemovingReplicas)); keepFactor && had != len(n.Replicas) {
		return refuse(ErrInvalidReplicationFactor, "The replication factor is changed from %d to %d", had, len(n.Replicas))
	}
	a := &assignment{
		removing: union(without(p.Replicas, n.Replicas), nil), adding: union(without(n.Replicas, p.Replicas), nil),
	}
	a.replicas = slices.Concat(n.Replicas, a.removing)
	d.change(partitionChange{
		topic: t, id: n.Partition, partition: p, acceptable: d.isActive, isr: p.ISR, election: electClean, assignment: a,
	})
	return nil
}

func reassigning(p *metadata.Partition) bool {
	return len(p.AddingReplicas)+len(p.RemovingReplicas) > 0
}

// cancelReassignment takes the replicas out again that were added.
func (d *decider) cancelReassignment(t *metadata.Topic, id int32, p *metadata.Partition) error {
	if !reassigning(p) {
		return &Error{Reason: ErrNoReassignment}
	}
	a := &assignment{replicas: without(p.Replicas, p.AddingReplicas)}
	isr := without(p.ISR, p.AddingReplicas)
	election := electClean
	if d.unclean(t) {
		election = electUnclean
	}
	if len(isr) == 0 && len(a.replicas) > 0 {
		if election == electClean {
			return refuse(ErrInvalidReplicaAssignment, "Unable to revert partition assignment for %s:%d because it would "+
				"require an unclean leader election.", t.Name, id)
		}
		isr = a.replicas[:1]
	}
	d.change(partitionChange{
		topic: t, id: id, partition: p, acceptable: d.isActive, isr: isr, election: election, assignment: a,
	})
	return nil
}

// assignment is the replicas that a partition is to have while, and after, it moves.
type assignment struct {
	replicas, removing, adding []int32
}

// replicas are those that the partition is to have, in order of preference.
func (c *partitionChange) replicas() []int32 {
	if c.assignment != nil {
		return c.assignment.replicas
	}
	return c.partition.Replicas
}

// completeAssignment ends a reassignment whose new replicas are in sync already.
func (c *partitionChange) completeAssignment() {
	a := c.assignment
	if len(a.removing)+len(a.adding) == 0 {
		return
	}
	isr, replicas := without(c.isr, a.removing), without(a.replicas, a.removing)
	if len(isr) == 0 || len(replicas) == 0 || len(without(replicas, isr)) > 0 {
		return
	}
	c.isr, c.assignment = isr, &assignment{replicas: replicas}
}

// bumpEpochOnRemoval raises the leader epoch when a replica goes.
func (c *partitionChange) bumpEpochOnRemoval() {
	if c.record.Leader == metadata.NoLeaderChange && len(without(c.partition.Replicas, c.assignment.replicas)) > 0 {
		c.record.Leader = c.partition.Leader
	}
}

func (c *partitionChange) setAssignment() {
	a, p, r := c.assignment, c.partition, c.record
	if metadata.SupportsDirectories(c.d.level) {
		var dirs []metadata.UUID
		for _, b := range a.replicas {
			dir, ok := p.Directory(b)
			if !ok {
				dir = c.d.defaultDirectory(b)
			}
			dirs = append(dirs, dir)
		}
		if !slices.Equal(dirs, p.Directories) {
			r.Directories = dirs
		}
	}
	if !slices.Equal(a.replicas, p.Replicas) {
		r.Replicas = a.replicas
	}
	if !slices.Equal(a.removing, p.RemovingReplicas) {
		r.RemovingReplicas = notNil(a.removing)
	}
	if !slices.Equal(a.adding, p.AddingReplicas) {
		r.AddingReplicas = notNil(a.adding)
	}
}

// ElectLeaders has partitions led by the first of their replicas, or by anyone (KIP-460). Its result is a
// [PartitionResults].
type ElectLeaders struct {
	Type   int8 // 0 the preferred one, 1 anyone; others are refused
	Topics []PartitionsOf
	All    bool // every partition, Topics or not; those that need no election are left out of the result
}

// PartitionsOf are partitions of a topic.
type PartitionsOf struct {
	Topic      string
	Partitions []int32
}

func (c ElectLeaders) decide(d *decider) (any, error) {
	if len(c.Topics) == 0 && !c.All {
		return PartitionResults{}, nil
	}
	if c.Type != 0 && c.Type != 1 {
		return nil, refuse(ErrInvalidRequest, "Unknown election type %d", c.Type)
	}
	d.atomic = false
	kind := []electionKind{electPreferred, electUnclean}[c.Type]
	topics := c.Topics
	if c.All {
		topics = nil
		for t := range d.Image.Topics() {
			all := PartitionsOf{Topic: t.Name}
			for id := range t.Partitions() {
				all.Partitions = append(all.Partitions, id)
			}
			topics = append(topics, all)
		}
	}
	var res PartitionResults
	for _, t := range topics {
		out := TopicPartitionsResult{Topic: t.Topic}
		for _, id := range t.Partitions {
			err := d.electLeader(t.Topic, id, kind)
			if c.All && err != nil && errors.Is(err, ErrElectionNotNeeded) {
				continue
			}
			out.Partitions = append(out.Partitions, PartitionResult{id, err})
		}
		res.Topics = append(res.Topics, out)
	}
	return res, nil
}

func (d *decider) electLeader(topic string, id int32, kind electionKind) *Error {
	t := d.Image.Topic(topic)
	if t == nil {
		return refuse(ErrUnknownTopic, "No such topic as %s", topic)
	}
	p := t.Partition(id)
	switch {
	case p == nil:
		return refuse(ErrUnknownTopic, "No such partition as %s-%d", topic, id)
	case kind == electPreferred && len(p.Replicas) > 0 && p.Leader == p.Replicas[0],
		kind == electUnclean && p.Leader != metadata.NoLeader:
		return refuse(ErrElectionNotNeeded, "Leader election not needed for topic partition.")
	}
	if d.change(partitionChange{topic: t, id: id, partition: p, acceptable: d.isActive, isr: p.ISR, election: kind}) {
		return nil
	}
	if kind == electPreferred {
		return refuse(ErrPreferredLeader, "The preferred leader was not available.")
	}
	return refuse(ErrEligibleLeaders, "Eligible topic partition leaders are not available.")
}
