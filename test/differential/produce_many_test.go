//go:build oracle

package differential

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// produced is one partition of a produce request.
type produced struct {
	topic     string
	partition int32
	records   []byte
}

func produceMany(version, acks int16, all ...produced) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		req.Acks, req.TimeoutMillis = acks, 30_000
		for i, p := range all {
			rp := kmsg.NewProduceRequestTopicPartition()
			rp.Partition, rp.Records = p.partition, p.records
			if i > 0 && all[i-1].topic == p.topic {
				last := &req.Topics[len(req.Topics)-1]
				last.Partitions = append(last.Partitions, rp)
				continue
			}
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic, rt.TopicID = p.topic, s.topicID(p.topic)
			rt.Partitions = append(rt.Partitions, rp)
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

// byPartition orders topics and partitions of an answer: Kafka's order is a hash table's.
func byPartition(_ *side, tree any) any {
	m, _ := tree.(map[string]any)
	topics, _ := m["Topics"].([]any)
	key := func(v any) string {
		m, _ := v.(map[string]any)
		return fmt.Sprint(m["Topic"], m["TopicID"], m["Partition"])
	}
	for _, list := range append([]any{topics}, topics...) {
		if m, ok := list.(map[string]any); ok {
			list = m["Partitions"]
		}
		elements, _ := list.([]any)
		sort.SliceStable(elements, func(i, j int) bool { return key(elements[i]) < key(elements[j]) })
	}
	return tree
}

func (w *world) testProduceMany(t *testing.T) {
	w.create(t, "many-a", 3, "retention.ms", "-1")
	w.create(t, "many-b", 2, "retention.ms", "-1", "max.message.bytes", "200")
	one := batch{records: some(1)}.encode()
	two := batch{records: some(2)}.encode()
	corrupt := batch{records: some(1), badCRC: true}.encode()
	strange := batch{records: some(1), magic: ptr(int8(3))}.encode()
	transactional := batch{records: some(1), attributes: 0x10, producerID: 7}.encode()
	large := batch{records: some(20)}.encode()
	ok := produced{"many-a", 0, one}
	for name, all := range map[string][]produced{
		"two topics":                      {ok, {"many-b", 1, two}},
		"three partitions":                {{"many-a", 2, one}, {"many-a", 0, two}, {"many-a", 1, one}},
		"topic in two places":             {ok, {"many-b", 0, one}, {"many-a", 1, one}},
		"partition twice":                 {ok, {"many-a", 0, two}},
		"partition twice, last refused":   {ok, {"many-a", 0, corrupt}},
		"one corrupt":                     {{"many-a", 1, corrupt}, ok},
		"one too large":                   {ok, {"many-b", 0, large}},
		"one of a strange magic":          {ok, {"many-b", 0, strange}},
		"strange and unknown":             {{"nope", 0, one}, {"many-a", 2, strange}},
		"one transactional":               {ok, {"many-b", 0, transactional}},
		"one unknown topic":               {ok, {"nope", 0, one}},
		"one unknown partition":           {ok, {"many-a", 17, one}},
		"one without records":             {ok, {"many-b", 0, []byte{}}},
		"one with two batches":            {ok, {"many-b", 0, append(append([]byte{}, one...), one...)}},
		"nothing":                         {},
		"metadata topic":                  {{"__cluster_metadata", 0, one}},
		"everything wrong in its own way": {{"many-a", 9, one}, {"many-b", 0, large}, {"many-b", 1, corrupt}},
	} {
		for _, v := range []int16{8, 12, 13} {
			w.same(t, name, produceMany(v, -1, all...), byPartition)
		}
	}
	w.same(t, "acks 3 in all", produceMany(8, 3, ok, produced{"many-b", 0, one}, produced{"nope", 0, one}), byPartition)
	t.Run("acks 0", func(t *testing.T) {
		for name, all := range map[string][]produced{
			"good": {ok}, "one unknown": {ok, {"nope", 0, one}}, "corrupt": {{"many-a", 0, corrupt}}, "nothing": {},
			"strange": {{"many-a", 0, strange}},
		} {
			for _, v := range []int16{3, 9} {
				w.unanswered(t, fmt.Sprintf("%s v%d", name, v), produceMany(v, 0, all...))
			}
		}
	})
	w.sameRecords(t, "what is there", newFetch("many-a", 0), 11)
}

// unanswered sends a request that gets no answer, and then another one: is it answered, or is the connection closed?
func (w *world) unanswered(t *testing.T, name string, ask request) {
	t.Helper()
	var outcomes [2]string
	for i, s := range w.sides {
		c := dial(t, s.Addr)
		defer c.close()
		c.next++
		if _, err := c.c.Write(c.format.AppendRequest(nil, ask(s), c.next)); err != nil {
			t.Fatal(err)
		}
		_, outcomes[i] = c.roundTrip(t, metadataAll(1))
	}
	if outcomes[0] != outcomes[1] {
		t.Errorf("%s: Kafka %q, Tidemark %q", name, outcomes[0], outcomes[1])
	}
}

// testAppendLimits is the rest of the rules of appends: those that hang on the topic.
func (w *world) testAppendLimits(t *testing.T) {
	w.create(t, "limit-unpacked", 1, "compression.type", "uncompressed", "max.message.bytes", "200", "retention.ms", "-1")
	w.create(t, "limit-segment", 1, "segment.bytes", "1048576", "max.message.bytes", "3000000", "retention.ms", "-1")
	w.create(t, "limit-insync", 1, "min.insync.replicas", "2", "retention.ms", "-1")
	w.create(t, "limit-times", 1, "message.timestamp.before.max.ms", "60000", "cleanup.policy", "compact")
	packed := batch{gzip: true}
	for range 20 {
		packed.records = append(packed.records, rec{ts: base, value: []byte("the same, twenty times over")})
	}
	for _, v := range []int16{7, 8, 13} {
		w.same(t, "too large once unpacked", produce(v, "limit-unpacked", 0, -1, packed.encode()))
		large := batch{records: []rec{{ts: base, value: make([]byte, 1_100_000)}}}
		w.same(t, "larger than a segment", produce(v, "limit-segment", 0, -1, large.encode()))
		large.records[0].value = make([]byte, 1_048_000)
		w.same(t, "as large as a segment", produce(v, "limit-segment", 0, -1, large.encode()))
		for _, acks := range []int16{-1, 1} {
			w.same(t, "one of two in sync", produce(v, "limit-insync", 0, acks, batch{records: some(1)}.encode()))
		}
		old := batch{records: nullKeys(6)} // too old, and without a key but for one
		w.same(t, "old, and without keys", produce(v, "limit-times", 0, -1, old.encode()), hideTimes)
		now := time.Now().UnixMilli()
		mixed := batch{records: []rec{{ts: now}, {ts: now, key: []byte("k")}, {ts: -1}, {ts: 5, key: []byte("k")}}}
		w.same(t, "some old, some without keys", produce(v, "limit-times", 0, -1, mixed.encode()), hideTimes)
	}
	for _, s := range w.sides {
		s.waitFor(t, "offsets topic", func() bool {
			answer, ok := s.ask(t, findCoordinator(4, 0, "g")(s)).(*kmsg.FindCoordinatorResponse)
			return ok && answer.Coordinators[0].ErrorCode == 0
		})
		s.waitLed(t, "__consumer_offsets", 1)
	}
	w.same(t, "internal topic", produce(8, "__consumer_offsets", 0, -1, batch{records: some(1)}.encode()))
	w.same(t, "internal topic, empty", produce(8, "__consumer_offsets", 0, -1, []byte{}))
	w.same(t, "internal topic, acks 4", produce(8, "__consumer_offsets", 0, 4, batch{records: some(1)}.encode()))
	w.same(t, "delete from it", deleteRecords(2, "__consumer_offsets", 0, 0))
}
