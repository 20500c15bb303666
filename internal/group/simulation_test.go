package group

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The simulation runs consumers against a machine over a network that loses, doubles and reorders messages, with a
// log that takes its time, a coordinator that changes, members that die and begin anew, and a topic that is deleted.
// Members commit offsets all the time: none that was fenced may. When the network is good again, the group must settle.
func TestSimulation(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulate(t, seed, simulatedMembers, badMs) })
	}
}

// TestCrowd is the simulation with many members that join at once. The bad time is short: each member's every message
// takes its time in the test as well.
func TestCrowd(t *testing.T) { simulate(t, 1, 60, 20_000) }

const (
	simulatedMembers = 6
	badMs            = 400_000
	goodMs           = 700_000 // five minutes of a member's first join, and two rebalance timeouts
)

type simulation struct {
	t      *testing.T
	w      *world
	rng    *rand.Rand
	bad    bool
	events events
	next   int
	stable map[int32]string // generation → protocol of who was told of it
	also   func()           // done after each event; nil: nothing

	clients   []*client
	committed int32 // the latest generation of which a commit was taken
	commits   int
}

// event is something to be done at a time; events of one time come in the order in which they were thought of.
type event struct {
	atMs int64
	n    int
	do   func()
}

// events implements heap.Interface, the first on top.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].atMs < e[j].atMs || e[i].atMs == e[j].atMs && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func simulate(t *testing.T, seed uint64, members int, badMs int64) {
	w := newWorld()
	w.quiet = true
	w.config.MaxSize = 2000
	s := &simulation{t: t, w: w, rng: rand.New(rand.NewPCG(seed, 1)), bad: true, stable: map[int32]string{}}
	var clients []*client
	for i := range members {
		c := &client{s: s, name: fmt.Sprintf("c%d", i)}
		if i%3 == 2 {
			instance := fmt.Sprintf("i%d", i)
			c.instanceID = &instance
		}
		clients = append(clients, c)
		s.after(s.rng.Int64N(10_000), c.join)
	}
	s.clients = clients
	s.run(badMs)
	s.bad = false
	w.release(nil)
	gone := clients[0]
	gone.dead = true
	s.run(goodMs)
	s.checkSettled(clients[1:])
	s.require(s.commits > 0, "no commit was taken")
}

// after has something done later.
func (s *simulation) after(ms int64, do func()) {
	heap.Push(&s.events, event{s.w.nowMs + ms, s.next, do})
	s.next++
}

// send delivers a message, or does not, or twice.
func (s *simulation) send(deliver func()) {
	copies := 1
	if s.bad {
		switch p := s.rng.IntN(100); {
		case p < 10:
			copies = 0
		case p < 20:
			copies = 2
		}
	}
	for range copies {
		s.after(s.rng.Int64N(200), deliver)
	}
}

// run lets time pass; events and timers come in order.
func (s *simulation) run(ms int64) {
	until := s.w.nowMs + ms
	for s.w.nowMs < until {
		at, isEvent := until, false
		if len(s.events) > 0 && s.events[0].atMs < until {
			at, isEvent = s.events[0].atMs, true
		}
		for _, t := range s.w.timers {
			if t < at {
				at, isEvent = t, false
			}
		}
		s.w.advance(max(0, at-s.w.nowMs))
		if isEvent {
			heap.Pop(&s.events).(event).do()
		}
		if s.bad {
			s.disturb()
		}
		if s.next%max(1, len(s.clients)/simulatedMembers) == 0 { // it looks at every member
			s.check()
		}
		if s.also != nil {
			s.also()
		}
	}
}

