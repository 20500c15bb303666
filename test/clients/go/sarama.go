package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

type saramaLibrary struct {
	addr   []string
	client sarama.Client
	admin  sarama.ClusterAdmin
}

func openSarama(addr string) (library, error) {
	sarama.Logger = slog.NewLogLogger(slog.NewTextHandler(os.Stderr, nil), slog.LevelInfo)
	client, err := sarama.NewClient([]string{addr}, saramaConfig())
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	return &saramaLibrary{addr: []string{addr}, client: client, admin: admin}, err
}

func saramaConfig() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V4_3_1_0
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Retry.Max = 100
	c.Producer.Flush.Frequency = 10 * time.Millisecond // so that several records make a batch
	c.Metadata.Retry.Max = 100
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Consumer.Return.Errors = false
	return c
}

func (l *saramaLibrary) create(topic string, partitions int32) error {
	return l.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

func (l *saramaLibrary) remove(topic string) error { return l.admin.DeleteTopic(topic) }

func (l *saramaLibrary) list() (topics []string, err error) {
	found, err := l.admin.ListTopics()
	for name := range found {
		topics = append(topics, name)
	}
	return topics, err
}

func (l *saramaLibrary) offsetForTime(topic string, ms int64) (int64, error) {
	return l.client.GetOffset(topic, 0, ms)
}

var saramaCodecs = map[string]sarama.CompressionCodec{"": sarama.CompressionNone, "none": sarama.CompressionNone,
	"gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4,
	"zstd": sarama.CompressionZSTD}

type saramaProducer struct{ sarama.SyncProducer }

func (l *saramaLibrary) producer(r request) (producer, error) {
	c := saramaConfig()
	c.Producer.Compression = saramaCodecs[r.Codec]
	if r.Idempotent || r.Transactional != "" {
		c.Producer.Idempotent = true
		c.Net.MaxOpenRequests = 1
	}
	c.Producer.Transaction.ID = r.Transactional
	p, err := sarama.NewSyncProducer(l.addr, c)
	return &saramaProducer{p}, err
}

func (p *saramaProducer) produce(r request) error {
	var messages []*sarama.ProducerMessage
	for i, v := range r.Values {
		messages = append(messages, &sarama.ProducerMessage{Topic: r.Topic, Partition: r.Partition,
			Value: sarama.StringEncoder(v), Timestamp: r.at(i)})
	}
	return p.SendMessages(messages)
}

func (p *saramaProducer) begin() error { return p.BeginTxn() }

func (p *saramaProducer) end(commit bool) error {
	if commit {
		return p.CommitTxn()
	}
	return p.AbortTxn()
}

func (p *saramaProducer) close() error { return p.Close() }

var saramaStrategies = map[string]func() sarama.BalanceStrategy{"range": sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin, "sticky": sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky}

// saramaConsumer is a member whose messages wait in a channel until they are polled.
type saramaConsumer struct {
	group    sarama.ConsumerGroup
	messages chan *sarama.ConsumerMessage
	stop     context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	session sarama.ConsumerGroupSession // nil between two
	read    map[string]map[int32]int64  // the next offsets, by topic and partition
}

func (l *saramaLibrary) consumer(r request) (consumer, error) { return l.member(r) }

func (l *saramaLibrary) member(r request) (*saramaConsumer, error) {
	c := saramaConfig()
	if s := saramaStrategies[r.Assignor]; s != nil {
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{s()}
	}
	c.Consumer.Group.InstanceId = r.Instance
	if r.Committed {
		c.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	group, err := sarama.NewConsumerGroup(l.addr, r.Group, c)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &saramaConsumer{group: group, messages: make(chan *sarama.ConsumerMessage), stop: stop,
		done: make(chan struct{}), read: map[string]map[int32]int64{}}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, r.Topics, m); err != nil {
				fmt.Fprintln(os.Stderr, "consume:", err)
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return m, nil
}

// Setup takes a session up.
func (m *saramaConsumer) Setup(s sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = s
	return nil
}

// Cleanup lets a session go.
func (m *saramaConsumer) Cleanup(sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim hands messages of one partition to poll.
func (m *saramaConsumer) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			select {
			case m.messages <- message:
			case <-s.Context().Done():
				return nil
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (m *saramaConsumer) poll(wait time.Duration) (records []read, assigned []string, err error) {
	timeout := time.After(wait)
	for more := true; more; {
		select {
		case r := <-m.messages:
			records = append(records, read{r.Topic, r.Partition, r.Offset, string(r.Value)})
			if m.read[r.Topic] == nil {
				m.read[r.Topic] = map[int32]int64{}
			}
			m.read[r.Topic][r.Partition] = r.Offset + 1
			more = len(records) < 100
		case <-timeout:
			more = false
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	assigned = []string{}
	if m.session != nil {
		for topic, partitions := range m.session.Claims() {
			for _, p := range partitions {
				assigned = append(assigned, fmt.Sprintf("%s-%d", topic, p))
			}
		}
	}
	sort.Strings(assigned)
	return records, assigned, nil
}

func (m *saramaConsumer) commit(topic string, offset int64) error {
	m.mu.Lock()
	session := m.session
	m.mu.Unlock()
	if session == nil {
		return fmt.Errorf("no session")
	}
	if topic != "" {
		session.MarkOffset(topic, 0, offset, "")
	} else {
		for topic, partitions := range m.read {
			for p, next := range partitions {
				session.MarkOffset(topic, p, next, "")
			}
		}
	}
	session.Commit()
	return nil
}

func (m *saramaConsumer) close() error {
	m.stop()
	err := m.group.Close()
	<-m.done
	return err
}

func (l *saramaLibrary) copy(r request) error {
	p, err := l.producer(request{Transactional: r.Transactional})
	if err != nil {
		return err
	}
	defer p.close()
	m, err := l.member(request{Group: r.Group, Topics: []string{r.From}, Committed: true})
	if err != nil {
		return err
	}
	defer m.close()
	sync := p.(*saramaProducer)
	for left, deadline := r.Count, time.Now().Add(patience); left > 0; {
		var messages []*sarama.ProducerMessage
		var next int64
		for range min(left, 4) {
			select {
			case from := <-m.messages:
				next = from.Offset + 1
				messages = append(messages, &sarama.ProducerMessage{Topic: r.Topic,
					Value: sarama.ByteEncoder(from.Value)})
			case <-time.After(time.Until(deadline)):
				return fmt.Errorf("%d records are left to copy", left)
			}
		}
		m.mu.Lock()
		session := m.session
		m.mu.Unlock()
		if err := sync.BeginTxn(); err != nil {
			return err
		}
		if err := sync.SendMessages(messages); err != nil {
			return err
		}
		err := sync.AddOffsetsToTxnWithGroupMetadata(map[string][]*sarama.PartitionOffsetMetadata{
			r.From: {{Partition: 0, Offset: next}}}, sarama.NewConsumerGroupMetadataFromSession(session, r.Group, nil))
		if err != nil {
			return err
		}
		if err := sync.CommitTxn(); err != nil {
			return err
		}
		left -= len(messages)
	}
	return nil
}
