package group

import (
	"slices"
	"strings"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

// ConsumerHeartbeat is what a member of a consumer group tells: that it lives, what it wants and what it has. Fields
// that are nil have not changed since the last time.
type ConsumerHeartbeat struct {
	Group, MemberID      string
	Epoch                int32 // 0: joins; -1: leaves; -2: a static member that leaves for a while
	InstanceID, RackID   *string
	ClientID, ClientHost string
	RebalanceTimeoutMs   int32 // -1: not changed
	Topics               []string
	Regex                *string // "" for none
	Assignor             *string
	Owned                []OwnedPartitions // nil: not changed
	// NeedsMemberID says that the member names itself (from v1 on).
	NeedsMemberID bool
	// Visible tells whether the member may see a topic that its pattern matches; nil: all.
	Visible func(topic string) bool
}

// OwnedPartitions are partitions of a topic that a member has.
type OwnedPartitions struct {
	TopicID    wire.UUID
	Partitions []int32
}

// ConsumerAnswer is the answer to a heartbeat.
type ConsumerAnswer struct {
	MemberID            string
	Epoch               int32
	HeartbeatIntervalMs int32
	Assigned            bool // Partitions are told
	Partitions          []OwnedPartitions
}

// Check tells whether the fields of the request go together.
//
// Errors: ErrInvalidRequest and ErrUnsupportedAssignor, with messages.
func (r *ConsumerHeartbeat) Check(assignors []string) error {
	invalid := func(message string) error { return refuse(ErrInvalidRequest, "%s", message) }
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	switch {
	case (r.NeedsMemberID || r.Epoch > joiningEpoch || r.Epoch == leavingEpoch) && blank(r.MemberID):
		return invalid("MemberId can't be empty.")
	case blank(r.Group):
		return invalid("GroupId can't be empty.")
	case r.InstanceID != nil && blank(*r.InstanceID):
		return invalid("InstanceId can't be empty.")
	case r.RackID != nil && blank(*r.RackID):
		return invalid("RackId can't be empty.")
	case r.Epoch == joiningEpoch && r.RebalanceTimeoutMs == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case r.Epoch == joiningEpoch && (r.Owned == nil || len(r.Owned) > 0):
		return invalid("TopicPartitions must be empty when (re-)joining.")
	case r.Epoch == joiningEpoch && r.Topics == nil && r.Regex == nil:
		return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case r.Epoch == staticLeaveEpoch && r.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	case r.Epoch < staticLeaveEpoch:
		return invalid("MemberEpoch is invalid.")
	case r.Assignor != nil && !slices.Contains(assignors, *r.Assignor):
		return refuse(ErrUnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.", *r.Assignor,
			strings.Join(assignors, ", "))
	}
	return nil
}

// ConsumerHeartbeat takes a member of a consumer group a step on: it may join or leave, its wishes may change the
// group's target, and it is told what it may have by now.
//
// Errors: ErrNotFound, ErrMaxSize, ErrUnknownMember, ErrFencedMemberEpoch, ErrUnreleasedInstance, ErrFencedInstance,
// ErrInvalidRegex.
func (m *Machine) ConsumerHeartbeat(r *ConsumerHeartbeat) (answer ConsumerAnswer, w *Write, err error) {
	if r.Epoch == leavingEpoch || r.Epoch == staticLeaveEpoch {
		return m.consumerLeave(r)
	}
	c, records, err := m.consumerFor(r.Group, r.Epoch == joiningEpoch)
	if err != nil {
		return answer, nil, err
	}
	s := &step{c: c, records: records, image: m.o.Image()}
	answer, err = s.heartbeat(r)
	if err != nil {
		return ConsumerAnswer{}, nil, err
	}
	return answer, s.write(), nil
}

// consumerFor finds a consumer group. With create, one that does not exist is made, an empty classic one becomes one,
// and a classic one with members is converted.
func (m *Machine) consumerFor(id string, create bool) (*consumer, []Record, error) {
	switch g := m.groups[id].(type) {
	case *consumer:
		return g, nil, nil
	case *classic:
		switch {
		case !create:
			return nil, nil, refuse(ErrNotFound, "Group %s is not a consumer group.", id)
		case g.isEmpty():
			return newConsumer(m, id), g.tombstones(), nil
		}
		return m.upgrade(g)
	}
	if !create {
		return nil, nil, refuse(ErrNotFound, "Consumer group %s not found.", id)
	}
	return newConsumer(m, id), nil, nil
}

// step is one command on a consumer group: what it makes of the group is in its records.
type step struct {
	c       *consumer
	records []Record
	image   *metadata.Image
	epoch   int32    // of the group, after what the step changes
	regexes bool     // patterns are to be resolved
	after   []func() // done once the records are appended
}

// write is what the step makes, or nil when it changes nothing.
func (s *step) write() *Write {
	w := s.c.m.replayed(s.records)
	if w == nil {
		s.appended()
		return nil
	}
	replay := w.apply
	w.apply = func(base int64) {
		replay(base)
		s.appended()
	}
	return w
}

func (s *step) appended() {
	for _, do := range s.after {
		do()
	}
}

// later has something done once the records are appended.
func (s *step) later(do func()) { s.after = append(s.after, do) }

func (s *step) put(kind int16, member string, value []byte) {
	s.records = append(s.records, Record{Key: s.c.key(kind, member), Value: value})
}

func (s *step) heartbeat(r *ConsumerHeartbeat) (ConsumerAnswer, error) {
	c := s.c
	if len(c.members) >= int(c.m.o.Config().ConsumerMaxSize) && (r.MemberID == "" || c.members[r.MemberID] == nil) {
		return ConsumerAnswer{}, refuse(ErrMaxSize, "The consumer group has reached its maximum capacity of %d members.",
			c.m.o.Config().ConsumerMaxSize)
	}
	id := r.MemberID
	if id == "" {
		id = c.m.o.NewShortID()
	}
	old, err := s.memberFor(r, id)
	if err != nil {
		return ConsumerAnswer{}, err
	}
	next := r.wishes(old)
	changed, bump, err := s.takeWishes(old, next)
	if err != nil {
		return ConsumerAnswer{}, err
	}
	s.advance(next, bump)
	to, toEpoch := s.aim(next)
	next, err = s.reconcile(next, to, toEpoch, changed, r.Owned)
	if err != nil {
		return ConsumerAnswer{}, err
	}
	s.later(func() {
		if s.regexes {
			c.m.viewers[c.id] = r.Visible
			c.mind(regexTimer, "", 0)
		}
		c.expectSession(next)
	})
	answer := ConsumerAnswer{MemberID: next.id, Epoch: next.epoch,
		HeartbeatIntervalMs: c.m.o.ConsumerConfig(c.id).HeartbeatIntervalMs}
	full := r.RebalanceTimeoutMs != -1 && (r.Topics != nil || r.Regex != nil) && r.Owned != nil
	if r.Epoch == joiningEpoch || full || !old.assigned.same(next.assigned) {
		answer.Assigned, answer.Partitions = true, next.assigned.list()
	}
	return answer, nil
}

// list is what a member has, by topic.
func (o owned) list() []OwnedPartitions {
	var all []OwnedPartitions
	for _, id := range sortedIDs(o) {
		one := OwnedPartitions{TopicID: id}
		for p := range o[id] {
			one.Partitions = append(one.Partitions, p)
		}
		slices.Sort(one.Partitions)
		all = append(all, one)
	}
	return all
}

// wishes is a member with what the request changes of its wishes.
func (r *ConsumerHeartbeat) wishes(old *consumerMember) *consumerMember {
	next := *old
	if r.InstanceID != nil {
		next.instanceID = r.InstanceID
	}
	if r.RackID != nil {
		next.rackID = r.RackID
	}
	if r.RebalanceTimeoutMs != -1 {
		next.rebalanceTimeoutMs = r.RebalanceTimeoutMs
	}
	if r.Assignor != nil {
		next.assignor = r.Assignor
	}
	if r.Topics != nil {
		next.topics = sortedTopics(r.Topics)
	}
	if r.Regex != nil {
		next.regex = r.Regex
	}
	next.clientID, next.clientHost, next.classic = r.ClientID, r.ClientHost, nil
	return &next
}

// memberFor finds the member that asks, or makes it.
func (s *step) memberFor(r *ConsumerHeartbeat, id string) (*consumerMember, error) {
	if r.InstanceID != nil {
		return s.staticMemberFor(r, id)
	}
	m := s.c.members[id]
	if m == nil {
		if r.Epoch != joiningEpoch {
			return nil, s.c.unknownMember(id)
		}
		return newConsumerMember(id), nil
	}
	return m, m.checkEpoch(r.Epoch, r.Owned)
}

func (s *step) staticMemberFor(r *ConsumerHeartbeat, id string) (*consumerMember, error) {
	m := s.c.members[s.c.static[*r.InstanceID]]
	if r.Epoch != joiningEpoch {
		if err := s.c.checkInstance(m, *r.InstanceID, id); err != nil {
			return nil, err
		}
		return m, m.checkEpoch(r.Epoch, r.Owned)
	}
	if m == nil {
		if known := s.c.members[id]; known != nil {
			return known, nil
		}
		return newConsumerMember(id), nil
	}
	if m.classic == nil && m.epoch != staticLeaveEpoch {
		return nil, refuse(ErrUnreleasedInstance, "Static member %s with instance id %s cannot join the group because "+
			"the instance id is owned by %s member.", id, *r.InstanceID, m.id)
	}
	return s.replace(m, id), nil
}

// checkInstance tells whether a member has an instance id.
func (c *consumer) checkInstance(m *consumerMember, instanceID, id string) error {
	switch {
	case m == nil:
		return refuse(ErrUnknownMember, "Instance id %s is unknown.", instanceID)
	case m.id != id:
		return refuse(ErrFencedInstance, "Static member %s with instance id %s was fenced by member %s.", id, instanceID,
			m.id)
	}
	return nil
}

// replace puts a new member in the place of a static one.
func (s *step) replace(old *consumerMember, id string) *consumerMember {
	next := *old
	next.id, next.epoch, next.previousEpoch = id, joiningEpoch, joiningEpoch
	s.erase(old.id)
	s.put(kindMember, id, next.appendTo(nil))
	s.put(kindTarget, id, encodeTarget(s.c.targets[old.id]))
	s.put(kindCurrent, id, next.encodeCurrent())
	return &next
}

// erase removes a member.
func (s *step) erase(id string) {
	s.put(kindCurrent, id, nil)
	s.put(kindTarget, id, nil)
	s.put(kindMember, id, nil)
}

// checkEpoch tells whether the epoch that a member tells is its own, or the one before, of an answer that was lost.
func (m *consumerMember) checkEpoch(epoch int32, has []OwnedPartitions) error {
	const text = "The consumer group member has a %s member epoch (%d) than the one known by the group " +
		"coordinator (%d). " +
		"The member must abandon all its partitions and rejoin."
	switch {
	case epoch == joiningEpoch || epoch == m.epoch:
		return nil
	case epoch > m.epoch:
		return refuse(ErrFencedMemberEpoch, text, "greater", epoch, m.epoch)
	case epoch != m.previousEpoch || !m.assigned.contains(has):
		return refuse(ErrFencedMemberEpoch, text, "smaller", epoch, m.epoch)
	}
	return nil
}

func (o owned) contains(has []OwnedPartitions) bool {
	for _, t := range has {
		for _, p := range t.Partitions {
			if !o.has(t.TopicID, p) {
				return false
			}
		}
	}
	return has != nil
}

// consumerLeave removes a member. A static one that will be back keeps its place until its session ends.
func (m *Machine) consumerLeave(r *ConsumerHeartbeat) (ConsumerAnswer, *Write, error) {
	c, ok := m.groups[r.Group].(*consumer)
	switch {
	case m.groups[r.Group] == nil:
		return ConsumerAnswer{}, nil, notFound(r.Group)
	case !ok:
		return ConsumerAnswer{}, nil, refuse(ErrNotFound, "Group %s is not a consumer group.", r.Group)
	}
	answer := ConsumerAnswer{MemberID: r.MemberID, Epoch: r.Epoch}
	one := c.members[r.MemberID]
	if r.InstanceID != nil {
		one = c.members[c.static[*r.InstanceID]]
		if err := c.checkInstance(one, *r.InstanceID, r.MemberID); err != nil {
			return ConsumerAnswer{}, nil, err
		}
		if r.Epoch == staticLeaveEpoch {
			return answer, m.replayed([]Record{{Key: c.key(kindCurrent, one.id), Value: one.away().encodeCurrent()}}), nil
		}
	}
	if one == nil {
		return ConsumerAnswer{}, nil, c.unknownMember(r.MemberID)
	}
	m.log.Info("member leaves", "group", c.id, "member", one.id)
	return answer, c.fence([]*consumerMember{one}), nil
}

// away is a static member that left for a while.
func (m *consumerMember) away() *consumerMember {
	next := *m
	next.epoch, next.revoking, next.assigned = staticLeaveEpoch, owned{}, owned{}
	for id, partitions := range m.assigned {
		next.assigned[id] = map[int32]int32{}
		for p := range partitions {
			next.assigned[id][p] = 0
		}
	}
	return &next
}

// fence removes members, and has the others share what they had.
func (c *consumer) fence(gone []*consumerMember) *Write {
	if len(gone) == 0 {
		return nil
	}
	if c.canDowngrade(gone, nil) {
		return c.downgrade(gone, nil, true)
	}
	s := &step{c: c, image: c.m.o.Image()}
	left := c.without(gone)
	for _, m := range gone {
		s.erase(m.id)
	}
	for _, regex := range sortedKeys(c.regexes) {
		if !left.wantsPattern(regex) {
			s.records = append(s.records, Record{Key: Key{Kind: kindRegex, Group: c.id, Regex: regex}.AppendTo(nil)})
		}
	}
	s.put(kindEpoch, "", encodeEpoch(c.epoch+1, c.m.hashes.group(s.image, left.topics(c.regexes))))
	return s.write()
}

// timeout is called when a timer of a member goes off.
func (c *consumer) timeout(kind byte, id string) *Write {
	if kind == regexTimer {
		return c.resolvePatterns()
	}
	m := c.members[id]
	if m == nil || kind == revocationTimer && m.state != memberUnrevoked {
		return nil
	}
	c.m.log.Info("member is removed", "group", c.id, "member", id, "why", timeoutReasons[kind])
	w := c.fence([]*consumerMember{m})
	w.stored = func(err error) {
		if err != nil {
			c.mind(kind, id, retryMs)
		}
	}
	return w
}

// retryMs is when the removal of a member is tried again that could not be written.
const retryMs = 500

var timeoutReasons = map[byte]string{
	sessionTimer:     "session is over",
	revocationTimer:  "did not give partitions up in time",
	classicJoinTimer: "did not join again in time",
	classicSyncTimer: "did not ask for its assignment in time",
}
