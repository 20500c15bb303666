package group

import (
	"slices"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

// The ways in which groups may change their protocol while they have members
// (group.consumer.migration.policy).
const (
	MigrateNever  = "disabled"
	MigrateUp     = "upgrade"
	MigrateDown   = "downgrade"
	MigrateEither = "bidirectional"
)

// upgrade makes a consumer group of a classic one: its members stay, and are served by the classic protocol as long
// as they speak it. The group is not in the machine until the records are.
func (m *Machine) upgrade(g *classic) (*consumer, []Record, error) {
	policy := m.o.Config().ConsumerMigration
	const cannot = "Cannot upgrade classic group %s to consumer group because "
	switch {
	case policy != MigrateUp && policy != MigrateEither:
		return nil, nil, refuse(ErrNotFound, cannot+"online upgrade is disabled.", g.id)
	case g.protocolType != ConsumerProtocolType:
		return nil, nil, refuse(ErrNotFound, cannot+"the group does not use the consumer embedded protocol.", g.id)
	case len(g.members) > int(m.o.Config().ConsumerMaxSize):
		return nil, nil, refuse(ErrNotFound, cannot+"the group size exceeds the consumer group maximum size.", g.id)
	}
	for _, one := range g.members {
		g.answerJoin(one, JoinResponse{Err: ErrRebalance, MemberID: one.id, Generation: NoGeneration})
		one.answerSync(SyncResponse{Err: ErrRebalance})
	}
	c := newConsumer(m, g.id)
	c.epoch, c.assignmentEpoch = g.generation, g.generation
	image := m.o.Image()
	for _, one := range g.members {
		next, to, err := g.upgraded(one, image)
		if err != nil {
			return nil, nil, err
		}
		c.put(next)
		c.targets[next.id] = to
	}
	c.metadataHash = m.hashes.group(image, c.without(nil).topics(nil))
	m.log.Info("classic group becomes a consumer group", "group", g.id, "members", len(g.members))
	for _, one := range c.members {
		c.expectSession(one)
	}
	return c, append(g.tombstones(), c.records()...), nil
}

// upgraded is a member of a classic group as one of a consumer group.
func (g *classic) upgraded(one *member, image *metadata.Image) (*consumerMember, target, error) {
	const cannot = "Cannot upgrade classic group %s to consumer group because "
	s, ok := readSubscription(one.metadata(g.protocol), false)
	if !ok {
		return nil, nil, refuse(ErrNotFound, cannot+"the embedded consumer protocol is malformed.", g.id)
	}
	assigned, ok := readAssignment(one.assignment)
	if !ok {
		return nil, nil, refuse(ErrNotFound, cannot+"an unsupported custom assignor is in use. Please refer to the "+
			"documentation or switch to a default assignor before re-attempting the upgrade.", g.id)
	}
	next := newConsumerMember(one.id)
	next.epoch, next.previousEpoch = g.generation, g.generation
	next.instanceID, next.rackID = one.instanceID, filled(s.rack)
	next.clientID, next.clientHost, next.topics = one.clientID, one.clientHost, sortedTopics(s.topics)
	next.rebalanceTimeoutMs = one.rebalanceTimeoutMs
	next.classic = &classicMetadata{sessionTimeoutMs: one.sessionTimeoutMs, protocols: one.protocols}
	to := target{}
	for _, t := range assigned {
		if topic := image.Topic(t.topic); topic != nil {
			to[topic.ID] = slices.Sorted(slices.Values(t.partitions))
			next.assigned[topic.ID] = map[int32]int32{}
			for _, p := range t.partitions {
				next.assigned[topic.ID][p] = g.generation
			}
		}
	}
	return next, to, nil
}

// filled is a text, nil when it is empty.
func filled(s *string) *string {
	if s != nil && *s == "" {
		return nil
	}
	return s
}

// records are all records of a group.
func (c *consumer) records() []Record {
	s := &step{c: c}
	for _, id := range c.memberIDs() {
		s.put(kindMember, id, c.members[id].appendTo(nil))
	}
	s.put(kindEpoch, "", encodeEpoch(c.epoch, c.metadataHash))
	for _, id := range c.memberIDs() {
		s.put(kindTarget, id, encodeTarget(c.targets[id]))
	}
	s.put(kindTargetEpoch, "", encodeTargetEpoch(c.assignmentEpoch, c.assignmentMs))
	for _, id := range c.memberIDs() {
		s.put(kindCurrent, id, c.members[id].encodeCurrent())
	}
	return s.records
}

// canDowngrade tells whether a group becomes a classic one: when those who go, or the static one that is replaced,
// are the last that speak the consumer protocol.
func (c *consumer) canDowngrade(gone []*consumerMember, replaced *consumerMember) bool {
	if replaced != nil {
		if replaced.classic != nil {
			return false
		}
		gone = []*consumerMember{replaced}
	}
	left := c.without(gone)
	size := len(left)
	if replaced != nil {
		size++
	}
	policy := c.m.o.Config().ConsumerMigration
	return size > 0 && !slices.ContainsFunc(left, func(m *consumerMember) bool { return m.classic == nil }) &&
		(policy == MigrateDown || policy == MigrateEither) && size <= int(c.m.o.Config().MaxSize)
}

// downgrade makes a classic group of a consumer group: without those who go; with a static member of the classic
// protocol that comes in the place of one.
func (c *consumer) downgrade(gone []*consumerMember, joins *consumerMember, rebalance bool, before ...Record) *Write {
	g := newClassic(c.m, c.id)
	g.state, g.generation = Stable, c.epoch
	ids := c.memberIDs()
	for i, id := range ids {
		m := c.members[id]
		switch {
		case slices.Contains(gone, m):
		case joins != nil && m.instanceID != nil && *m.instanceID == *joins.instanceID:
			ids[i] = joins.id
			g.adopt(joins)
		default:
			g.adopt(m)
		}
	}
	g.protocol = g.selectProtocol()
	g.noteSubscriptions()
	image := c.m.o.Image()
	assignments := map[string][]byte{}
	for _, one := range g.members {
		to := c.targets[one.id]
		if joins != nil && one.id == joins.id {
			to = c.lastTarget(joins)
		}
		one.assignment = writeAssignment(to.byName(image), one.metadata(g.protocol))
		assignments[one.id] = one.assignment
	}
	records := append(slices.Clone(before), c.tombstonesOf(ids)...)
	records = append(records, g.record(assignments))
	return &Write{Records: records, apply: func(int64) {
		c.stopTimers()
		c.m.groups[c.id] = g
		for _, one := range g.members {
			g.expectHeartbeat(one, one.sessionTimeoutMs)
		}
		c.m.log.Info("consumer group becomes a classic group", "group", c.id, "members", len(g.members))
		if rebalance {
			g.prepareRebalance("group has become a classic one")
		}
	}}
}

// adopt takes a member of a consumer group, of the classic protocol, into a classic one.
func (g *classic) adopt(m *consumerMember) {
	g.add(&member{id: m.id, instanceID: m.instanceID, clientID: m.clientID, clientHost: m.clientHost,
		rebalanceTimeoutMs: m.rebalanceTimeoutMs, sessionTimeoutMs: m.classic.sessionTimeoutMs,
		protocols: m.classic.protocols}, ConsumerProtocolType, nil)
}

// byName are the partitions of a target by the names of their topics.
func (t target) byName(image *metadata.Image) []topicPartitionsByName {
	var all []topicPartitionsByName
	for _, id := range sortedIDs(t) {
		if topic := image.TopicByID(id); topic != nil {
			all = append(all, topicPartitionsByName{topic.Name, t[id]})
		}
	}
	return all
}

// target is what a member has, without epochs.
func (o owned) target() target {
	t := target{}
	for _, one := range o.list() {
		t[one.TopicID] = one.Partitions
	}
	return t
}

// ownedByID are partitions by the ids of their topics; topics that do not exist are left out.
func ownedByID(image *metadata.Image, all []topicPartitionsByName) []OwnedPartitions {
	has := []OwnedPartitions{}
	for _, t := range all {
		if topic := image.Topic(t.topic); topic != nil {
			has = append(has, OwnedPartitions{TopicID: wire.UUID(topic.ID), Partitions: t.partitions})
		}
	}
	return has
}
