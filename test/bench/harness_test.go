//go:build oracle

package bench

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
)

// answering is a connection to a server that answers every request with one response.
func answering(t *testing.T, r kmsg.Response) *wire {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	text := r.AppendTo([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0})
	text[2], text[3] = byte((len(text)-4)>>8), byte(len(text)-4)
	go func() {
		for {
			if _, err := server.Write(text); err != nil {
				return
			}
		}
	}()
	w := &wire{conn: client}
	w.in = newReader(client)
	return w
}

// Responses are read by hand as they are by kmsg.
func TestResponses(t *testing.T) {
	produced := kmsg.NewPtrProduceResponse()
	produced.Version = 9
	produced.Topics = []kmsg.ProduceResponseTopic{{Topic: "topic", Partitions: []kmsg.ProduceResponseTopicPartition{
		{Partition: 3, ErrorCode: kerr.NotLeaderForPartition.Code}}}}
	if err := answering(t, produced).produced(); !errors.Is(err, kerr.NotLeaderForPartition) {
		t.Errorf("produce: %v", err)
	}
	listed := kmsg.NewPtrListOffsetsResponse()
	listed.Version = 7
	listed.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: "topic", Partitions: []kmsg.ListOffsetsResponseTopicPartition{
		{Partition: 3, Timestamp: 17, Offset: 1 << 40}}}}
	if offset, err := answering(t, listed).lookedUp(); err != nil || offset != 1<<40 {
		t.Errorf("look-up: %d, %v", offset, err)
	}
	set, err := batch(10, 100, base, record.None)
	if err != nil {
		t.Fatal(err)
	}
	moveTo(set, 10, base+5)
	if !record.Batch(set).ValidCRC() || record.Batch(set).MaxTimestamp() != base+14 {
		t.Error("a batch that was moved is not valid")
	}
	fetched := kmsg.NewPtrFetchResponse()
	fetched.Version = 12
	fetched.Topics = []kmsg.FetchResponseTopic{{Topic: "topic", Partitions: []kmsg.FetchResponseTopicPartition{
		{Partition: 3, RecordBatches: append(set, set[:len(set)/2]...), // the second is cut
			AbortedTransactions: []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 1}, {FirstOffset: 2}}}}}}
	w := answering(t, fetched)
	if n, next, err := w.fetched(0); err != nil || n != len(set) || next != 10 {
		t.Errorf("fetch: %d bytes, next offset %d, %v; want %d and 10", n, next, err, len(set))
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = w.fetched(0) }); n > 0 {
		t.Errorf("%v allocations for a fetch", n)
	}
}

// The number of a question is where kmsg reads it.
func TestQuestions(t *testing.T) {
	q := vary(fetchRequest("topic", 0, mark, 500, 1))
	r := fetchRequest("topic", 0, 1<<33, 500, 1)
	if string(q.with(1<<33)) != string(appendFrame(nil, r)) {
		t.Error("offset of a fetch")
	}
	q = vary(produceRequest("topic", int32(mark>>32), []byte("records")))
	if string(q.with(7)) != string(appendFrame(nil, produceRequest("topic", 7, []byte("records")))) {
		t.Error("partition of a produce request")
	}
}

// A document says how far targets are met, and marks quantiles of few samples.
func TestDocument(t *testing.T) {
	d := &document{}
	add := func(name string, rounds ...round) {
		t.Helper()
		if err := d.addCase(result{Name: name, Unit: "look-up", Rounds: rounds}); err != nil {
			t.Fatal(err)
		}
	}
	add(lookUp4, round{Kafka: figures{"p99Millis": 8, "samples": 5000}, Tidemark: figures{"p99Millis": 2, "samples": 900}},
		round{Kafka: figures{"p99Millis": 12, "samples": 5000}, Tidemark: figures{"p99Millis": 2, "samples": 5000}})
	add(producePinned, round{figures{"megabytesPerSecond": 300}, figures{"megabytesPerSecond": 450},
		figures{"megabytesPerSecond": 540}})
	if d.Cases[0].Name != producePinned {
		t.Error("cases are not in the order of the plan")
	}
	page := d.markdown()
	for _, want := range []string{
		"| the same: p99 at 4 connections | 10.0 ms | 2.00† ms | **0.2** (0.167–0.25) | ≤ ¼ | yes |  |",
		"| throughput of produce, broker on one core | 300 MB/s | 450 MB/s | **1.50** (1.50–1.50) | ≥ 2 | **no** | 1.80 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no line %q in\n%s", want, page)
		}
	}
}

// The page in doc is the one of the figures beside it.
func TestPage(t *testing.T) {
	const dir = "../../doc"
	text, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	d.judge()
	page, err := os.ReadFile(filepath.Join(dir, "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.markdown(), string(page)); diff != "" {
		t.Errorf("doc/bench.md is not the page of doc/bench.json; make bench-kafka writes both: %s", diff)
	}
}

// The whole plan fits the time that the documentation names.
func TestPlan(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range caseNames() {
		if seen[name] {
			t.Errorf("two cases %q", name)
		}
		seen[name] = true
	}
	for _, c := range targets {
		if !seen[c.Case] {
			t.Errorf("target %q is of no case", c.What)
		}
	}
	all, some := planned(false), planned(true)
	t.Logf("all %v, targets %v", all, some)
	if all > 76*time.Minute || some > 15*time.Minute {
		t.Errorf("all cases take %v, those of targets %v", all, some)
	}
}

func planned(onlyTargets bool) time.Duration {
	s := &session{}
	wants := func(name string) bool { return !onlyTargets || isTarget(name) }
	s.plan(selected(groups(), wants))
	s.planned += s.startTime(2)
	if !onlyTargets {
		s.plan(growthGroups(func(string) bool { return true }))
		s.planned += sealedTime
	}
	return s.planned
}
