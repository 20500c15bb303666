package group

import (
	"bytes"
	"slices"

	"tidemark/internal/wire"
)

// State is where a classic group stands.
type State uint8

// States of classic groups. Dead is told of groups that do not exist.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

var stateNames = [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

// String is the name by which DescribeGroups and ListGroups tell of the state.
func (s State) String() string { return stateNames[s] }

// ConsumerProtocolType is the protocol type of consumers; others, as Kafka Connect's, have their own.
const ConsumerProtocolType = "consumer"

// NoGeneration is the generation of who is in none.
const NoGeneration = -1

// classic is a group of the classic protocol.
type classic struct {
	m  *Machine
	id string

	state, previous State
	stateMs         int64 // since when; -1: not known
	generation      int32
	protocolType    string // "" before the first member
	protocol        *string
	leader          string    // "" when there is none
	members         []*member // in the order in which they came
	byID            map[string]*member
	static          map[string]string // instance id → member id
	pendingJoin     map[string]bool   // ids that were given out, whose members have not joined yet
	pendingSync     map[string]bool   // ids of members that have not asked for their assignment yet
	waitingJoin     int               // members whose join is not answered
	supporters      map[string]int    // protocol → members that have it

	subscribed      map[string]bool // topics; only with subscribedKnown
	subscribedKnown bool

	// A group that was empty waits for its first members in steps of the initial delay.
	initialDelay   bool
	delayMs        int32 // the step under way
	remainingMs    int32 // what may follow it
	newMemberAdded bool  // during the step
}

// member is a member of a classic group.
type member struct {
	id                   string
	instanceID           *string // of a static member
	clientID, clientHost string
	rebalanceTimeoutMs   int32
	sessionTimeoutMs     int32
	protocols            []Protocol // by preference
	assignment           []byte
	join                 func(JoinResponse) // nil when no join is waiting
	sync                 func(SyncResponse) // nil when no sync is waiting
	isNew                bool               // since its first join, until the rebalance is done
}

// Protocol is a way of assigning partitions that a member offers, with what its leader needs to know.
type Protocol struct {
	Name     string
	Metadata []byte
}

func newClassic(m *Machine, id string) *classic {
	return &classic{m: m, id: id, previous: Dead, stateMs: m.host.NowMs(), byID: map[string]*member{},
		static: map[string]string{}, pendingJoin: map[string]bool{}, pendingSync: map[string]bool{},
		supporters: map[string]int{}}
}

func (c *classic) kind() string             { return "classic" }
func (c *classic) stateName() string        { return c.state.String() }
func (c *classic) protocolTypeName() string { return c.protocolType }
func (c *classic) isEmpty() bool            { return c.state == Empty }

func (c *classic) tombstones() []Record { return []Record{{Key: classicKey(c.id)}} }

func (c *classic) stopTimers() {
	c.m.host.StopTimer(timerKey(joinTimer, c.id, ""))
	c.m.host.StopTimer(timerKey(syncTimer, c.id, ""))
	for _, one := range c.members {
		c.forgetHeartbeat(one.id)
	}
	for id := range c.pendingJoin {
		c.forgetHeartbeat(id)
	}
}

// become changes the state.
func (c *classic) become(s State) {
	c.previous, c.state, c.stateMs = c.state, s, c.m.host.NowMs()
}

// add adds a member; the first one settles the protocol type and is the leader.
func (c *classic) add(one *member, protocolType string, join func(JoinResponse)) {
	if one.instanceID != nil {
		c.static[*one.instanceID] = one.id
	}
	if len(c.members) == 0 {
		c.protocolType = protocolType
	}
	if c.leader == "" {
		c.leader = one.id
	}
	c.members = append(c.members, one)
	c.byID[one.id] = one
	c.count(one, 1)
	c.awaitJoin(one, join)
	delete(c.pendingJoin, one.id)
}

// remove forgets a member, or the id of one that has not joined.
func (c *classic) remove(id string) {
	if one := c.byID[id]; one != nil {
		c.count(one, -1)
		c.awaitJoin(one, nil)
		if one.instanceID != nil {
			delete(c.static, *one.instanceID)
		}
		delete(c.byID, id)
		c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == one })
	}
	if c.leader == id {
		c.leader = ""
		if len(c.members) > 0 {
			c.leader = c.members[0].id
		}
	}
	delete(c.pendingJoin, id)
	delete(c.pendingSync, id)
}

