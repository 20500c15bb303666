package controller

import (
	"slices"

	"tidemark/internal/metadata"
)

// partitionChange works out the record that takes a partition to a new in-sync
// set, electing a leader where the present one cannot stay.
type partitionChange struct {
	d         *decider
	topic     *metadata.Topic
	id        int32
	partition *metadata.Partition
	// acceptable says which brokers may lead.
	acceptable func(broker int32) bool
	// isr is the in-sync set to be.
	isr []int32
	// directories, when not nil, are those of the replicas to be.
	directories []metadata.UUID
	// uncleanlyStopped are brokers that may have lost what they had.
	uncleanlyStopped []int32
	// election says who is to lead.
	election electionKind
	// assignment, when not nil, is the replicas to be.
	assignment *assignment

	elr, lastKnown []int32
	record         *metadata.PartitionChangeRecord
}

// electionKind says who is looked for.
type electionKind uint8

const (
	asConfigured   electionKind = iota // the leader that is, else one in sync, else as unclean.leader.election.enable says
	electPreferred                     // the first of the replicas, else one in sync
	electClean                         // the leader that is, else one in sync
	electUnclean                       // the leader that is, else one in sync, else anyone
)

// change adds the record that c comes to, and reports whether it changes anything.
func (d *decider) change(c partitionChange) bool {
	c.d = d
	c.record = metadata.NewPartitionChange(c.topic.ID, c.id)
	c.elr, c.lastKnown = c.partition.ELR, c.partition.LastKnownELR
	if c.assignment != nil {
		c.completeAssignment()
	}
	if d.elrEnabled() {
		c.targetELR()
	}
	c.elect()
	if c.assignment != nil {
		c.bumpEpochOnRemoval()
	}
	c.setELR()
	if c.record.ISR == nil && (len(c.isr) > 0 || d.elrEnabled()) && !slices.Equal(c.isr, c.partition.ISR) {
		c.record.ISR = notNil(c.isr)
	}
	c.bumpEpochOnShrink()
	if d.elrEnabled() {
		c.setLastKnownLeader()
	}
	if c.directories != nil && !slices.Equal(c.directories, c.partition.Directories) {
		c.record.Directories = c.directories
	}
	if c.assignment != nil {
		c.setAssignment()
	}
	if c.record.IsNoOp() {
		return false
	}
	d.add(metadata.PartitionVersion(d.level), c.record)
	return true
}

// targetELR moves brokers that leave the in-sync set below min.insync.replicas
// to the eligible leader replicas: they have all that was committed (KIP-966).
func (c *partitionChange) targetELR() {
	if len(c.isr) >= c.d.minISR(c.topic) {
		c.elr, c.lastKnown = nil, nil
		return
	}
	all := union(c.elr, c.partition.ISR)
	c.elr = without(without(all, c.isr), c.uncleanlyStopped)
	c.lastKnown = without(without(union(all, c.lastKnown), c.isr), c.elr)
}

// eligible reports whether a broker can be elected cleanly.
func (c *partitionChange) eligible(broker int32) bool {
	in := slices.Contains(c.isr, broker) || len(c.isr) == 0 && slices.Contains(c.elr, broker)
	return in && c.accepts(broker)
}

// accepts reports whether a broker may lead and has its log directory online.
func (c *partitionChange) accepts(broker int32) bool {
	if !c.acceptable(broker) {
		return false
	}
	b := c.d.Image.Broker(broker)
	dir, ok := c.partition.Directory(broker)
	return ok && b != nil && b.HasLogDir(dir)
}

// leader returns who is to lead, NoLeader when nobody can, and whether that
// election is unclean.
func (c *partitionChange) leader() (broker int32, unclean bool) {
	replicas := c.replicas()
	if c.election == electPreferred && len(replicas) > 0 && c.eligible(replicas[0]) {
		return replicas[0], false
	}
	if c.eligible(c.partition.Leader) {
		return c.partition.Leader, false
	}
	for _, b := range replicas {
		if c.eligible(b) {
			return b, false
		}
	}
	if c.d.elrEnabled() && len(c.isr) == 0 && len(c.elr) == 0 && len(c.partition.LastKnownELR) == 1 {
		if last := c.partition.LastKnownELR[0]; c.accepts(last) {
			return last, true
		}
	}
	if c.election == electUnclean || c.election == asConfigured && c.d.unclean(c.topic) {
		for _, b := range replicas {
			if c.accepts(b) {
				return b, true
			}
		}
	}
	return metadata.NoLeader, false
}

