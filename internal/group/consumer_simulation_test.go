package group

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"tidemark/internal/wire"
)

// TestConsumerSimulation has members of a consumer group work over a net that loses and doubles messages, with a
// coordinator that changes and a log that takes its time, while members come, go and change what they want. No
// partition is ever held by two; and once the net is good, all of them are held by those who want them.
func TestConsumerSimulation(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulateConsumers(t, seed) })
	}
}

var simulatedTopics = []string{"t", "u", "v"}

func simulateConsumers(t *testing.T, seed uint64) {
	w := newWorld()
	w.quiet = true
	w.config.ConsumerAssignors = [][]string{{UniformAssignor}, {RangeAssignor}}[seed%2]
	for i, name := range simulatedTopics {
		w.setTopic(name, int32(2+3*i))
	}
	s := &simulation{t: t, w: w, rng: rand.New(rand.NewPCG(seed, 2)), bad: true}
	var all []*consumerClient
	for i := range simulatedMembers {
		c := &consumerClient{s: s, name: fmt.Sprintf("c%d", i), has: map[wire.UUID][]int32{}}
		if i%3 == 2 {
			instance := fmt.Sprintf("i%d", i)
			c.instanceID = &instance
		}
		all = append(all, c)
		s.after(s.rng.Int64N(10_000), c.start)
	}
	s.also = func() {
		checkConsumers(s, all)
		if s.bad && s.rng.IntN(300) == 0 {
			all[s.rng.IntN(len(all))].disturb()
		}
	}
	s.run(badMs)
	s.bad = false
	w.release(nil)
	all[0].stop()
	s.run(goodMs)
	checkSettledConsumers(s, all[1:])
}

// checkConsumers tells whether no partition is held twice: in the coordinator's eyes, and of those who have a session.
func checkConsumers(s *simulation, clients []*consumerClient) {
	c, ok := s.w.m.groups["g"].(*consumer)
	if !ok {
		return
	}
	holders := map[string]string{}
	for id, m := range c.members {
		for _, held := range []owned{m.assigned, m.revoking} {
			for topic, partitions := range held {
				for p := range partitions {
					key := fmt.Sprint(nameOf(topic), p)
					s.require(holders[key] == "", "%s is held by %s and %s", key, holders[key], id)
					holders[key] = id
				}
			}
		}
		_, timed := s.w.timers[timerKey(sessionTimer, "g", id)]
		s.require(timed, "nobody minds member %s", id)
	}
	users := map[string]string{}
	for _, one := range clients {
		if c.members[one.memberID] == nil {
			continue // it is fenced and will learn it
		}
		for topic, partitions := range one.has {
			for _, p := range partitions {
				key := fmt.Sprint(nameOf(topic), p)
				s.require(users[key] == "", "%s is used by %s and %s", key, users[key], one.name)
				users[key] = one.name
			}
		}
	}
	if s.rng.IntN(500) == 0 {
		checkReplay(s, c)
	}
}

// checkReplay tells whether the log leads to the same group.
func checkReplay(s *simulation, c *consumer) {
	if len(s.w.held) > 0 {
		return
	}
	again := newWorld()
	again.quiet = true
	for _, r := range s.w.log {
		s.require(again.m.Replay(r) == nil, "record cannot be replayed")
	}
	d, ok := again.m.groups["g"].(*consumer)
	s.require(ok && d.epoch == c.epoch && d.assignmentEpoch == c.assignmentEpoch && len(d.members) == len(c.members) &&
		maps.EqualFunc(d.targets, c.targets, target.same) && maps.Equal(d.static, c.static), "log leads to another group")
	for id, m := range c.members {
		n := d.members[id]
		s.require(n != nil && n.sameWishes(m) && n.epoch == m.epoch && n.state == m.state && n.assigned.same(m.assigned) &&
			n.revoking.same(m.revoking), "log leads to another member %s", id)
	}
}

func checkSettledConsumers(s *simulation, alive []*consumerClient) {
	c, ok := s.w.m.groups["g"].(*consumer)
	s.require(ok && len(c.members) == len(alive) && c.stateName() == "Stable", "group is not settled: %v", c)
	wanted := map[string]bool{}
	held := 0
	for _, one := range alive {
		m := c.members[one.memberID]
		s.require(m != nil && m.epoch == one.epoch, "%s is not at its epoch", one.name)
		for id, partitions := range one.has {
			s.require(slices.Contains(one.topics, nameOf(id)), "%s has a topic that it does not want", one.name)
			held += len(partitions)
			s.require(slices.Equal(partitions, m.assigned.target()[id]), "%s has %v", one.name, one.has)
		}
		for _, t := range one.topics {
			wanted[t] = true
		}
	}
	total := 0
	for name := range wanted {
		total += s.w.image.Topic(name).NumPartitions()
	}
	s.require(held == total, "%d of %d partitions are held", held, total)
}

