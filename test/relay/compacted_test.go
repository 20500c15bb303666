//go:build oracle

package relay

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/checkpoint"
	"tidemark/record"
	"tidemark/test/ledger"
	"tidemark/test/oracle"
	"tidemark/vfs"
)

// compactedTopic is a topic that every leg's server compacts, with what it must tell of each key.
type compactedTopic struct {
	w       *world
	rng     *rand.Rand
	state   map[string]string
	next    map[int64]int32 // sequence numbers of the idempotent producers
	offset  int64           // committed by the group last
	batches int
}

const (
	compactedName  = "compacts"
	compactedGroup = "compacts-group"
	compactedTxn   = "compacts-txn"
)

// TestRelayOfCompaction hands a directory around in which topics are compacted all the time, those of the coordinators
// among them.
func TestRelayOfCompaction(t *testing.T) {
	w := newWorld(t, oracle.Version, 1)
	w.compacts = true
	w.settings = map[string]string{"log.cleaner.backoff.ms": "100"}
	c := &compactedTopic{w: w, rng: rand.New(rand.NewPCG(7, 7)), state: make(map[string]string),
		next: make(map[int64]int32)}
	for _, l := range legs("K T K! T! K") {
		w.legs++
		t.Run(l.String(), func(t *testing.T) {
			w.t, w.excused = t, nil
			s := w.start(l)
			if w.legs == 1 {
				c.create(s)
			}
			c.check(s)
			c.write(s)
			c.transact(s)
			c.commit(s)
			c.idle()
			c.check(s)
			w.end(s)
		})
		if t.Failed() {
			t.FailNow()
		}
	}
}

func (c *compactedTopic) create(s *server) {
	s.CreateTopic(c.w.t, compactedName, 1, "cleanup.policy", "compact", "internal.segment.bytes", "3000",
		"index.interval.bytes", "200", "min.cleanable.dirty.ratio", "0", "delete.retention.ms", "2000",
		"file.delete.delay.ms", "100")
	c.commit(s)
	c.transact(s)
	for _, internal := range []string{"__consumer_offsets", "__transaction_state"} {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, internal
		for key, value := range map[string]string{"segment.ms": "50", "min.cleanable.dirty.ratio": "0",
			"file.delete.delay.ms": "100", "delete.retention.ms": "500"} {
			rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			rc.Name, rc.Value = key, &value
			r.Configs = append(r.Configs, rc)
		}
		req.Resources = append(req.Resources, r)
		answer := ledger.Ask[*kmsg.IncrementalAlterConfigsResponse](c.w.t, s.Client, req)
		if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
			c.w.t.Fatalf("configs of %s: %v", internal, err)
		}
	}
}

// note takes in a record that readers of committed records see.
func (c *compactedTopic) note(key string, value []byte) {
	if value == nil {
		delete(c.state, key)
	} else {
		c.state[key] = string(value)
	}
}

// write sends batches of idempotent producers, whose sequence numbers go on from leg to leg, and of none.
func (c *compactedTopic) write(s *server) {
	for range 60 {
		b := ledger.Batch{Codec: []record.Codec{record.None, record.LZ4, record.Zstd}[c.rng.IntN(3)], ProducerID: -1}
		if who := c.rng.IntN(4); who > 0 {
			b.ProducerID = 5000 + int64(who)
			b.Sequence = c.next[b.ProducerID]
		}
		for range 1 + c.rng.IntN(6) {
			r := ledger.Record{Timestamp: time.Now().UnixMilli(), Key: fmt.Appendf(nil, "key-%d", c.rng.IntN(40))}
			if c.rng.IntN(5) > 0 {
				r.Value = fmt.Appendf(nil, "%d-%d", c.w.legs, c.batches)
			}
			b.Records = append(b.Records, r)
		}
		got, err := s.Produce(compactedName, 0, c.w.encode(&b))
		if err != nil || got.Err() != nil {
			c.w.t.Fatalf("produce: %v %v", err, got.Err())
		}
		for _, r := range b.Records {
			c.note(string(r.Key), r.Value)
		}
		if b.ProducerID >= 0 {
			c.next[b.ProducerID] += int32(len(b.Records))
		}
		c.batches++
	}
}

