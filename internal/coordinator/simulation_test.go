package coordinator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/internal/checkpoint"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
)

// simClient is a producer that runs transactions under one transactional id. Answers reach it or are lost; it asks
// again as real clients do. Several clients may share an id, so they fence each other.
type simClient struct {
	w    *simulation
	name string
	id   string

	p       txn.Producer
	ready   bool // has a producer id
	open    bool
	ending  bool
	commit  bool // the outcome it asked for
	n       int  // of the transaction
	written map[checkpoint.TopicPartition]bool
	waiting bool // for an answer
	asked   int  // questions, so that late answers are told apart
}

// simulation is a world with clients, in which everything is lost, doubled and reordered.
type simulation struct {
	*txnWorld
	rt       *rapid.T
	clients  []*simClient
	outcomes map[string]string // of transactions whose end was confirmed
	faults   bool
}

func (s *simulation) chance(percent int) bool {
	return s.faults && s.rng.IntN(100) < percent
}

// ask sends a question; its answer may be lost, and the client then asks again.
func (c *simClient) ask(question func(done func(error)), answered func(error)) {
	c.waiting = true
	c.asked++
	number := c.asked
	reply := func(err error) {
		if c.w.chance(10) {
			err = ErrNotAvailable // the answer was lost: the connection broke
		}
		c.w.run(func() {
			if c.asked == number && c.waiting {
				c.waiting = false
				answered(err)
			}
		})
	}
	question(reply)
	if c.w.chance(5) {
		question(func(error) {}) // doubled
	}
}

func (c *simClient) restart() {
	c.ready, c.open, c.ending, c.waiting = false, false, false, false
}

// step does the client's next thing.
func (c *simClient) step() {
	switch {
	case c.waiting:
	case !c.ready:
		c.init()
	case c.ending:
		c.end()
	case c.open && c.w.rng.IntN(3) == 0:
		c.ending, c.commit = true, c.w.rng.IntN(3) > 0
		c.end()
	default:
		c.produce()
	}
}

func (c *simClient) init() {
	var got txn.Producer
	c.ask(func(done func(error)) {
		c.w.coord.Init(c.id, 10_000, txn.NoProducer, func(p txn.Producer, err error) {
			if err == nil {
				got = p
			}
			done(err)
		})
	}, func(err error) {
		if err == nil {
			c.p, c.ready = got, true
			c.begin()
		}
	})
}

func (c *simClient) begin() {
	c.n++
	c.open, c.ending = false, false
	c.written = map[checkpoint.TopicPartition]bool{}
}

func (c *simClient) txnName() string { return fmt.Sprintf("%s.%d", c.name, c.n) }

// produce writes to a partition, which is added to the transaction first, as the leader of a partition does it.
func (c *simClient) produce() {
	tp := dataTP(c.w.rng.IntN(len(c.w.data)))
	if c.written[tp] {
		return
	}
	p, name, d := c.p, c.txnName(), c.w.data[tp]
	c.open = true // the client does not know before the answer
	c.ask(func(done func(error)) {
		began := d.producer(p.ID).generation
		c.w.coord.Add(c.id, p, []checkpoint.TopicPartition{tp}, c.w.version, func(err error) {
			if err == nil {
				err = d.data(p, name, began)
			}
			done(err)
		})
	}, func(err error) {
		switch {
		case err == nil:
			c.written[tp] = true
		case errors.Is(err, ErrNotAvailable):
			c.restart() // it cannot know whether the record was written: a client that gives up
		case !retriable(err):
			c.restart()
		}
	})
}

func (c *simClient) end() {
	p, name, commit, n := c.p, c.txnName(), c.commit, len(c.written)
	var next txn.Producer
	c.ask(func(done func(error)) {
		c.w.coord.End(c.id, p, commit, c.w.version, func(got txn.Producer, err error) {
			if err == nil {
				next = got
			}
			done(err)
		})
	}, func(err error) {
		switch {
		case err == nil:
			if n > 0 {
				c.w.outcomes[name] = map[bool]string{true: "commit", false: "abort"}[commit]
			}
			if c.w.version >= 2 {
				c.p = next
			}
			c.begin()
		case !retriable(err):
			c.restart()
		}
	})
}

// move is one random step of the world.
func (s *simulation) move() {
	switch n := s.rng.IntN(100); {
	case n < 60:
		s.step()
	case n < 92:
		s.clients[s.rng.IntN(len(s.clients))].step()
	case n < 96:
		s.pass(s.rt, time.Duration(s.rng.IntN(4000))*time.Millisecond)
		s.log.refuse = nil
	case n < 97:
		s.log.behind = s.faults && !s.log.behind
		if !s.log.behind {
			s.log.commit()
		}
	case n < 98 && s.faults && s.log.refuse == nil && s.rng.IntN(2) == 0:
		s.log.refuse = replica.ErrNotEnoughReplicas
	case n < 98 && s.faults:
		s.log.refuse = nil
		s.start()
	case n < 99 && s.faults:
		s.clients[s.rng.IntN(len(s.clients))].restart()
	}
}

func (s *simulation) check() {
	for tp, d := range s.data {
		for id, e := range d.producers {
			if len(e.open) > 0 {
				s.rt.Fatalf("%s: transaction %v of producer %d/%d is open for ever", tp, e.open, id, e.epoch)
			}
		}
		seen := map[string]string{}
		for _, event := range d.events {
			kind, name, _ := strings.Cut(event, " ")
			if seen[name] != "" && seen[name] != kind {
				s.rt.Fatalf("%s: transaction %s has two outcomes", tp, name)
			}
			seen[name] = kind
			if want := s.outcomes[name]; want != "" && want != kind {
				s.rt.Fatalf("%s: transaction %s: %s, but its producer was told %s", tp, name, kind, want)
			}
		}
	}
	s.checkAtomic()
}

// checkAtomic holds the outcomes of a transaction in all partitions against each other.
func (s *simulation) checkAtomic() {
	outcome := map[string]string{}
	for tp, d := range s.data {
		for _, event := range d.events {
			kind, name, _ := strings.Cut(event, " ")
			if outcome[name] != "" && outcome[name] != kind {
				s.rt.Fatalf("%s: transaction %s is committed in one partition and aborted in another", tp, name)
			}
			outcome[name] = kind
		}
	}
}

// TestSimulation lets clients run transactions while answers are lost, requests doubled, the order of everything
// mixed, replication held up, appends and markers refused, clients and coordinators killed. Afterwards no transaction
// is open, every one has one outcome in all partitions, and it is the one that its producer was told.
func TestSimulation(t *testing.T) {
	committed := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newTxnWorld(t, 3)
		w.version = rapid.SampledFrom([]int16{0, 2}).Draw(rt, "version")
		w.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		s := &simulation{txnWorld: w, rt: rt, outcomes: map[string]string{}, faults: true}
		w.failMarker = func(bool) error {
			if s.chance(10) {
				return errBroken
			}
			return nil
		}
		for i := range 4 {
			s.clients = append(s.clients, &simClient{w: s, name: fmt.Sprintf("c%d", i), id: fmt.Sprintf("t%d", i/2)})
		}
		for range 1500 {
			s.move()
		}
		s.faults, s.log.behind, s.log.refuse = false, false, nil
		s.log.commit()
		w.pass(rt, time.Minute)
		w.start()
		w.pass(rt, time.Minute)
		s.check()
		for _, o := range s.outcomes {
			if o == "commit" {
				committed++
			}
		}
	})
	t.Logf("%d confirmed commits", committed)
	if committed == 0 {
		t.Error("no transaction was ever committed")
	}
}
