//go:build oracle

package compaction

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"tidemark/record"
	"tidemark/test/ledger"
)

// traffic draws what is written to one partition: batches of producers of all kinds, and the ends of transactions. The
// same seed gives the same steps.
type traffic struct {
	rng    *rand.Rand
	kind   kind
	clock  int64 // ms, of the next record
	batchN int
	seq    map[int64]int32
	open   map[int64]bool // transactional producers with records since their last marker
}

// kind says what the steps are like.
type kind struct {
	keys         int
	codecs       []record.Codec
	tombstones   float64 // part of the records that have no value
	idempotent   int     // producers of each kind
	transactions int
	maxRecords   int // of a batch
	maxValue     int // bytes
}

func newTraffic(seed uint64, k kind) *traffic {
	return &traffic{rng: rand.New(rand.NewPCG(seed, 1)), kind: k, clock: 1_700_000_000_000,
		seq: make(map[int64]int32), open: make(map[int64]bool)}
}

// step is one thing that is written.
type step struct {
	batch []byte
	txnID string  // of a batch in a transaction
	end   *marker // instead of a batch
}

// marker ends the transaction of a producer.
type marker struct {
	producer int64
	commit   bool
}

// The ids of producers: idempotent ones from the first on, transactional ones from the second.
const (
	firstIdempotent    = 1000
	firstTransactional = 2000
)

// next draws a step.
func (r *traffic) next() step {
	k := r.kind
	who := r.rng.IntN(2 + k.idempotent + 2*k.transactions)
	o := record.DefaultBuilderOptions()
	o.Codec = k.codecs[r.rng.IntN(len(k.codecs))]
	s := step{}
	switch {
	case who < 2:
	case who < 2+k.idempotent:
		o.ProducerID = firstIdempotent + int64(who-2)
	default:
		id := firstTransactional + int64((who-2-k.idempotent)%k.transactions)
		if r.open[id] && r.rng.IntN(3) == 0 {
			delete(r.open, id)
			return step{end: &marker{id, r.rng.IntN(2) == 0}}
		}
		r.open[id] = true
		o.ProducerID, o.Transactional, s.txnID = id, true, fmt.Sprintf("txn-%d", id)
	}
	s.batch = r.batch(o)
	return s
}

func (r *traffic) batch(o record.BuilderOptions) []byte {
	n := 1 + r.rng.IntN(r.kind.maxRecords)
	if o.ProducerID >= 0 {
		o.ProducerEpoch, o.BaseSequence = 0, r.seq[o.ProducerID]
		r.seq[o.ProducerID] += int32(n)
	}
	b := record.NewBuilder(o)
	for range n {
		key := fmt.Appendf(nil, "key-%d", r.rng.IntN(r.kind.keys))
		var value []byte
		if r.rng.Float64() >= r.kind.tombstones {
			value = fmt.Appendf(nil, "%d:%0*d", r.batchN, r.rng.IntN(r.kind.maxValue+1), 0)
		}
		var headers []record.RecordHeader
		if r.rng.IntN(4) == 0 {
			headers = []record.RecordHeader{{Key: []byte("h"), Value: []byte{1}}, {Key: []byte("null")}}
		}
		if err := b.Append(r.clock+r.rng.Int64N(50)-25, key, value, headers); err != nil {
			panic(err)
		}
		r.clock += 10
	}
	r.batchN++
	return bytes.Clone(b.Bytes())
}

// closing are the markers of all open transactions.
func (r *traffic) closing() []step {
	var out []step
	for id := int64(firstTransactional); id < firstTransactional+int64(r.kind.transactions); id++ {
		if r.open[id] {
			out = append(out, step{end: &marker{id, id%2 == 0}})
		}
	}
	clear(r.open)
	return out
}

// filler is a batch that makes a segment of that many bytes roll: the key is one that nothing else has.
func (r *traffic) filler(bytes int) step {
	b := record.NewBuilder(record.DefaultBuilderOptions())
	if err := b.Append(r.clock, []byte("filler"), make([]byte, bytes), nil); err != nil {
		panic(err)
	}
	return step{batch: b.Bytes()}
}

// conn sends to one broker.
type conn struct {
	*ledger.Client
	writes *kgo.Client // in versions in which a batch does not add its partition to the transaction
}

func dial(t testing.TB, addr string) *conn {
	t.Helper()
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(0, 11)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &conn{ledger.Dial(t, addr), client}
}

// send writes a step to partition 0 of a topic.
func send(t testing.TB, c *conn, topic string, s step) {
	t.Helper()
	if s.end != nil {
		sendMarker(t, c.Client, topic, *s.end)
		return
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30_000
	if s.txnID != "" {
		req.TransactionID = kmsg.StringPtr(s.txnID)
	}
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = s.batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := c.writes.SeedBrokers()[0].Request(context.Background(), req)
	if err != nil {
		t.Fatalf("%s: produce to %s: %v", c.Addr, topic, err)
	}
	answer := resp.(*kmsg.ProduceResponse)
	if err := kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatalf("%s: produce to %s: %v", c.Addr, topic, err)
	}
}

func sendMarker(t testing.TB, c *ledger.Client, topic string, m marker) {
	t.Helper()
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Markers = []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: m.producer, Committed: m.commit,
		Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: []int32{0}}}}}
	answer := ledger.Ask[*kmsg.WriteTxnMarkersResponse](t, c, req)
	if err := kerr.ErrorForCode(answer.Markers[0].Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatalf("%s: end the transaction of producer %d in %s: %v", c.Addr, m.producer, topic, err)
	}
}

// setConfigs changes configs of a topic, given as key, value, ….
func setConfigs(t testing.TB, c *ledger.Client, topic string, configs ...string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for i := 0; i+1 < len(configs); i += 2 {
		rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		rc.Name, rc.Op, rc.Value = configs[i], kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(configs[i+1])
		r.Configs = append(r.Configs, rc)
	}
	req.Resources = append(req.Resources, r)
	answer := ledger.Ask[*kmsg.IncrementalAlterConfigsResponse](t, c, req)
	if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
		t.Fatalf("%s: configs of %s: %v", c.Addr, topic, err)
	}
}
