//go:build oracle

package relay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/metadata"
	"tidemark/record"
	"tidemark/test/ledger"
)

// topic is what the test does with one topic.
type topic struct {
	name       string
	partitions int32
	configs    []string
	codecs     []record.Codec // of the batches sent, in turn
	step       int64          // ms between records
	idempotent bool
	id         [16]byte
	producers  []*producer // one a partition
	batches    int         // sent a leg and partition
}

// producer sends to one partition under a producer id that the test chose, across all servers.
type producer struct {
	id    int64 // −1: not idempotent
	next  int32 // sequence
	clock int64 // timestamp of the next record
	rng   *rand.Rand
	last  *ledger.Batch // the last that was taken
	base  int64         // its base offset
}

var allCodecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}

// firstTopics are made in the first leg and live to the end.
func firstTopics() []*topic {
	forever := func(more ...string) []string { return append([]string{"retention.ms", "-1"}, more...) }
	return []*topic{
		{name: "codecs", partitions: 5, configs: forever(), codecs: allCodecs, step: 7, idempotent: true, batches: 10},
		{name: "rolled", partitions: 3, configs: forever("segment.ms", "60000", "index.interval.bytes", "64"),
			codecs: allCodecs, step: 2000, idempotent: true, batches: 12},
		{name: "small-segments", partitions: 2, configs: forever("internal.segment.bytes", "3000",
			"index.interval.bytes", "200", "segment.index.bytes", "1024"), codecs: allCodecs[:1], step: 5, idempotent: true,
			batches: 25},
		{name: "plain.topic_with-all-signs", partitions: 1, configs: forever(), codecs: allCodecs, step: 1000, batches: 4},
		{name: "recompressed", partitions: 1, configs: forever("compression.type", "zstd"), codecs: allCodecs, step: 3,
			idempotent: true, batches: 5},
		{name: "append-time", partitions: 1, configs: forever("message.timestamp.type", "LogAppendTime"),
			codecs: allCodecs, step: 3, idempotent: true, batches: 5},
		{name: "compacted", partitions: 1, configs: []string{"cleanup.policy", "compact",
			"min.compaction.lag.ms", "86400000"}, codecs: allCodecs, step: 3, idempotent: true, batches: 5},
		{name: "empty", partitions: 2, configs: forever()},
	}
}

// changeTopics makes the topics of the first leg, or deletes, makes, extends and reconfigures some.
func (w *world) changeTopics(s *server) {
	w.t.Helper()
	if len(w.topics) == 0 {
		for _, tp := range firstTopics() {
			w.create(s, tp)
		}
		return
	}
	if old := fmt.Sprintf("leg-%d", w.legs-2); w.topics[old] != nil {
		s.DeleteTopic(w.t, old)
		w.book.Forget(old)
		delete(w.topics, old)
	}
	w.create(s, &topic{name: fmt.Sprintf("leg-%d", w.legs), partitions: 2, configs: []string{"retention.ms", "-1",
		"max.message.bytes", strconv.Itoa(100_000 + w.legs)}, codecs: allCodecs, step: 11, idempotent: true, batches: 4})
	w.extend(s, "empty")
	w.reconfigure(s, "codecs", "max.message.bytes", strconv.Itoa(200_000+w.legs))
}

func (w *world) create(s *server, tp *topic) {
	w.t.Helper()
	if w.kafka.Version < "4.1" { // such small segments were allowed by another name, and are not any more
		if i := slices.Index(tp.configs, "internal.segment.bytes"); i >= 0 {
			tp.configs = slices.Delete(tp.configs, i, i+2)
		}
	}
	s.CreateTopic(w.t, tp.name, tp.partitions, tp.configs...)
	w.topics[tp.name] = tp
	for p := range tp.partitions {
		w.addProducer(tp, p)
	}
	w.learnLeaders(s)
	tp.id = s.Metadata(w.t, tp.name)[tp.name].TopicID
}

func (w *world) addProducer(tp *topic, partition int32) {
	w.book.Partition(tp.name, partition)
	n := int64(len(w.book.Partitions()))
	p := &producer{id: -1, clock: time.Now().Add(-6 * time.Hour).UnixMilli(), rng: rand.New(rand.NewPCG(uint64(n), 1))}
	if tp.idempotent {
		p.id = 700_000 + n + 1000*int64(w.legs)
	}
	tp.producers = append(tp.producers, p)
}