func (c *partitionChange) elect() {
	leader, unclean := c.leader()
	if leader == c.partition.Leader {
		return
	}
	if slices.Contains(c.elr, leader) {
		c.isr = []int32{leader}
		c.elr = without(c.elr, c.isr)
	}
	c.record.Leader = leader
	if unclean {
		c.record.ISR = []int32{leader}
		if c.partition.LeaderRecoveryState != metadata.LeaderRecovering {
			c.record.LeaderRecoveryState = metadata.LeaderRecovering
		}
	}
}

func (c *partitionChange) setELR() {
	if c.record.ISR != nil || !c.d.elrEnabled() { // elected uncleanly, or no such thing
		c.elr = nil
	}
	if !slices.Equal(c.elr, c.partition.ELR) {
		c.record.EligibleLeaderReplicas = notNil(c.elr)
	}
}

// bumpEpochOnShrink raises the leader epoch when the in-sync set shrinks, in
// clusters whose brokers rely on it.
//
// Kafka: KAFKA-15021, levels below 3.6-IV0.
func (c *partitionChange) bumpEpochOnShrink() {
	if c.d.level >= 12 || c.record.Leader != metadata.NoLeaderChange || c.record.ISR == nil {
		return
	}
	if len(without(c.partition.ISR, c.record.ISR)) > 0 {
		c.record.Leader = c.partition.Leader
	}
}

// setLastKnownLeader remembers who led when a partition loses its leader, and
// forgets it when there is one again.
//
// Kafka: as long as the last known leader is what unclean recovery goes by, the
// field "last known ELR" holds nothing else.
func (c *partitionChange) setLastKnownLeader() {
	had, r := c.partition, c.record
	switch {
	case r.ISR != nil && len(r.ISR) == 0 && (len(had.LastKnownELR) != 1 || had.LastKnownELR[0] != had.Leader):
		r.LastKnownELR = []int32{had.Leader}
	case (r.Leader >= 0 || had.Leader != metadata.NoLeader && r.Leader != metadata.NoLeader) && len(had.LastKnownELR) > 0:
		r.LastKnownELR = []int32{}
	}
}

// without returns list less the elements of remove.
func without(list, remove []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(v int32) bool { return slices.Contains(remove, v) })
}

// union is the sorted set of both.
func union(a, b []int32) []int32 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func notNil(list []int32) []int32 {
	if list == nil {
		return []int32{}
	}
	return list
}

// reassess looks again at every partition that affected picks: remove leaves the
// in-sync sets, candidate counts as active though it is fenced, and stopped
// leaves in-sync and eligible sets. NoLeader stands for none of each.
func (d *decider) reassess(remove, candidate, stopped int32, affected func(*metadata.Partition) bool) {
	acceptable := func(b int32) bool {
		return b != remove && b != stopped && (b == candidate || d.isActive(b))
	}
	for t := range d.Image.Topics() {
		for id, p := range t.Partitions() {
			if !affected(p) {
				continue
			}
			c := partitionChange{topic: t, id: id, partition: p, acceptable: acceptable}
			c.isr = without(p.ISR, []int32{remove, stopped})
			if stopped != metadata.NoLeader {
				c.uncleanlyStopped = []int32{stopped}
			}
			d.change(c)
		}
	}
}

func inISR(broker int32) func(*metadata.Partition) bool {
	return func(p *metadata.Partition) bool { return slices.Contains(p.ISR, broker) }
}

func inELR(broker int32) func(*metadata.Partition) bool {
	return func(p *metadata.Partition) bool { return slices.Contains(p.ELR, broker) }
}

func leaderless(p *metadata.Partition) bool { return p.Leader == metadata.NoLeader }
