//go:build oracle

package differential

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/pair"
)

const t0 = int64(1700000000000)

// at is a batch of records with the times t0+d.
func at(deltas ...int64) batch {
	var b batch
	for _, d := range deltas {
		b.records = append(b.records, rec{ts: t0 + d, key: []byte("k"), value: []byte("v")})
	}
	return b
}

func deleteRecords(version int16, topic string, partition int32, offset int64) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.SetVersion(version)
		req.TimeoutMillis = 10_000
		rt := kmsg.NewDeleteRecordsRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewDeleteRecordsRequestTopicPartition()
		rp.Partition, rp.Offset = partition, offset
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return req
	}
}

// lookup is a log and the times to ask for. Most are taken from public reports of wrong answers.
type lookup struct {
	name    string
	configs []string
	batches []batch
	trim    int64 // DeleteRecords to it, unless 0
	ask     []int64
	want    []int64 // offsets
	// falseNone are times for which Kafka says that there is no record, and there is one: the one class of answers in
	// which Tidemark differs, see doc/compat.md.
	falseNone []int64
}

const maxTime = -3 // asks for the largest time; below t0 it is not taken relative

func lookups() []lookup {
	large := func(b batch) batch {
		for i := range b.records {
			b.records[i].value = make([]byte, 600_000/len(b.records))
		}
		return b
	}
	packed := func(b batch) batch { b.gzip = true; return b }
	segments := []string{"segment.ms", "100", "index.interval.bytes", "0"}
	var apart []batch
	for i := range int64(9) {
		apart = append(apart, at(i/3*1000+i%3*10))
	}
	return []lookup{
		{name: "inside a batch", batches: []batch{at(0, 10, 10, 20)}, ask: []int64{5, 10, 11, 20, 21, -5},
			want: []int64{1, 1, 3, 3, -1, 0}},
		{name: "between records", batches: []batch{at(2), at(4), at(6), at(8)}, ask: []int64{3, 5, 7, 9},
			want: []int64{1, 2, 3, -1}},
		{name: "out of order", batches: []batch{at(100), at(50), at(200), at(200), at(150)},
			ask: []int64{0, 60, 100, 101, 200, 201, maxTime}, want: []int64{0, 0, 0, 2, 2, -1, 2}},
		{name: "out of order in one batch", batches: []batch{at(100, 50, 200, 200, 150)},
			ask: []int64{0, 60, 100, 101, 200, 201, maxTime}, want: []int64{0, 0, 0, 2, 2, -1, 2}},
		{name: "trimmed inside a batch", batches: []batch{at(0, 10, 20), at(5)}, trim: 2,
			ask: []int64{0, 5, maxTime}, want: []int64{2, 2, 2}},
		{name: "largest time trimmed away", batches: []batch{at(0, 10, 20), at(5)}, trim: 3, ask: []int64{maxTime},
			want: []int64{2}},
		{name: "largest time in an earlier segment", trim: 2, ask: []int64{maxTime}, want: []int64{1},
			configs: []string{"segment.bytes", "1048576"},
			batches: []batch{large(at(10)), at(60, 50), large(at(58)), large(at(59))}},
		{name: "after the last record", batches: []batch{at(0)}, ask: []int64{1}, want: []int64{-1}},
		{name: "trim before a time", batches: []batch{at(1000), at(1), at(2), at(3)}, ask: []int64{500, 1001},
			want: []int64{0, -1}},
		{name: "many segments", configs: segments, batches: apart, want: []int64{0, 1, 2, 3, 3, 4, 6, 8, -1, 8},
			ask: []int64{0, 10, 20, 21, 1000, 1010, 1500, 2020, 2021, maxTime}},
		{name: "many segments, trimmed", configs: segments, batches: apart, trim: 4, falseNone: []int64{0, 10},
			ask: []int64{0, 10, 1000, 1010, 1011, 2020, 2021, maxTime}, want: []int64{4, 4, 4, 4, 5, 8, -1, 8}},
		{name: "compressed, largest not last", batches: []batch{packed(at(50, 10, 60, 60, 20)), packed(at(5, 70, 30)),
			packed(at(70, 70, 1))}, ask: []int64{0, 50, 51, 60, 61, 70, 71, maxTime},
			want: []int64{0, 0, 2, 2, 6, 6, -1, 6}},
		{name: "compressed and trimmed", batches: []batch{packed(at(50, 10, 60, 60, 20)), packed(at(5, 70, 30))}, trim: 3,
			ask: []int64{50, 60, 61, maxTime}, want: []int64{3, 3, 6, 6}},
		{name: "no times", batches: []batch{{records: []rec{{ts: -1}}}, {records: []rec{{ts: -1}, {ts: -1}}}},
			ask: []int64{0, maxTime}, want: []int64{-1, 0}},
		{name: "times and none", batches: []batch{{records: []rec{{ts: -1}}}, at(5), {records: []rec{{ts: -1}}}},
			ask: []int64{0, 5, 6, maxTime}, want: []int64{1, 1, -1, 1}},
		{name: "append time", configs: []string{"message.timestamp.type", "LogAppendTime"},
			batches: []batch{at(0, 1), at(2)}, ask: []int64{0}, want: []int64{0}},
		{name: "spread of more than 2^31 ms", batches: []batch{at(0), at(3_000_000_000), at(-3_000_000_000)},
			ask: []int64{0, 1, maxTime}, want: []int64{0, 1, 1}},
		{name: "empty", ask: []int64{0, maxTime}, want: []int64{-1, -1}},
	}
}

