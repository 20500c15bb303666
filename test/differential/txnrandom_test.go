//go:build oracle

package differential

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/proc"
)

// The environment variables that make [TestRandomTransactions] longer: the first seed, how many seeds there are, and
// how many steps each takes between two restarts.
const (
	txnSeedEnv  = "TIDEMARK_TXN_SEED"
	txnSeedsEnv = "TIDEMARK_TXN_SEEDS"
	txnStepsEnv = "TIDEMARK_TXN_STEPS"
)

// TestRandomTransactions drives both sides by what a seed draws: producers of both protocols that begin, write, commit
// and abort in turns, that are fenced, time out and come back with an old epoch, offsets of groups in transactions,
// writers without transactions, markers of the abort tool, deleted records; a clean restart of the brokers and one
// after SIGKILL in between. Every answer is compared, and at the end what readers of each isolation get, the look-ups,
// the listings, and after the stop the files.
//
// Steps are made one at a time and what they set going is waited for, so that the layout of the logs is the same.
func TestRandomTransactions(t *testing.T) {
	first, n := int(proc.Number(t, txnSeedEnv, 1)), int(proc.Number(t, txnSeedsEnv, 3))
	steps := int(proc.Number(t, txnStepsEnv, 100))
	w := &txnWorld{world: newWorld(t, "offsets.topic.num.partitions", "3", "transaction.state.log.num.partitions", "3",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms", "100")}
	w.wakeCoordinators(t)
	var runs []*randomRun
	for seed := first; seed < first+n; seed++ {
		runs = append(runs, newRandomRun(t, w, seed))
	}
	each := func(name string, step func(r *randomRun, t *testing.T)) {
		for _, r := range runs {
			if r.failed {
				continue // what follows a difference differs as well
			}
			r.failed = !t.Run(fmt.Sprintf("seed %d %s", r.seed, name), func(t *testing.T) { step(r, t) })
		}
	}
	for i, phase := range []string{"at first", "after a restart", "after SIGKILL"} {
		switch phase {
		case "after a restart":
			w.restart(t)
		case "after SIGKILL":
			w.killAndRestart(t)
		}
		each(phase, func(r *randomRun, t *testing.T) {
			r.deletes = phase != "after a restart"
			r.phase(t, steps)
			if (r.seed+i)%3 == 0 {
				r.lapse()
			}
		})
	}
	each("at the end", (*randomRun).compare)
	for _, s := range w.sides {
		s.Process.Stop(t)
	}
	each("on disk", (*randomRun).compareFiles)
}

// wakeCoordinators waits until both sides coordinate groups and transactions.
func (w *txnWorld) wakeCoordinators(t *testing.T) {
	t.Helper()
	for _, s := range w.sides {
		for kind := range int8(2) {
			s.waitFor(t, "coordinators", func() bool {
				answer, ok := s.ask(t, findCoordinator(4, kind, "a")(s)).(*kmsg.FindCoordinatorResponse)
				return ok && answer.Coordinators[0].ErrorCode == 0
			})
		}
	}
}

// killAndRestart ends both sides as a crash does.
func (w *txnWorld) killAndRestart(t *testing.T) {
	t.Helper()
	for _, s := range w.sides {
		s.Process.Kill(t)
		s.Server = s.Restart(t, s.Dir)
		s.conn = nil
		s.learnAddress(t)
	}
}

// randomRun is what one seed draws, on topics and ids of its own.
type randomRun struct {
	*txnWorld
	t      *testing.T // of the phase
	seed   int
	rng    *rand.Rand
	start  int64 // wall clock, ms: all times from here on are a broker's
	failed bool

	topic   string
	ids     []string
	handles []*handle
	plain   []*plainProducer
	names   map[*side]map[int64]string // producer ids by the order in which they came up
	now     int64                      // the time of the next record, ms
	steps   int
	trail   []string
	seen    map[string]int // error codes by request, of Kafka
	times   map[int64]bool // of records
	// deletes: records may be deleted. Not before SIGKILL: Kafka writes down where logs start once a minute.
	deletes bool
	starts  [randomPartitions]int64 // of the logs, at the end
}

// handle is a producer as a client has it. Several may share a transactional id; all but the newest are fenced.
type handle struct {
	id      string
	p       producer
	raising bool            // transactions v2
	next    map[int32]int32 // sequence by partition
	open    bool
}

// plainProducer is idempotent and has no transactional id.
type plainProducer struct {
	p    producer
	next map[int32]int32
}

const randomPartitions = 2

func newRandomRun(t *testing.T, w *txnWorld, seed int) *randomRun {
	t.Helper()
	r := &randomRun{txnWorld: w, t: t, seed: seed, rng: rand.New(rand.NewPCG(uint64(seed), 56)),
		start: time.Now().Add(-time.Minute).UnixMilli(), topic: fmt.Sprintf("random-%d", seed),
		names: map[*side]map[int64]string{}, now: base, times: map[int64]bool{}, seen: map[string]int{}}
	for _, s := range w.sides {
		r.names[s] = map[int64]string{stranger.on(s): "stranger"}
	}
	// Segments are rolled: by markers, which have today's time, or by size. Not by full indexes: after SIGKILL Kafka does
	// not start over them when a clean restart came before.
	configs := []string{"retention.ms", "-1", "index.interval.bytes", "100"}
	if r.bySize() {
		configs = append(configs, "segment.ms", "9000000000000", "segment.bytes", "1048576")
		r.now = r.start - 10*3_600_000 // otherwise producers are so old that they are forgotten at a restart
	}
	w.create(t, r.topic, randomPartitions, configs...)
	for i := range 3 {
		r.ids = append(r.ids, fmt.Sprintf("%s-%c", r.topic, 'a'+i))
	}
	return r
}

// bySize tells whether segments are rolled when they are full, otherwise by markers.
func (r *randomRun) bySize() bool { return r.seed%2 == 0 }

// phase makes steps until their number is reached.
func (r *randomRun) phase(t *testing.T, steps int) {
	r.t = t
	r.ready()
	for range steps {
		r.step()
	}
}

// ready waits until both sides have loaded what they coordinate, and lead the topic.
func (r *randomRun) ready() {
	r.t.Helper()
	for _, s := range r.sides {
		s.waitLed(r.t, r.topic, randomPartitions)
		s.waitFor(r.t, "transactions loaded", func() bool {
			answer, ok := s.ask(r.t, describeTxn(r.ids...)(s)).(*kmsg.DescribeTransactionsResponse)
			return ok && !slices.ContainsFunc(answer.TransactionStates,
				func(one kmsg.DescribeTransactionsResponseTransactionState) bool {
					return one.ErrorCode != 0 && one.ErrorCode != transactionalIDNotFound
				})
		})
		s.waitFor(r.t, "producer ids", func() bool { // Kafka fetches a block of them when one is asked for
			answer, ok := s.ask(r.t, initProducerID(4, nil, -1, -1)(s)).(*kmsg.InitProducerIDResponse)
			return ok && answer.ErrorCode == 0
		})
		s.waitFor(r.t, "group loaded", func() bool {
			answer, ok := s.ask(r.t, r.groupOffsets(false)(s)).(*kmsg.OffsetFetchResponse)
			return ok && answer.Groups[0].ErrorCode == 0
		})
	}
}

const (
	concurrentTransactions  = 51
	transactionalIDNotFound = 105
)

// maxTrail is how many of the last steps a failure tells.
const maxTrail = 25

// ask sends a request to both sides and fails when the answers differ. It returns them, Kafka's first.
func (r *randomRun) ask(what string, ask request, changes ...change) [2]kmsg.Response {
	r.t.Helper()
	r.trail = append(r.trail, what)
	if len(r.trail) > maxTrail {
		r.trail = r.trail[1:]
	}
	var answers [2]kmsg.Response
	var trees [2]any
	for i, s := range r.sides {
		answers[i] = s.ask(r.t, ask(s))
		trees[i] = s.tree(r.t, answers[i])
		if i == 0 {
			r.note(strings.Fields(what)[0], trees[i])
		}
		for _, c := range append(slices.Clone(changes), r.rename, r.hideTimes) {
			trees[i] = c(s, trees[i])
		}
	}
	if d := difference(trees[0], trees[1]); d != "" {
		r.t.Fatalf("seed %d, step %d: the answers differ:\n%s\nthe last steps:\n  %s", r.seed, r.steps, d,
			strings.Join(r.trail, "\n  "))
	}
	return answers
}

// note counts the error codes in an answer.
func (r *randomRun) note(what string, tree any) {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "ErrorCode" {
				r.seen[fmt.Sprintf("%s: error %v", what, value)]++
			}
			r.note(what, value)
		}
	case []any:
		for _, value := range v {
			r.note(what, value)
		}
	}
}

