package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct {
	addr  string
	admin *kadm.Client
}

func openFranz(addr string) (library, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return &franz{addr: addr, admin: kadm.NewClient(c)}, nil
}

func (f *franz) create(topic string, partitions int32) error {
	_, err := f.admin.CreateTopic(context.Background(), partitions, 1, nil, topic)
	return err
}

func (f *franz) remove(topic string) error {
	_, err := f.admin.DeleteTopic(context.Background(), topic)
	return err
}

func (f *franz) list() ([]string, error) {
	topics, err := f.admin.ListTopics(context.Background())
	return topics.Names(), err
}

func (f *franz) offsetForTime(topic string, ms int64) (int64, error) {
	found, err := f.admin.ListOffsetsAfterMilli(context.Background(), ms, topic)
	if err != nil {
		return 0, err
	}
	o, _ := found.Lookup(topic, 0)
	if o.Timestamp < 0 {
		return -1, o.Err // kadm asks for the end when there is none
	}
	return o.Offset, o.Err
}

var franzCodecs = map[string]kgo.CompressionCodec{"": kgo.NoCompression(), "none": kgo.NoCompression(),
	"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
	"zstd": kgo.ZstdCompression()}

type franzProducer struct{ c *kgo.Client }

func (f *franz) producer(r request) (producer, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(f.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(franzCodecs[r.Codec])}
	if r.Transactional != "" {
		opts = append(opts, kgo.TransactionalID(r.Transactional))
	} else if !r.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	c, err := kgo.NewClient(opts...)
	if err == nil && r.Transactional != "" {
		_, _, err = c.ProducerID(context.Background()) // otherwise first asked for with the first record
	}
	return &franzProducer{c: c}, err
}

func (p *franzProducer) produce(r request) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var records []*kgo.Record
	for i, v := range r.Values {
		records = append(records, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Value: []byte(v),
			Timestamp: r.at(i)})
	}
	return p.c.ProduceSync(ctx, records...).FirstErr()
}

func (p *franzProducer) begin() error { return p.c.BeginTransaction() }

func (p *franzProducer) end(commit bool) error {
	return p.c.EndTransaction(context.Background(), kgo.TransactionEndTry(commit))
}

func (p *franzProducer) close() error {
	p.c.Close()
	return nil
}

type franzConsumer struct {
	c *kgo.Client

	mu       sync.Mutex
	assigned map[string]bool
}

var franzBalancers = map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
	"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	"uniform": kgo.CooperativeStickyBalancer()} // by which franz-go names the assignor of the server

func (f *franz) consumer(r request) (consumer, error) {
	c := &franzConsumer{assigned: map[string]bool{}}
	opts := []kgo.Opt{kgo.SeedBrokers(f.addr), kgo.ConsumerGroup(r.Group), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(c.set(true)), kgo.OnPartitionsRevoked(c.set(false)),
		kgo.OnPartitionsLost(c.set(false))}
	if r.Pattern != "" {
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(r.Pattern))
	} else {
		opts = append(opts, kgo.ConsumeTopics(r.Topics...))
	}
	if r.Assignor != "" {
		opts = append(opts, kgo.Balancers(franzBalancers[r.Assignor]))
	}
	if r.Protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	if r.Instance != "" {
		opts = append(opts, kgo.InstanceID(r.Instance))
	}
	if r.Committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	var err error
	c.c, err = kgo.NewClient(opts...)
	return c, err
}

func (c *franzConsumer) set(to bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for topic, numbers := range partitions {
			for _, n := range numbers {
				if c.assigned[fmt.Sprintf("%s-%d", topic, n)] = true; !to {
					delete(c.assigned, fmt.Sprintf("%s-%d", topic, n))
				}
			}
		}
	}
}

func (c *franzConsumer) poll(wait time.Duration) (records []read, assigned []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	fetches := c.c.PollFetches(ctx)
	for r := range fetches.RecordsAll() {
		records = append(records, read{r.Topic, r.Partition, r.Offset, string(r.Value)})
	}
	fetches.EachError(func(topic string, partition int32, err error) { // the client goes on by itself
		fmt.Fprintf(os.Stderr, "%s poll %s-%d: %v\n", time.Now().Format(time.TimeOnly), topic, partition, err)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	assigned = []string{}
	for a := range c.assigned {
		assigned = append(assigned, a)
	}
	sort.Strings(assigned)
	return records, assigned, nil
}

func (c *franzConsumer) commit(topic string, offset int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if topic == "" {
		return c.c.CommitUncommittedOffsets(ctx)
	}
	return c.c.CommitRecords(ctx, &kgo.Record{Topic: topic, Offset: offset - 1, LeaderEpoch: -1})
}

func (c *franzConsumer) close() error {
	err := c.c.LeaveGroupContext(context.Background()) // a static member of the classic protocol stays
	c.c.Close()
	return err
}

func (f *franz) copy(r request) error {
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(f.addr), kgo.TransactionalID(r.Transactional),
		kgo.ConsumerGroup(r.Group), kgo.ConsumeTopics(r.From), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for left := r.Count; left > 0; {
		fetches := s.PollRecords(ctx, min(left, 4))
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
		n := fetches.NumRecords()
		for from := range fetches.RecordsAll() {
			s.Produce(ctx, &kgo.Record{Topic: r.Topic, Value: from.Value}, nil) // End tells of errors
		}
		committed, err := s.End(ctx, kgo.TryCommit)
		if err != nil {
			return err
		}
		if committed {
			left -= n
		}
	}
	return nil
}
