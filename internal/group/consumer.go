package group

import (
	"maps"
	"slices"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

// consumer is a group of the consumer protocol (KIP-848): the coordinator assigns the partitions, and each member
// goes from what it has to what it is to have at its own pace.
//
// Its epoch rises with each change that asks for a new target assignment; a member's epoch is that of the target it
// has reached. A partition goes to its new member when the old one has said that it gave it up. All of its state is
// in the log: commands make records, which are replayed.
type consumer struct {
	m  *Machine
	id string

	epoch           int32
	metadataHash    int64
	assignmentEpoch int32
	assignmentMs    int64 // when the target was computed; 0: not known
	members         map[string]*consumerMember
	static          map[string]string // instance id → member id
	targets         map[string]target
	regexes         map[string]resolved
	oldMetadata     bool // there is a record of partition metadata, to be removed

	// owners tells which epoch a partition is held in.
	owners map[wire.UUID]map[int32]int32
	// checked is the metadata to which the hash belongs.
	checked *metadata.Image
	// joinTimers are the members of the classic protocol that are to join again.
	joinTimers map[string]bool
}

// The states of a member.
const (
	memberStable     int8 = 0
	memberUnrevoked  int8 = 1 // is to give partitions up
	memberUnreleased int8 = 2 // waits for partitions that others have
	memberUnknown    int8 = 127
)

// Member epochs with a meaning of their own.
const (
	joiningEpoch     = 0
	leavingEpoch     = -1
	staticLeaveEpoch = -2
)

// owned are partitions that a member has, with the epoch since which it has them.
type owned map[wire.UUID]map[int32]int32

// target are the partitions that a member is to have, sorted.
type target map[wire.UUID][]int32

// consumerMember is a member of a consumer group. It is not changed once it is in the group.
type consumerMember struct {
	id                   string
	instanceID, rackID   *string
	clientID, clientHost string
	topics               []string // sorted
	regex                *string
	rebalanceTimeoutMs   int32
	assignor             *string
	classic              *classicMetadata // of a member of the classic protocol

	epoch, previousEpoch int32
	state                int8
	assigned, revoking   owned
}

// classicMetadata is what a member of the classic protocol told.
type classicMetadata struct {
	sessionTimeoutMs int32
	protocols        []Protocol
}

func newConsumer(m *Machine, id string) *consumer {
	return &consumer{m: m, id: id, epoch: 1, members: map[string]*consumerMember{}, static: map[string]string{},
		targets: map[string]target{}, regexes: map[string]resolved{}, owners: map[wire.UUID]map[int32]int32{},
		joinTimers: map[string]bool{}}
}

func newConsumerMember(id string) *consumerMember {
	empty := ""
	return &consumerMember{id: id, previousEpoch: -1, rebalanceTimeoutMs: -1, regex: &empty, assigned: owned{},
		revoking: owned{}}
}

// pattern is the pattern of topics; "" when there is none.
func (m *consumerMember) pattern() string {
	if m == nil || m.regex == nil {
		return ""
	}
	return *m.regex
}

// sameWishes tells whether nothing is different that a member's record of wishes holds.
func (m *consumerMember) sameWishes(o *consumerMember) bool {
	return equalText(m.instanceID, o.instanceID) && equalText(m.rackID, o.rackID) && m.clientID == o.clientID &&
		m.clientHost == o.clientHost && slices.Equal(m.topics, o.topics) && equalText(m.regex, o.regex) &&
		m.rebalanceTimeoutMs == o.rebalanceTimeoutMs && equalText(m.assignor, o.assignor) && m.classic.same(o.classic)
}

func (c *classicMetadata) same(o *classicMetadata) bool {
	if c == nil || o == nil {
		return c == o
	}
	one := &member{protocols: c.protocols}
	return c.sessionTimeoutMs == o.sessionTimeoutMs && one.offers(o.protocols)
}

func equalText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (o owned) same(p owned) bool {
	return maps.EqualFunc(o, p, func(a, b map[int32]int32) bool { return maps.Equal(a, b) })
}

func (o owned) has(id wire.UUID, partition int32) bool {
	_, ok := o[id][partition]
	return ok
}

// isReconciled tells whether a member has what it is to have at an epoch.
func (m *consumerMember) isReconciled(epoch int32) bool {
	return m.state == memberStable && m.epoch == epoch
}

func (c *consumer) kind() string             { return "consumer" }
func (c *consumer) protocolTypeName() string { return ConsumerProtocolType }
func (c *consumer) isEmpty() bool            { return len(c.members) == 0 }

func (c *consumer) stateName() string {
	switch {
	case len(c.members) == 0:
		return "Empty"
	case c.epoch > c.assignmentEpoch:
		return "Assigning"
	}
	for _, m := range c.members {
		if !m.isReconciled(c.assignmentEpoch) {
			return "Reconciling"
		}
	}
	return "Stable"
}

func (c *consumer) checkDelete() error {
	if len(c.members) > 0 {
		return ErrNotEmpty
	}
	return nil
}

func (c *consumer) checkOffsetDelete() error { return nil }

func (c *consumer) subscribes(topic string) bool {
	for _, m := range c.members {
		if slices.Contains(m.topics, topic) {
			return true
		}
	}
	for _, r := range c.regexes {
		if slices.Contains(r.topics, topic) {
			return true
		}
	}
	return false
}

func (c *consumer) retention() (from func(o Offset) int64, ok bool) { return committedAt, true }

// checkCommit tells whether a member, or a consumer without membership, may commit now. One with an earlier epoch may
// commit what it had since then.
//
// Kafka: ConsumerGroup.validateOffsetCommit.
func (c *consumer) checkCommit(by *committer) (each commitCheck, err error) {
	switch {
	case by.generation < 0 && len(c.members) == 0:
		return nil, nil
	case by.transactional && by.generation == -1 && by.memberID == "" && by.instanceID == nil:
		return nil, nil
	}
	m := c.members[by.memberID]
	if m == nil {
		return nil, c.unknownMember(by.memberID)
	}
	stale := ErrStaleMemberEpoch
	if m.classic != nil || by.transactional {
		stale = ErrIllegalGeneration
	}
	switch {
	case !by.transactional && m.classic == nil && by.version < versionWithGroupErrors:
		return nil, ErrUnsupportedVersion
	case by.generation == m.epoch:
		return nil, nil
	case by.generation > m.epoch:
		return nil, stale
	}
	return func(id wire.UUID, _ string, partition int32) error {
		since, ok := m.assigned[id][partition]
		if !ok {
			since, ok = m.revoking[id][partition]
		}
		if !ok || by.generation < since {
			return stale
		}
		return nil
	}, nil
}

// checkFetch tells whether a member may ask for offsets; one that does not say who it is may.
func (c *consumer) checkFetch(memberID *string, epoch int32) error {
	if memberID == nil && epoch < 0 {
		return nil
	}
	var id string
	if memberID != nil {
		id = *memberID
	}
	m := c.members[id]
	switch {
	case m == nil:
		return c.unknownMember(id)
	case epoch == m.epoch:
		return nil
	case m.classic != nil:
		return ErrIllegalGeneration
	}
	return ErrStaleMemberEpoch
}

func (c *consumer) unknownMember(id string) error {
	return refuse(ErrUnknownMember, "Member %s is not a member of group %s.", id, c.id)
}

// memberIDs are the ids of the members, in order.
func (c *consumer) memberIDs() []string { return slices.Sorted(maps.Keys(c.members)) }

func (c *consumer) key(kind int16, member string) []byte {
	return Key{Kind: kind, Group: c.id, Member: member}.AppendTo(nil)
}

// tombstones are the records that end the group.
func (c *consumer) tombstones() []Record { return c.tombstonesOf(c.memberIDs()) }

func (c *consumer) tombstonesOf(members []string) []Record {
	var records []Record
	erase := func(key []byte) { records = append(records, Record{Key: key}) }
	for _, id := range members {
		erase(c.key(kindCurrent, id))
	}
	for _, id := range members {
		erase(c.key(kindTarget, id))
	}
	erase(c.key(kindTargetEpoch, ""))
	for _, id := range members {
		erase(c.key(kindMember, id))
	}
	for _, regex := range slices.Sorted(maps.Keys(c.regexes)) {
		erase(Key{Kind: kindRegex, Group: c.id, Regex: regex}.AppendTo(nil))
	}
	erase(c.key(kindPartitionMetadata, ""))
	erase(c.key(kindEpoch, ""))
	return records
}

func (c *consumer) stopTimers() {
	for id := range c.members {
		c.forgetMember(id)
	}
	c.m.host.StopTimer(timerKey(regexTimer, c.id, ""))
	delete(c.m.viewers, c.id)
}

// forgetMember stops the timers of a member.
func (c *consumer) forgetMember(id string) {
	delete(c.joinTimers, id)
	for _, kind := range []byte{sessionTimer, revocationTimer, classicJoinTimer, classicSyncTimer} {
		c.m.host.StopTimer(timerKey(kind, c.id, id))
	}
}

// mind has a timer of a member go off in so many ms.
func (c *consumer) mind(kind byte, member string, ms int32) {
	c.m.host.SetTimer(timerKey(kind, c.id, member), c.m.host.NowMs()+int64(ms))
}

// expectSession gives a member its session's time until the next sign of life.
func (c *consumer) expectSession(m *consumerMember) {
	ms := c.m.o.ConsumerConfig(c.id).SessionTimeoutMs
	if m.classic != nil {
		ms = m.classic.sessionTimeoutMs
	}
	c.mind(sessionTimer, m.id, ms)
}