// testLookups are time look-ups that other brokers got wrong.
func (w *world) testLookups(t *testing.T) {
	for i, l := range lookups() {
		topic := fmt.Sprintf("lookup-%d", i)
		w.create(t, topic, 1, append([]string{"retention.ms", "-1"}, l.configs...)...)
		for _, b := range l.batches {
			w.same(t, l.name+": produce", produce(11, topic, 0, -1, b.encode()), hide("LogAppendTime"))
		}
		if l.trim > 0 {
			w.same(t, l.name+": trim", deleteRecords(2, topic, 0, l.trim))
		}
		for j, d := range l.ask {
			w.lookUp(t, l, topic, d, l.want[j])
		}
		for _, special := range []int64{-1, -2} {
			w.same(t, l.name+": ends", listOffsets(7, -1, 0, topic, offsetQuery{0, special, -1}))
		}
		for offset := range int64(4) {
			w.same(t, fmt.Sprintf("%s: fetch %d", l.name, offset), newFetch(topic, offset).request(11), cutBatches)
		}
	}
}

// lookUp asks both sides for a time, relative to t0.
func (w *world) lookUp(t *testing.T, l lookup, topic string, d, want int64) {
	t.Helper()
	ts := t0 + d
	if d == maxTime {
		ts = maxTime
	}
	ask := listOffsets(7, -1, 0, topic, offsetQuery{0, ts, -1})
	wants := [2]int64{want, want}
	if slices.Contains(l.falseNone, d) {
		if wants[0] = -1; pair.Twin() {
			wants[1] = -1
		}
	} else {
		w.same(t, fmt.Sprintf("%s: time %d", l.name, d), ask, hideAppendTime)
	}
	for i, s := range w.sides {
		answer, ok := s.ask(t, ask(s)).(*kmsg.ListOffsetsResponse)
		if !ok {
			t.Fatalf("%s does not answer", s.Name)
		}
		if got := answer.Topics[0].Partitions[0].Offset; got != wants[i] {
			t.Errorf("%s: time %d: %s says %d, should say %d", l.name, d, s.Name, got, wants[i])
		}
	}
}

// hideAppendTime hides times of the broker's clock.
func hideAppendTime(_ *side, tree any) any {
	m, _ := tree.(map[string]any)
	topics, _ := m["Topics"].([]any)
	for _, topic := range topics {
		partitions, _ := topic.(map[string]any)["Partitions"].([]any)
		for _, p := range partitions {
			one := p.(map[string]any)
			if large(one["Timestamp"]) {
				one["Timestamp"] = "the broker's"
			}
		}
	}
	return tree
}