// consumerClient is a consumer of the consumer protocol.
type consumerClient struct {
	s          *simulation
	name       string
	instanceID *string
	memberID   string
	epoch      int32
	topics     []string
	has        map[wire.UUID][]int32 // what it works on
	dead       bool
	asked      int
	full       bool // everything is to be told: an answer did not come
	told       string
	takes      int // of what it has; of several that are under way the last counts
}

// start begins as a new process: a static member is the same again.
func (c *consumerClient) start() {
	c.asked++
	c.memberID = fmt.Sprintf("%s-%d", c.name, c.asked)
	c.wish()
	c.rejoin()
}

func (c *consumerClient) wish() {
	c.topics = nil
	for _, t := range simulatedTopics {
		if c.s.rng.IntN(3) > 0 {
			c.topics = append(c.topics, t)
		}
	}
	if c.topics == nil {
		c.topics = []string{"t"}
	}
}

func (c *consumerClient) rejoin() {
	c.epoch, c.full = 0, true
	c.drop()
	c.beat()
}

func (c *consumerClient) stop() {
	c.dead = true
	c.drop()
}

// beat sends a heartbeat. It tells everything when it joins or did not hear, else what has changed.
func (c *consumerClient) beat() {
	if c.dead {
		return
	}
	c.asked++
	mine := c.asked
	r := &ConsumerHeartbeat{Group: "g", MemberID: c.memberID, Epoch: c.epoch, InstanceID: c.instanceID, ClientID: c.name,
		RebalanceTimeoutMs: -1, NeedsMemberID: true}
	now := fmt.Sprint(c.topics, c.owned())
	if c.full {
		r.RebalanceTimeoutMs = 60_000
	}
	if c.full || now != c.told {
		r.Topics, r.Owned = slices.Clone(c.topics), c.owned()
	}
	c.told, c.full = now, true // until it is heard
	c.request(r, func(answer ConsumerAnswer, err error) {
		if c.asked == mine && !c.dead {
			c.full = false
			c.answered(answer, err)
		}
	})
	c.s.after(3000, func() {
		if c.asked == mine {
			c.beat()
		}
	})
}

func (c *consumerClient) request(r *ConsumerHeartbeat, done func(ConsumerAnswer, error)) {
	c.s.send(func() {
		answer, w, err := c.s.w.m.ConsumerHeartbeat(r)
		told := func(lost error) { c.s.send(func() { done(answer, cmp.Or(err, lost)) }) }
		if w == nil {
			told(nil)
			return
		}
		w.stored = told
		_ = c.s.w.write(w) // told says it
	})
}

func (c *consumerClient) owned() []OwnedPartitions {
	all := []OwnedPartitions{}
	for _, id := range sortedIDs(c.has) {
		all = append(all, OwnedPartitions{TopicID: id, Partitions: c.has[id]})
	}
	return all
}

func (c *consumerClient) answered(answer ConsumerAnswer, err error) {
	switch {
	case errors.Is(err, errLost):
		c.full = true
	case errors.Is(err, ErrUnreleasedInstance):
		c.full = true
	case err != nil:
		c.s.require(errors.Is(err, ErrUnknownMember) || errors.Is(err, ErrFencedMemberEpoch) ||
			errors.Is(err, ErrNotFound), "%s: %v", c.name, err)
		c.drop()
		c.s.after(100, c.rejoin)
	default:
		c.epoch = answer.Epoch
		if answer.Assigned {
			c.take(answer.Partitions)
		}
	}
}

// drop gives up everything.
func (c *consumerClient) drop() {
	c.takes++
	clear(c.has)
}

// take gives up what it is not to have any more, and takes the rest, at once or a little later.
func (c *consumerClient) take(all []OwnedPartitions) {
	c.takes++
	mine := c.takes
	c.s.after(c.s.rng.Int64N(2)*c.s.rng.Int64N(2000), func() {
		if c.takes != mine {
			return
		}
		clear(c.has)
		for _, t := range all {
			c.has[t.TopicID] = t.Partitions
		}
	})
}

// disturb has a client want something else, or end and begin anew, with a word of farewell or without.
func (c *consumerClient) disturb() {
	switch c.s.rng.IntN(4) {
	case 0, 1:
		c.wish()
		return
	case 2:
		epoch := int32(leavingEpoch)
		if c.instanceID != nil {
			epoch = staticLeaveEpoch
		}
		c.request(&ConsumerHeartbeat{Group: "g", MemberID: c.memberID, Epoch: epoch, InstanceID: c.instanceID,
			RebalanceTimeoutMs: -1, NeedsMemberID: true}, func(ConsumerAnswer, error) {})
	}
	c.drop()
	c.asked++
	c.s.after(c.s.rng.Int64N(5000), c.start)
}