// disturb changes the coordinator now and then, and has the log take its time or lose a write.
func (s *simulation) disturb() {
	switch s.rng.IntN(400) {
	case 0:
		s.w.restart()
	case 1, 2, 3:
		s.w.hold = true
		s.after(s.rng.Int64N(3000), func() { s.w.release(nil) })
	case 4:
		s.w.lose = true
	case 5:
		s.w.release(errLost)
	case 6, 7:
		if len(s.clients) > 0 {
			s.clients[s.rng.IntN(len(s.clients))].crash()
		}
	case 8:
		for _, write := range s.w.m.TopicsDeleted([]DeletedTopic{{Name: "t"}}, 1000) {
			_ = s.w.write(write)
		}
	}
}

// check tells whether what the group knows fits together.
func (s *simulation) check() {
	c := s.w.m.classicGroup("g")
	if c == nil {
		return
	}
	waiting, static := 0, 0
	supporters := map[string]int{}
	for _, one := range c.members {
		if one.join != nil {
			waiting++
		}
		if one.instanceID != nil {
			static++
			s.require(c.static[*one.instanceID] == one.id, "instance %s is not %s", *one.instanceID, one.id)
		}
		for _, p := range one.protocols {
			supporters[p.Name]++
		}
		s.require(c.byID[one.id] == one, "member %s is not found by its id", one.id)
		s.require(!c.pendingJoin[one.id], "member %s has joined and has not", one.id)
		_, timed := s.w.timers[timerKey(heartbeatTimer, "g", one.id)]
		s.require(timed || one.join != nil || one.sync != nil, "nobody minds member %s", one.id)
	}
	s.require(waiting == c.waitingJoin, "%d wait, not %d", waiting, c.waitingJoin)
	s.require(static == len(c.static) && len(c.members) == len(c.byID), "members are counted twice")
	for name, n := range supporters {
		s.require(c.supporters[name] == n, "%d support %s, not %d", n, name, c.supporters[name])
	}
	s.require(c.leader == "" && len(c.members) == 0 || c.byID[c.leader] != nil, "leader %q is no member", c.leader)
	s.require(c.state != Empty || len(c.members) == 0, "members in an empty group")
	_, timed := s.w.timers[timerKey(joinTimer, "g", "")]
	s.require(timed == (c.state == PreparingRebalance), "timer of joins: %v in %v", timed, c.state)
	_, timed = s.w.timers[timerKey(syncTimer, "g", "")]
	s.require(timed == (len(c.pendingSync) > 0), "timer of syncs: %v for %d", timed, len(c.pendingSync))
}

func (s *simulation) require(ok bool, format string, args ...any) {
	if !ok {
		s.t.Helper()
		s.t.Fatalf("at %d ms: "+format, append([]any{s.w.nowMs}, args...)...)
	}
}

// checkSettled tells whether all who are alive work in one generation, each with its own share, and nobody else.
func (s *simulation) checkSettled(alive []*client) {
	g := s.w.m.classicGroup("g")
	s.require(g != nil && g.state == Stable && len(g.members) == len(alive), "group is not settled: %v", g)
	for _, c := range alive {
		s.require(c.generation == g.generation, "%s is in generation %d, not %d", c.name, c.generation, g.generation)
		s.require(c.share == share(c.memberID, g.generation), "%s has %q", c.name, c.share)
	}
}

func share(memberID string, generation int32) string {
	return fmt.Sprintf("%s@%d", memberID, generation)
}

// client is a consumer: it joins, syncs, gives signs of life, and begins anew when it is told or hears nothing.
type client struct {
	s          *simulation
	name       string
	instanceID *string
	memberID   string
	generation int32
	share      string
	dead       bool
	asked      int // requests so far; answers to others than the last are late
}

// ask sends a request and takes the first answer that comes in time; without one it begins anew.
func ask[R any](c *client, patienceMs int64, request func(answer func(R)), answered func(R)) {
	if c.dead {
		return
	}
	c.asked++
	mine := c.asked
	c.s.send(func() {
		request(func(r R) {
			c.s.send(func() {
				if c.asked == mine {
					c.asked++
					answered(r)
				}
			})
		})
	})
	c.s.after(patienceMs, func() {
		if c.asked == mine {
			c.join()
		}
	})
}