func (c *classic) count(one *member, n int) {
	for _, name := range one.protocolNames() {
		c.supporters[name] += n
	}
}

// awaitJoin sets who waits for the next generation; nil: nobody. One who waited before under the same id is told to
// join again.
func (c *classic) awaitJoin(one *member, join func(JoinResponse)) {
	before := one.join
	one.join = join
	switch {
	case before == nil && join != nil:
		c.waitingJoin++
	case before != nil && join == nil:
		c.waitingJoin--
	}
	if before != nil && join != nil {
		before(JoinResponse{Err: ErrRebalance, MemberID: one.id, Generation: NoGeneration})
	}
}

// answerJoin answers a join that waits.
func (c *classic) answerJoin(one *member, r JoinResponse) {
	if join := one.join; join != nil {
		one.join = nil
		c.waitingJoin--
		join(r)
	}
}

// answerSync answers a sync that waits, and tells whether there was one.
func (one *member) answerSync(r SyncResponse) bool {
	sync := one.sync
	if sync == nil {
		return false
	}
	one.sync = nil
	sync(r)
	return true
}

// protocolNames are the names of the protocols, each once.
func (one *member) protocolNames() []string { return protocolNames(one.protocols) }

func protocolNames(all []Protocol) []string {
	names := make([]string, 0, len(all))
	for _, p := range all {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// metadata is what a member told with a protocol; nil when it does not have it.
func (one *member) metadata(protocol *string) []byte {
	if protocol == nil {
		return nil
	}
	for _, p := range one.protocols {
		if p.Name == *protocol {
			return notNil(p.Metadata)
		}
	}
	return nil
}

// offers tells whether a member has exactly these protocols.
func (one *member) offers(protocols []Protocol) bool {
	return slices.EqualFunc(one.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// supports tells whether a member with these protocols fits into the group.
func (c *classic) supports(protocolType string, protocols []Protocol) bool {
	if c.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	if protocolType != c.protocolType {
		return false
	}
	return slices.ContainsFunc(protocols, func(p Protocol) bool { return c.supporters[p.Name] == len(c.members) })
}

// selectProtocol is the protocol that most members prefer among those that all have.
//
// Kafka: of as many votes, the first in the order of a HashMap.
func (c *classic) selectProtocol() *string {
	votes := map[string]int{}
	for _, one := range c.members {
		for _, p := range one.protocols {
			if c.supporters[p.Name] == len(c.members) {
				votes[p.Name]++
				break
			}
		}
	}
	var best *string
	for name, n := range votes {
		if best == nil || n > votes[*best] || n == votes[*best] && hashedBefore(name, *best) {
			best = &name
		}
	}
	return best
}

// hashedBefore tells which of two names comes first in a small java.util.HashMap.
func hashedBefore(a, b string) bool {
	bucket := func(s string) uint32 {
		h := uint32(wire.JavaHash(s))
		return (h ^ h>>16) & 15
	}
	if x, y := bucket(a), bucket(b); x != y {
		return x < y
	}
	return a < b
}

// allJoined tells whether the rebalance need not wait for anybody.
func (c *classic) allJoined() bool {
	return len(c.members) == c.waitingJoin && len(c.pendingJoin) == 0
}

// rebalanceTimeoutMs is the longest of the members.
func (c *classic) rebalanceTimeoutMs() int32 {
	var longest int32
	for _, one := range c.members {
		longest = max(longest, one.rebalanceTimeoutMs)
	}
	return longest
}

// checkMember tells whether a member is in the group, under its instance id if it has one.
func (c *classic) checkMember(id string, instanceID *string) error {
	if instanceID != nil {
		owner, ok := c.static[*instanceID]
		if !ok {
			return ErrUnknownMember
		}
		if owner != id {
			return ErrFencedInstance
		}
	}
	if c.byID[id] == nil {
		return ErrUnknownMember
	}
	return nil
}

// expectHeartbeat gives a member so much time until its next sign of life.
func (c *classic) expectHeartbeat(one *member, timeoutMs int32) {
	c.expectSign(one.id, timeoutMs)
}

func (c *classic) expectSign(memberID string, timeoutMs int32) {
	c.m.host.SetTimer(timerKey(heartbeatTimer, c.id, memberID), c.m.host.NowMs()+int64(timeoutMs))
}

func (c *classic) forgetHeartbeat(memberID string) {
	c.m.host.StopTimer(timerKey(heartbeatTimer, c.id, memberID))
}
