//go:build oracle

package differential

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func produce(version int16, topic string, partition int32, acks int16, records []byte) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		req.Acks, req.TimeoutMillis = acks, 30_000
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic, rt.TopicID = topic, s.topicID(topic)
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = partition, records
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return req
	}
}

type produceCase struct {
	name    string
	topic   string
	records []byte
	// versions to try; 8 and 13 when empty
	versions []int16
}

// produceCases is the error table of appends; every one is sent to a topic with max.message.bytes=2000.
func produceCases() []produceCase {
	valid := batch{records: some(2)}.encode()
	return []produceCase{
		{name: "valid", records: valid, versions: []int16{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
		{name: "empty records", records: []byte{}},
		{name: "garbage", records: []byte("nothing like a batch")},
		{name: "12 bytes", records: valid[:12]},
		{name: "batch cut", records: valid[:len(valid)-1]},
		{name: "two batches", records: append(append([]byte{}, valid...), valid...)},
		{name: "batch and a half", records: append(append([]byte{}, valid...), valid[:30]...)},
		{name: "magic 0", records: batch{records: some(1), magic: ptr(int8(0))}.encode()},
		{name: "magic 1", records: batch{records: some(1), magic: ptr(int8(1))}.encode()},
		{name: "magic 3", records: batch{records: some(1), magic: ptr(int8(3))}.encode()},
		{name: "magic -1", records: batch{records: some(1), magic: ptr(int8(-1))}.encode()},
		{name: "zstd", records: batch{records: some(1), attributes: 4}.encode(), versions: []int16{6}},
		{name: "unknown codec", records: batch{records: some(1), attributes: 5}.encode()},
		{name: "base offset 7", records: batch{records: some(1), baseOffset: 7}.encode()},
		{name: "too large", records: batch{records: []rec{{ts: base, value: make([]byte, 2000)}}}.encode()},
		{name: "CRC", records: batch{records: some(2), badCRC: true}.encode(), versions: []int16{3, 7, 8, 13}},
		{name: "last offset delta -1", records: batch{records: some(1), lastOffsetDelta: ptr(int32(-1))}.encode()},
		{name: "count 0", records: batch{count: ptr(int32(0)), lastOffsetDelta: ptr(int32(0))}.encode()},
		{name: "count -5", records: batch{records: some(1), count: ptr(int32(-5))}.encode()},
		{name: "count 2 of 1", records: batch{records: some(1), count: ptr(int32(2))}.encode()},
		{name: "count and delta 2 of 1", records: batch{records: some(1), count: ptr(int32(2)),
			lastOffsetDelta: ptr(int32(1))}.encode()},
		{name: "count 1 of 2", records: batch{records: some(2), count: ptr(int32(1)),
			lastOffsetDelta: ptr(int32(0))}.encode()},
		{name: "control", records: batch{records: some(1), attributes: 0x20}.encode()},
		{name: "transactional without a producer", records: batch{records: some(1), attributes: 0x10}.encode()},
		{name: "producer without sequence", records: batch{records: some(1), producerID: 6, noSequence: true}.encode()},
		{name: "offset deltas 0, 5", records: batch{records: []rec{{ts: base}, {ts: base, delta: ptr(int64(5))}}}.encode()},
		{name: "negative header key", records: batch{records: []rec{{ts: base, tail: []byte{2, 1}}}}.encode()},
		{name: "50 headers", records: batch{records: []rec{{ts: base, tail: []byte{100}}}}.encode()},
		{name: "bytes after the records", records: batch{count: ptr(int32(1)), lastOffsetDelta: ptr(int32(0)),
			body: append(rec{ts: base}.encode(0, base), 1, 2, 3)}.encode()},
		{name: "not gzip", records: batch{records: some(1), attributes: 1}.encode()},
		{name: "gzip", records: batch{records: some(5), gzip: true}.encode()},
		{name: "unused attribute bits", records: batch{records: some(1), attributes: 0x100}.encode()},
		{name: "timestamp type set", records: batch{records: some(1), attributes: 8}.encode()},
		{name: "timestamp -1", records: batch{records: []rec{{ts: -1}, {ts: -1}}}.encode()},
		{name: "timestamp -2", records: batch{records: []rec{{ts: -2}}}.encode()},
		{name: "timestamp 0", records: batch{records: []rec{{ts: 0}}}.encode()},
		{name: "2 hours ahead", records: batch{records: ahead(2)}.encode(), versions: []int16{7, 8, 13}},
		{name: "null keys, compacted", topic: "compacted", records: batch{records: nullKeys(5)}.encode(),
			versions: []int16{7, 8, 13}},
		{name: "empty key, compacted", topic: "compacted",
			records: batch{records: []rec{{ts: base, key: []byte{}}}}.encode()},
		{name: "timestamp type set, append time", topic: "append-time",
			records: batch{records: some(1), attributes: 8}.encode()},
		{name: "valid, append time", topic: "append-time", records: valid},
		{name: "unknown topic", topic: "nope", records: valid, versions: []int16{3, 8, 12, 13}},
	}
}

// sameAppend compares the answers to a Produce for partition 0. The base offset is told from the end before it, so that
// one append that only one side took does not make all later answers differ.
func (w *world) sameAppend(t *testing.T, name, topic string, ask request) {
	t.Helper()
	ends := make(map[*side]int64)
	for _, s := range w.sides {
		answer, ok := s.ask(t, listOffsets(7, -1, 0, topic, offsetQuery{0, -1, -1})(s)).(*kmsg.ListOffsetsResponse)
		if ok && len(answer.Topics) == 1 && len(answer.Topics[0].Partitions) == 1 {
			ends[s] = answer.Topics[0].Partitions[0].Offset
		}
	}
	var relative func(s *side, tree any) any
	relative = func(s *side, tree any) any {
		switch v := tree.(type) {
		case map[string]any:
			for key := range v {
				v[key] = relative(s, v[key])
				number, ok := v[key].(json.Number)
				if n, err := number.Int64(); ok && err == nil && key == "BaseOffset" && n >= 0 {
					v[key] = fmt.Sprintf("the end before it + %d", n-ends[s])
				}
			}
		case []any:
			for i := range v {
				v[i] = relative(s, v[i])
			}
		}
		return tree
	}
	w.same(t, name, ask, hide("LogAppendTime"), hideTimes, relative)
}

func ahead(n int) []rec {
	out := some(n)
	out[n-1].ts = time.Now().Add(2 * time.Hour).UnixMilli()
	return out
}

func nullKeys(n int) []rec {
	out := some(n)
	for i := range out {
		if i != 1 {
			out[i].key = nil
		}
	}
	return out
}

var clock = regexp.MustCompile(`-?\d{13,19}`)

// hideTimes replaces times in texts: the clock's bounds in a message are not the same on both sides.
func hideTimes(_ *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key := range v {
			v[key] = hideTimes(nil, v[key])
		}
	case []any:
		for i := range v {
			v[i] = hideTimes(nil, v[i])
		}
	case string:
		return clock.ReplaceAllString(v, "TIME")
	}
	return tree
}

func (w *world) testProduce(t *testing.T) {
	w.create(t, "produce", 1, "max.message.bytes", "2000", "retention.ms", "-1")
	w.create(t, "compacted", 1, "cleanup.policy", "compact")
	w.create(t, "append-time", 1, "message.timestamp.type", "LogAppendTime", "retention.ms", "-1")
	for _, c := range produceCases() {
		if c.topic == "" {
			c.topic = "produce"
		}
		if c.versions == nil {
			c.versions = []int16{8, 13}
		}
		for _, v := range c.versions {
			w.sameAppend(t, c.name, c.topic, produce(v, c.topic, 0, -1, c.records))
		}
	}
	for _, s := range w.sides { // Kafka never answers this
		s.dial(t).timeout = 2 * time.Second
	}
	w.sameAppend(t, "null records", "produce", produce(8, "produce", 0, -1, nil))
	for _, s := range w.sides {
		s.dial(t).timeout = answerTimeout
	}
	valid := batch{records: some(1)}.encode()
	for _, v := range []int16{3, 8, 12, 13} {
		w.same(t, "unknown partition", produce(v, "produce", 9, -1, valid))
		w.same(t, "acks 5", produce(v, "produce", 0, 5, valid))
		w.sameAppend(t, "acks 1", "produce", produce(v, "produce", 0, 1, valid))
	}
}

// testIdempotence is the sequence rules: each step is one batch of an own producer id and sequence.
func (w *world) testIdempotence(t *testing.T) {
	w.create(t, "sequences", 1, "retention.ms", "-1")
	steps := []struct {
		name          string
		pid           int64
		epoch         int16
		sequence      int32
		records       int
		transactional bool
	}{
		{"unknown producer starts at 5", 100, 0, 5, 2, false},
		{"next", 100, 0, 7, 1, false},
		{"duplicate of the last", 100, 0, 7, 1, false},
		{"duplicate of the one before", 100, 0, 5, 2, false},
		{"gap", 100, 0, 20, 1, false},
		{"overlap", 100, 0, 7, 2, false},
		{"new epoch not at 0", 100, 1, 3, 1, false},
		{"new epoch at 0", 100, 1, 0, 1, false},
		{"old epoch", 100, 0, 8, 1, false},
		{"second producer", 200, 3, 0, 1, false},
		{"near the end", 300, 0, 2147483646, 1, false},
		{"wraps inside", 300, 0, 2147483647, 2, false},
		{"after the wrap", 300, 0, 1, 1, false},
	}
	for i := range 7 {
		steps = append(steps, struct {
			name          string
			pid           int64
			epoch         int16
			sequence      int32
			records       int
			transactional bool
		}{fmt.Sprintf("fill the window %d", i), 400, 0, int32(i), 1, false})
	}
	for i := range 7 {
		steps = append(steps, steps[len(steps)-7])
		steps[len(steps)-1].name = fmt.Sprintf("again %d", i)
	}
	for _, st := range steps {
		b := batch{records: some(st.records), producerID: st.pid + 1, epoch: st.epoch, sequence: st.sequence}
		w.same(t, st.name, produce(11, "sequences", 0, -1, b.encode()), hide("LogAppendTime"))
	}
}