// cutBatches compares only the length of what was fetched: append times are in it.
func cutBatches(_ *side, tree any) any {
	m, _ := tree.(map[string]any)
	topics, _ := m["Topics"].([]any)
	for _, topic := range topics {
		partitions, _ := topic.(map[string]any)["Partitions"].([]any)
		for _, p := range partitions {
			one := p.(map[string]any)
			one["RecordBatches"] = len(fmt.Sprint(one["RecordBatches"]))
		}
	}
	return tree
}

func (w *world) testDeleteRecords(t *testing.T) {
	w.create(t, "trimmed", 2, "retention.ms", "-1")
	w.create(t, "trimmed-compacted", 1, "cleanup.policy", "compact")
	w.create(t, "trimmed-both", 1, "cleanup.policy", "compact,delete", "retention.ms", "-1")
	w.fill(t, "trimmed")
	w.fill(t, "trimmed-both")
	for v := int16(0); v <= 2; v++ {
		for _, offset := range []int64{-2, 0, 13, 1 << 40} {
			w.same(t, fmt.Sprintf("to %d", offset), deleteRecords(v, "trimmed", 0, offset))
		}
		w.same(t, "unknown topic", deleteRecords(v, "nope", 0, 1))
		w.same(t, "unknown partition", deleteRecords(v, "trimmed", 7, 1))
		w.same(t, "compacted", deleteRecords(v, "trimmed-compacted", 0, 0))
		w.same(t, "compacted and deleted", deleteRecords(v, "trimmed-both", 0, 4+int64(v)))
		w.same(t, "empty partition, all", deleteRecords(v, "trimmed", 1, -1))
		w.same(t, "forward", deleteRecords(v, "trimmed", 0, 3+int64(v)))
		w.same(t, "back", deleteRecords(v, "trimmed", 0, 2))
		w.same(t, "fetch below", newFetch("trimmed", 2).request(11))
		w.same(t, "fetch there", newFetch("trimmed", 3+int64(v)).request(11))
		w.same(t, "earliest", listOffsets(7, -1, 0, "trimmed", offsetQuery{0, -2, -1}))
	}
	w.same(t, "all", deleteRecords(2, "trimmed", 0, -1))
	w.same(t, "earliest", listOffsets(7, -1, 0, "trimmed", offsetQuery{0, -2, -1}))
	w.same(t, "produce after that", produce(8, "trimmed", 0, -1, batch{records: some(1)}.encode()))
}

// testReports are fields of a client's batch that a broker must not believe, and frames that clients send.
func (w *world) testReports(t *testing.T) {
	w.create(t, "reports", 1, "retention.ms", "-1")
	w.create(t, "reports-large", 1, "retention.ms", "-1")
	w.same(t, "append time set by the client",
		produce(8, "reports", 0, -1, batch{records: some(1), attributes: 8}.encode()), hide("LogAppendTime"))
	lying := batch{records: some(1)}.encode()
	setMaxTimestamp(lying, base+99_999)
	w.same(t, "false largest time", produce(8, "reports", 0, -1, lying))
	w.same(t, "largest time", listOffsets(7, -1, 0, "reports", offsetQuery{0, -3, -1}))
	w.same(t, "stored", newFetch("reports", 0).request(11))

	big := batch{records: []rec{{ts: base, value: make([]byte, 5000)}}}.encode()
	w.same(t, "large", produce(8, "reports-large", 0, -1, big))
	w.same(t, "small", produce(8, "reports-large", 0, -1, batch{records: some(1)}.encode()))
	for _, limits := range [][2]int32{{1, 1}, {int32(len(big)) + 30, 1 << 20}, {1 << 20, int32(len(big)) + 30}} {
		f := newFetch("reports-large", 0)
		f.partMax, f.maxBytes = limits[0], limits[1]
		w.same(t, fmt.Sprint("limits ", limits), f.request(11))
	}
	for _, client := range []string{"", "x", "ü"} {
		for _, s := range w.sides {
			c := dial(t, s.Addr)
			defer c.close()
			c.format = kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))
			if client == "" {
				c.format = kmsg.NewRequestFormatter() // null
			}
			if _, outcome := c.roundTrip(t, metadataAll(12)); outcome != "" {
				t.Errorf("%s: client id %q: %s", s.Name, client, outcome)
			}
		}
	}
}