// rename replaces producer ids by the order in which they came up, which is the same on both sides.
func (r *randomRun) rename(s *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			if n, ok := value.(json.Number); ok && key == "ProducerID" {
				v[key] = r.nameOf(s, n)
				continue
			}
			v[key] = r.rename(s, value)
		}
	case []any:
		for i := range v {
			v[i] = r.rename(s, v[i])
		}
	}
	return tree
}

func (r *randomRun) nameOf(s *side, n json.Number) string {
	id, err := n.Int64()
	if err != nil || id < 0 {
		return n.String()
	}
	return r.producerName(s, id)
}

func (r *randomRun) producerName(s *side, id int64) string {
	if r.names[s][id] == "" {
		r.names[s][id] = fmt.Sprintf("producer %d", len(r.names[s]))
	}
	return r.names[s][id]
}

// hideTimes replaces times that a broker's clock gave.
func (r *randomRun) hideTimes(s *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			n, ok := value.(json.Number)
			ms, err := n.Int64()
			if ok && err == nil && ms >= r.start && strings.HasSuffix(key, "Timestamp") {
				v[key] = "the broker's"
				continue
			}
			v[key] = r.hideTimes(s, value)
		}
	case []any:
		for i := range v {
			v[i] = r.hideTimes(s, v[i])
		}
	}
	return tree
}

// settleAll waits until no transaction of the run is being completed.
func (r *randomRun) settleAll() {
	r.t.Helper()
	for _, s := range r.sides {
		s.waitFor(r.t, "transactions complete", func() bool {
			answer, ok := s.ask(r.t, describeTxn(r.ids...)(s)).(*kmsg.DescribeTransactionsResponse)
			return ok && !slices.ContainsFunc(answer.TransactionStates,
				func(one kmsg.DescribeTransactionsResponseTransactionState) bool {
					return strings.HasPrefix(one.State, "Prepare")
				})
		})
	}
}