// extend adds a partition to a topic.
func (w *world) extend(s *server, name string) {
	w.t.Helper()
	tp := w.topics[name]
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = name, tp.partitions+1
	req.Topics = append(req.Topics, rt)
	answer := ledger.Ask[*kmsg.CreatePartitionsResponse](w.t, s.Client, req)
	if err := kerr.ErrorForCode(answer.Topics[0].ErrorCode); err != nil {
		w.t.Fatalf("extend %s: %v", name, err)
	}
	s.WaitLed(w.t, name, tp.partitions+1)
	w.addProducer(tp, tp.partitions)
	w.excused = append(w.excused, fmt.Sprintf("Expected partition %s-%d ", name, tp.partitions))
	tp.partitions++
	w.learnLeaders(s)
}

func (w *world) reconfigure(s *server, name, key, value string) {
	w.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, name
	rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	rc.Name, rc.Value = key, &value
	rr.Configs = append(rr.Configs, rc)
	req.Resources = append(req.Resources, rr)
	answer := ledger.Ask[*kmsg.IncrementalAlterConfigsResponse](w.t, s.Client, req)
	if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
		w.t.Fatalf("configs of %s: %v", name, err)
	}
	tp := w.topics[name]
	for i := 0; i < len(tp.configs); i += 2 {
		if tp.configs[i] == key {
			tp.configs[i+1] = value
			return
		}
	}
	tp.configs = append(tp.configs, key, value)
}

// batch makes the next batch of a producer.
func (p *producer) batch(tp *topic, i int) *ledger.Batch {
	b := &ledger.Batch{Codec: tp.codecs[i%len(tp.codecs)], ProducerID: p.id, Sequence: p.next}
	for range 1 + p.rng.IntN(12) {
		p.clock += tp.step
		r := ledger.Record{Timestamp: p.clock, Key: p.bytes(20), Value: p.bytes(300)}
		if p.rng.IntN(4) == 0 {
			r.Timestamp -= 3 * tp.step // times do not only rise
		}
		if tp.name == "compacted" {
			r.Key = fmt.Appendf(nil, "key %d", p.rng.IntN(1000))
		}
		for range p.rng.IntN(3) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: fmt.Sprint("h", p.rng.IntN(9)), Value: p.bytes(9)})
		}
		b.Records = append(b.Records, r)
	}
	return b
}

// bytes returns up to n bytes, or null.
func (p *producer) bytes(n int) []byte {
	if p.rng.IntN(8) == 0 {
		return nil
	}
	b := make([]byte, p.rng.IntN(n))
	for i := range b {
		b[i] = byte('a' + p.rng.IntN(6)) // compresses somewhat
	}
	return b
}

func (w *world) encode(b *ledger.Batch) []byte {
	w.t.Helper()
	encoded, err := b.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return encoded
}

// send sends the producer's next batch, which must be taken.
func (w *world) send(s *server, tp *topic, partition int32, b *ledger.Batch) {
	w.t.Helper()
	p, book := tp.producers[partition], w.book.Partition(tp.name, partition)
	got, err := s.Produce(tp.name, partition, w.encode(b))
	if err != nil || got.Err() != nil || got.Base != book.End {
		w.t.Fatalf("produce to %s: offset %d, want %d; %v %v", book.Name(), got.Base, book.End, got.Err(), err)
	}
	book.Added(*b, got)
	if p.id >= 0 {
		p.last, p.base, p.next = b, got.Base, p.next+int32(len(b.Records))
	}
}

// write sends batches to every partition.
func (w *world) write(s *server) {
	w.t.Helper()
	for _, tp := range w.topics {
		for partition, p := range tp.producers {
			for i := range tp.batches {
				w.send(s, tp, int32(partition), p.batch(tp, i+partition))
			}
		}
	}
}

// continueProducers proves that the producers' state came across: the last batch again is a duplicate, one behind a
// gap is refused, and the next sequence is taken.
func (w *world) continueProducers(s *server) {
	w.t.Helper()
	for _, tp := range w.topics {
		for partition, p := range tp.producers {
			if p.last == nil {
				continue
			}
			got, err := s.Produce(tp.name, int32(partition), w.encode(p.last))
			if err != nil || got.Err() != nil || got.Base != p.base {
				w.t.Errorf("the last batch of %s-%d again: offset %d, want %d; %v %v", tp.name, partition, got.Base, p.base,
					got.Err(), err)
			}
			w.excused = append(w.excused, fmt.Sprintf("Error processing append operation on partition %s:%s-%d ",
				metadata.UUID(tp.id), tp.name, partition))
			gap := p.batch(tp, 0)
			gap.Sequence += 5
			got, err = s.Produce(tp.name, int32(partition), w.encode(gap))
			if err != nil || got.Code != kerr.OutOfOrderSequenceNumber.Code {
				w.t.Errorf("a batch of %s-%d behind a gap: %+v %v", tp.name, partition, got, err)
			}
			w.send(s, tp, int32(partition), p.batch(tp, 1))
		}
	}
}