// transact does transactions as a stock client does; every other one is aborted.
func (c *compactedTopic) transact(s *server) {
	c.w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addr), kgo.TransactionalID(compactedTxn),
		kgo.DefaultProduceTopic(compactedName))
	if err != nil {
		c.w.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range 8 {
		if err := client.BeginTransaction(); err != nil {
			c.w.t.Fatal(err)
		}
		written := make(map[string][]byte)
		for range 3 {
			key := fmt.Sprintf("key-%d", c.rng.IntN(40))
			written[key] = fmt.Appendf(nil, "txn-%d-%d", c.w.legs, i)
			r := &kgo.Record{Key: []byte(key), Value: written[key]}
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
				c.w.t.Fatalf("produce in a transaction: %v", err)
			}
		}
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)); err != nil {
			c.w.t.Fatalf("end a transaction: %v", err)
		}
		if i%2 == 0 {
			for key, value := range written {
				c.note(key, value)
			}
		}
	}
}

// commit commits offsets of a group, again and again, so that the segments of its topic are rolled.
func (c *compactedTopic) commit(s *server) {
	c.w.t.Helper()
	c.w.awaitCoordinator(s, compactedGroup)
	id := s.Metadata(c.w.t, compactedName)[compactedName].TopicID
	for range 20 {
		c.offset++
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.Generation = compactedGroup, -1
		req.SetVersion(8)
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: compactedName, TopicID: id,
			Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: c.offset, LeaderEpoch: -1}}}}
		answer := ledger.Ask[*kmsg.OffsetCommitResponse](c.w.t, s.Client, req)
		if err := kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode); err != nil {
			c.w.t.Fatalf("commit: %v", err)
		}
		time.Sleep(10 * time.Millisecond) // the time of the records goes on, and with it segment.ms
	}
}

// check reads the topic as a consumer of committed records does, and the group's offset.
func (c *compactedTopic) check(s *server) {
	t := c.w.t
	t.Helper()
	end := s.EndOffset(t, compactedName, 0)
	p := &ledger.Partition{Topic: compactedName, End: end}
	got := make(map[string]string)
	for _, r := range ledger.Consume(t, s.Addr, []*ledger.Partition{p}, true)[p.Name()] {
		switch {
		case r.Control:
		case r.Value == nil:
			delete(got, string(r.Key))
		default:
			got[string(r.Key)] = string(r.Value)
		}
	}
	if !maps.Equal(got, c.state) {
		t.Errorf("what the topic tells: %d keys, want %d:\ngot  %v\nwant %v", len(got), len(c.state), got, c.state)
	}
	if c.offset == 0 {
		return
	}
	c.w.awaitCoordinator(s, compactedGroup)
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = compactedGroup
	req.Groups = append(req.Groups, rg)
	answer := ledger.Ask[*kmsg.OffsetFetchResponse](t, s.Client, req)
	if n := len(answer.Groups[0].Topics); n != 1 || answer.Groups[0].Topics[0].Partitions[0].Offset != c.offset {
		t.Errorf("committed offset: want %d, got %+v", c.offset, answer.Groups[0])
	}
}

// idle waits until every log with the policy compact is compacted up to its last segment, and what was replaced is
// gone.
func (c *compactedTopic) idle() {
	t := c.w.t
	t.Helper()
	var dirty []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		all, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(c.w.dirs[0], checkpoint.CleanerOffsetFile))
		if err != nil {
			t.Fatal(err)
		}
		dirty = nil
		for _, folder := range c.w.folders() {
			name := filepath.Base(folder)
			i := strings.LastIndex(name, "-")
			var partition int32
			if _, err := fmt.Sscan(name[i+1:], &partition); err != nil {
				t.Fatal(err)
			}
			bases := c.bases(folder)
			at := all[checkpoint.TopicPartition{Topic: name[:i], Partition: partition}]
			for _, file := range c.w.names(folder) {
				if strings.HasSuffix(file, ".deleted") {
					dirty = append(dirty, file)
				}
			}
			if len(bases) > 1 && at < bases[len(bases)-1] {
				dirty = append(dirty, fmt.Sprintf("%s: %d of %v", name, at, bases))
			}
		}
		if len(dirty) == 0 {
			return
		}
	}
	t.Errorf("not compacted: %v", dirty)
}

// bases are the base offsets of the segments in a folder, ascending.
func (c *compactedTopic) bases(folder string) []int64 {
	var out []int64
	for _, name := range c.w.names(folder) {
		var base int64
		if n, _ := fmt.Sscanf(name, "%020d.log", &base); n == 1 && strings.HasSuffix(name, ".log") {
			out = append(out, base)
		}
	}
	return out
}