func (c *client) join() {
	ask(c, 70_000, func(answer func(JoinResponse)) {
		protocols := []Protocol{{Name: "range"}, {Name: "sticky"}}
		_ = c.s.w.write(c.s.w.m.Join(&JoinRequest{Group: "g", MemberID: c.memberID,
			InstanceID: c.instanceID, ClientID: c.name,
			SessionTimeoutMs: 10_000, RebalanceTimeoutMs: 60_000, ProtocolType: "consumer", Protocols: protocols,
			NeedsMemberID: true, CanSkipAssignment: true}, answer))
	}, c.joined)
}

func (c *client) joined(r JoinResponse) {
	switch {
	case errors.Is(r.Err, ErrMemberIDRequired):
		c.memberID = r.MemberID
		c.join()
	case r.Err != nil:
		c.again(r.Err)
	default:
		c.memberID, c.generation = r.MemberID, r.Generation
		var all []Assignment
		if r.Leader == r.MemberID && !r.SkipAssignment {
			c.s.lead(c, r)
			for _, m := range r.Members {
				all = append(all, Assignment{MemberID: m.ID, Bytes: []byte(share(m.ID, r.Generation))})
			}
		}
		c.sync(all)
	}
}

// lead notes who leads a generation: there is one leader each, whatever static member ids become.
func (s *simulation) lead(c *client, r JoinResponse) {
	before, ok := s.stable[r.Generation]
	s.require(!ok || before == c.name || s.bad, "%s and %s lead generation %d", before, c.name, r.Generation)
	s.stable[r.Generation] = c.name
}

func (c *client) sync(all []Assignment) {
	ask(c, 70_000, func(answer func(SyncResponse)) {
		_ = c.s.w.write(c.s.w.m.Sync(&SyncRequest{Group: "g", MemberID: c.memberID, InstanceID: c.instanceID,
			Generation: c.generation, Assignments: all}, answer))
	}, func(r SyncResponse) {
		if r.Err != nil {
			c.again(r.Err)
			return
		}
		c.share = string(r.Assignment)
		c.s.after(3000, c.heartbeat)
	})
}

func (c *client) heartbeat() {
	c.commit()
	ask(c, 5000, func(answer func(error)) {
		answer(c.s.w.m.Heartbeat("g", c.memberID, c.instanceID, c.generation))
	}, func(err error) {
		if err != nil {
			c.again(err)
			return
		}
		c.s.after(3000, c.heartbeat)
	})
}

// crash is the death of the process; another one comes in its place after a while.
func (c *client) crash() {
	if c.dead {
		return
	}
	c.asked++ // whatever comes now comes to nobody
	c.memberID, c.generation, c.share = "", NoGeneration, ""
	c.s.after(c.s.rng.Int64N(20_000), c.join)
}

// commit commits an offset. What is taken is of a generation that none has come after.
func (c *client) commit() {
	generation := c.generation
	r := &CommitRequest{Group: "g", MemberID: c.memberID, InstanceID: c.instanceID, Generation: generation, Version: 9,
		RetentionMs: -1, Topics: []CommitTopic{{Topic: "t", Partitions: []CommitPartition{{LeaderEpoch: -1, CommitMs: -1}}}}}
	c.s.send(func() {
		each, write, err := c.s.w.m.Commit(r)
		if err = errors.Join(err, c.s.w.write(write)); err != nil || each[0] != nil {
			return
		}
		c.s.require(generation >= c.s.committed, "%s committed in generation %d after %d", c.name, generation, c.s.committed)
		c.s.committed = generation
		c.s.commits++
	})
}

// again joins again; who is not known any more does so as a new member.
func (c *client) again(err error) {
	if !errors.Is(err, ErrRebalance) {
		c.memberID, c.generation = "", NoGeneration
	}
	c.s.after(100, c.join)
}
