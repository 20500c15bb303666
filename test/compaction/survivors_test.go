//go:build oracle

package compaction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/ledger"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// The environment variables that make the comparison of survivors longer: the first seed, how many seeds there are, and
// how many steps each takes.
const (
	seedEnv  = "TIDEMARK_COMPACTION_SEED"
	seedsEnv = "TIDEMARK_COMPACTION_SEEDS"
	stepsEnv = "TIDEMARK_COMPACTION_STEPS"
)

// side is one of the two brokers.
type side struct {
	name string
	dir  string
	*conn
}

// sameSurvivors drives both brokers with the same writes, deletions and changes of configs while both compact as they
// like. When both are idle, the same records must be left.
func sameSurvivors(t *testing.T, kafka *oracle.Node) {
	dir := t.TempDir()
	args := []string{"--set", "tidemark.admin.listener="}
	for key, value := range brokerSettings {
		args = append(args, "--set", key+"="+value)
	}
	p, addr := proc.Serve(t, dir, 0, args...)
	oracle.WaitReady(t, p, addr)
	sides := []side{{"Kafka", kafka.Dir, dial(t, kafka.Addr)}, {"Tidemark", dir, dial(t, addr)}}
	first, n := int(proc.Number(t, seedEnv, 1)), int(proc.Number(t, seedsEnv, 4))
	steps := int(proc.Number(t, stepsEnv, 250))
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { survivorsOf(t, sides, uint64(seed), steps) })
	}
	if exit := p.Stop(t); exit != 0 {
		t.Errorf("Tidemark ended with status %d; its log:\n%s", exit, proc.Tail(p.Log(), 20))
	}
}

// history is what one seed does to one topic.
type history struct {
	t       *testing.T
	sides   []side
	rng     *rand.Rand
	topic   string
	traffic *traffic
	short   bool // delete.retention.ms is short: tombstones go
}

func survivorsOf(t *testing.T, sides []side, seed uint64, steps int) {
	all := []record.Codec{record.None, record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}
	rng := rand.New(rand.NewPCG(seed, 2))
	h := &history{t: t, sides: sides, rng: rng, topic: fmt.Sprintf("survivors-%d", seed), short: seed%2 == 0,
		traffic: newTraffic(seed+100, kind{keys: 5 + rng.IntN(60), codecs: all[:1+rng.IntN(len(all))],
			tombstones: rng.Float64() / 2, idempotent: rng.IntN(4), transactions: 1 + rng.IntN(3), maxRecords: 1 + rng.IntN(8),
			maxValue: 1 + rng.IntN(100)})}
	configs := []string{"cleanup.policy", "compact", "internal.segment.bytes", fmt.Sprint(segmentBytes),
		"min.cleanable.dirty.ratio", "0", "retention.ms", "-1", "message.timestamp.after.max.ms", "9223372036854775807",
		"file.delete.delay.ms", "1000"}
	if h.short {
		configs = append(configs, "delete.retention.ms", "1")
	}
	for _, s := range sides {
		s.CreateTopic(t, h.topic, 1, configs...)
	}
	for range steps {
		h.step()
	}
	for _, one := range h.traffic.closing() {
		h.send(one)
	}
	h.configure("cleanup.policy", "compact", "min.compaction.lag.ms", "0", "min.cleanable.dirty.ratio", "0")
	// Several rounds: the first one gives tombstones and markers their horizons, later ones drop them.
	for range 4 {
		h.send(h.traffic.filler(segmentBytes/2 + 100))
		h.send(h.traffic.filler(segmentBytes/2 + 100))
		for _, s := range sides {
			waitCompacted(t, s.dir, h.topic)
		}
	}
	h.compare()
}

func (h *history) send(s step) {
	h.t.Helper()
	for _, one := range h.sides {
		send(h.t, one.conn, h.topic, s)
	}
}

func (h *history) configure(configs ...string) {
	h.t.Helper()
	for _, one := range h.sides {
		setConfigs(h.t, one.Client, h.topic, configs...)
	}
}

// step writes, most of the time.
func (h *history) step() {
	h.t.Helper()
	switch n := h.rng.IntN(100); {
	case n < 92:
		h.send(h.traffic.next())
	case n < 95:
		h.configure("cleanup.policy", []string{"compact", "delete", "compact,delete"}[h.rng.IntN(3)])
	case n < 97:
		h.configure("min.compaction.lag.ms", []string{"0", "0", "100000000"}[h.rng.IntN(3)])
	case n < 98:
		h.configure("min.cleanable.dirty.ratio", []string{"0", "0.5", "0.9"}[h.rng.IntN(3)])
	default:
		h.deleteRecords()
	}
}

// deleteRecords moves the log start up, where the policy allows it.
func (h *history) deleteRecords() {
	h.t.Helper()
	h.configure("cleanup.policy", "compact,delete")
	end := h.sides[0].EndOffset(h.t, h.topic, 0)
	to := h.rng.Int64N(end/4 + 1)
	for _, one := range h.sides {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.TimeoutMillis = 30_000
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: h.topic,
			Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: to}}}}
		err := error(kerr.PolicyViolation)
		for deadline := time.Now().Add(time.Minute); err == kerr.PolicyViolation && time.Now().Before(deadline); {
			// Kafka answers the change of the policy before its broker has taken it on.
			answer := ledger.Ask[*kmsg.DeleteRecordsResponse](h.t, one.Client, req)
			err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
		}
		if err != nil {
			h.t.Fatalf("%s: delete records before %d of %s: %v", one.name, to, h.topic, err)
		}
	}
}

// compare reads both sides, with both isolations.
func (h *history) compare() {
	t := h.t
	t.Helper()
	for _, committed := range []bool{false, true} {
		var got [2][]string
		for i, one := range h.sides {
			end := one.EndOffset(t, h.topic, 0)
			p := &ledger.Partition{Topic: h.topic, End: end}
			p.Start = h.start(one)
			for _, r := range ledger.Consume(t, one.Addr, []*ledger.Partition{p}, committed)[p.Name()] {
				if !r.Control {
					got[i] = append(got[i], fmt.Sprintf("%d@%d %q=%q(%v) %v", r.Offset, r.Timestamp, r.Key, r.Value,
						r.Value == nil, r.Headers))
				}
			}
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("committed %v: %d records of Kafka's, %d of Tidemark's; the first difference: %s", committed,
				len(got[0]), len(got[1]), firstDifference(got[0], got[1]))
		}
		t.Logf("%s, committed %v: %d records", h.topic, committed, len(got[0]))
	}
	want, have := activeBase(t, h.sides[0].dir+"/"+h.topic+"-0"), activeBase(t, h.sides[1].dir+"/"+h.topic+"-0")
	if want != have {
		t.Errorf("the active segment begins at %d (Kafka), %d (Tidemark)", want, have)
	}
	for _, name := range filesOf(t, h.sides[1].dir+"/"+h.topic+"-0") {
		for _, suffix := range []string{segment.CleanedSuffix, segment.SwapSuffix} {
			if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// start is the log start offset.
func (h *history) start(one side) int64 {
	h.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: h.topic,
		Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -2, CurrentLeaderEpoch: -1}}}}
	answer := ledger.Ask[*kmsg.ListOffsetsResponse](h.t, one.Client, req)
	return answer.Topics[0].Partitions[0].Offset
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("Kafka %s, Tidemark %s", x, y)
		}
	}
	return "none"
}
