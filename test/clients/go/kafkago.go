package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

type kafkaGo struct {
	addr   string
	client *kafka.Client
}

func openKafkaGo(addr string) (library, error) {
	return &kafkaGo{addr: addr, client: &kafka.Client{Addr: kafka.TCP(addr), Timeout: patience}}, nil
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (l *kafkaGo) create(topic string, partitions int32) error {
	ctx, cancel := within()
	defer cancel()
	answer, err := l.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: int(partitions), ReplicationFactor: 1}}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (l *kafkaGo) remove(topic string) error {
	ctx, cancel := within()
	defer cancel()
	answer, err := l.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (l *kafkaGo) list() (topics []string, err error) {
	// The client keeps what it knows of the cluster for some seconds: ask anew with one of its own.
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	ctx, cancel := within()
	defer cancel()
	fresh := &kafka.Client{Addr: kafka.TCP(l.addr), Transport: transport}
	answer, err := fresh.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	for _, t := range answer.Topics {
		topics = append(topics, t.Name)
	}
	return topics, nil
}

func (l *kafkaGo) offsetForTime(topic string, ms int64) (int64, error) {
	ctx, cancel := within()
	defer cancel()
	answer, err := l.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.TimeOffsetOf(0, time.UnixMilli(ms))}}})
	if err != nil {
		return 0, err
	}
	found := answer.Topics[topic][0]
	for offset := range found.Offsets {
		return offset, found.Error
	}
	return -1, found.Error
}

var kafkaGoCodecs = map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4,
	"zstd": kafka.Zstd}

type kafkaGoProducer struct {
	w         *kafka.Writer
	partition int
}

func (l *kafkaGo) producer(r request) (producer, error) {
	p := &kafkaGoProducer{}
	p.w = &kafka.Writer{Addr: kafka.TCP(l.addr), RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond,
		MaxAttempts: 100, Compression: kafkaGoCodecs[r.Codec],
		Balancer: kafka.BalancerFunc(func(kafka.Message, ...int) int { return p.partition })}
	return p, nil
}

func (p *kafkaGoProducer) produce(r request) error {
	ctx, cancel := within()
	defer cancel()
	p.partition = int(r.Partition)
	var messages []kafka.Message
	for i, v := range r.Values {
		messages = append(messages, kafka.Message{Topic: r.Topic, Value: []byte(v), Time: r.at(i)})
	}
	return p.w.WriteMessages(ctx, messages...)
}

func (p *kafkaGoProducer) begin() error   { return errors.ErrUnsupported }
func (p *kafkaGoProducer) end(bool) error { return errors.ErrUnsupported }
func (p *kafkaGoProducer) close() error   { return p.w.Close() }

func (l *kafkaGo) copy(request) error { return errors.ErrUnsupported }

var kafkaGoBalancers = map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{}}

type kafkaGoConsumer struct {
	r    *kafka.Reader
	read map[string]kafka.Message
}

func (l *kafkaGo) consumer(r request) (consumer, error) {
	c := kafka.ReaderConfig{Brokers: []string{l.addr}, GroupID: r.Group, GroupTopics: r.Topics,
		StartOffset: kafka.FirstOffset, SessionTimeout: 6 * time.Second,
		HeartbeatInterval: 300 * time.Millisecond, MaxWait: 200 * time.Millisecond}
	if b := kafkaGoBalancers[r.Assignor]; b != nil {
		c.GroupBalancers = []kafka.GroupBalancer{b}
	}
	if r.Committed {
		c.IsolationLevel = kafka.ReadCommitted
	}
	return &kafkaGoConsumer{r: kafka.NewReader(c), read: map[string]kafka.Message{}}, nil
}

func (c *kafkaGoConsumer) poll(wait time.Duration) (records []read, assigned []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for len(records) < 100 {
		m, err := c.r.FetchMessage(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return records, nil, err
		}
		records = append(records, read{m.Topic, int32(m.Partition), m.Offset, string(m.Value)})
		c.read[fmt.Sprintf("%s-%d", m.Topic, m.Partition)] = m
	}
	return records, nil, nil
}

func (c *kafkaGoConsumer) commit(topic string, offset int64) error {
	ctx, cancel := within()
	defer cancel()
	if topic != "" {
		return c.r.CommitMessages(ctx, kafka.Message{Topic: topic, Offset: offset - 1})
	}
	var messages []kafka.Message
	for _, m := range c.read {
		messages = append(messages, m)
	}
	return c.r.CommitMessages(ctx, messages...)
}

func (c *kafkaGoConsumer) close() error { return c.r.Close() }
