package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

const (
	producerLogger     = "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback"
	recordOverheadMax  = 21 // bytes of a record's own fields, at most
	lineQueue          = 256
	classKafkaTimeout  = "org.apache.kafka.common.errors.TimeoutException"
	classRecordTooLong = "org.apache.kafka.common.errors.RecordTooLargeException"
)

// sender gathers records into batches, one open batch a partition, and sends them, one
// request at a time, so that the order of a partition is kept. Batches have the shape
// that Kafka's own producer gives them: up to batch.size, compressed as told, with
// producer id and sequence when idempotent.
//
// It is used by one goroutine.
type sender struct {
	producerSettings
	env         *cli.Env
	client      *kgo.Client
	topic       string
	clientID    string
	sync        bool
	partitioner kgo.TopicPartitioner
	meta        topicMeta
	open        map[int32]*openBatch
	firstOpen   time.Time // when the oldest open batch began
	identity    producerIdentity
	invalid     int // records refused because the topic's name is invalid
}

// openBatch is what waits for one partition.
type openBatch struct {
	records []timedRecord
	bytes   int
}

type timedRecord struct {
	newRecord
	timestamp int64
}

func newSender(ctx context.Context, env *cli.Env, settings cli.Properties, topic string, sync bool) (*sender, error) {
	parsed, err := parseProducerSettings(settings)
	if err != nil {
		return nil, err
	}
	client, err := cli.NewClient(env, cli.Producer, settings, kgo.RequestRetries(0))
	if err != nil {
		return nil, err
	}
	s := &sender{
		producerSettings: parsed, env: env, client: client, topic: topic, clientID: settings["client.id"], sync: sync,
		partitioner: kgo.StickyKeyPartitioner(nil).ForTopic(topic),
		open:        map[int32]*openBatch{},
	}
	s.identity.forget()
	return s, nil
}

func (s *sender) close() { s.client.Close() }

// sendAll sends every record of the input. It returns the reader's error, or with sync
// the first error of a record; other errors of records are logged.
func (s *sender) sendAll(ctx context.Context, reader *lineReader) error {
	type read struct {
		record *newRecord
		err    error
	}
	lines := make(chan read, lineQueue)
	go func() {
		for {
			one, err := reader.next()
			select {
			case lines <- read{one, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.lingerOver():
			s.flush()
		case line := <-lines:
			if errors.Is(line.err, io.EOF) {
				return nil
			}
			if line.err != nil {
				return line.err
			}
			if err := s.send(ctx, *line.record); err != nil {
				return err
			}
		}
	}
}

// lingerOver fires when the oldest open batch has waited long enough.
func (s *sender) lingerOver() <-chan time.Time {
	if len(s.open) == 0 {
		return nil
	}
	return time.After(time.Until(s.firstOpen.Add(time.Duration(s.lingerMs) * time.Millisecond)))
}

// send puts a record into the batch of its partition; a full batch goes out first.
func (s *sender) send(ctx context.Context, r newRecord) error {
	one := timedRecord{r, s.env.Now().UnixMilli()}
	if size := one.maxSize(); int64(size) > s.maxRequestBytes {
		return s.failed(one, cli.Fail(classRecordTooLong, "The message is %d bytes when serialized which is larger than %d, "+
			"which is the value of the max.request.size configuration.", size, s.maxRequestBytes))
	}
	if f := s.wantMeta(ctx); f != nil {
		return s.failed(one, f)
	}
	partition := s.partition(r)
	batch := s.open[partition]
	size := one.size(batch)
	if batch != nil && int64(batch.bytes+size) > s.batchSize {
		if err := s.finish(ctx, partition); err != nil {
			return err
		}
		if s.keyless(r) {
			s.partitioner.(interface{ OnNewBatch() }).OnNewBatch()
			partition = s.partition(r)
		}
		batch = s.open[partition]
		size = one.size(batch)
	}
	if batch == nil {
		batch = &openBatch{bytes: record.HeaderSize}
		if len(s.open) == 0 {
			s.firstOpen = time.Now()
		}
		s.open[partition] = batch
	}
	batch.records = append(batch.records, one)
	batch.bytes += size
	if s.sync || int64(batch.bytes) >= s.batchSize || s.lingerMs == 0 {
		return s.finish(ctx, partition)
	}
	return nil
}

func (s *sender) keyless(r newRecord) bool {
	_, ok := s.partitioner.(interface{ OnNewBatch() })
	return ok && r.key == nil
}

func (s *sender) partition(r newRecord) int32 {
	ids := s.meta.ids
	return ids[s.partitioner.Partition(&kgo.Record{Topic: s.topic, Key: r.key, Value: r.value}, len(ids))]
}

// flush sends all that is open; errors are logged.
func (s *sender) flush() {
	ctx := context.Background()
	for _, partition := range s.meta.ids {
		if s.open[partition] != nil {
			_ = s.finish(ctx, partition) // with sync nothing is open here
		}
	}
}

// finish sends the open batch of a partition.
func (s *sender) finish(ctx context.Context, partition int32) error {
	batch := s.open[partition]
	delete(s.open, partition)
	return s.deliver(ctx, partition, batch.records)
}

// failed reports a record that did not get through: with sync as an error, else in the
// log.
func (s *sender) failed(r timedRecord, f *cli.Failure) error {
	if s.sync {
		return cli.Execution(f)
	}
	key := "null"
	if r.key != nil {
		key = fmt.Sprintf("%d bytes", len(r.key))
	}
	value := "null"
	if r.value != nil {
		value = fmt.Sprintf("%d bytes", len(r.value))
	}
	s.env.Log("ERROR", producerLogger, fmt.Sprintf("Error when sending message to topic %s with key: %s, value: %s "+
		"with error:", s.topic, key, value))
	fmt.Fprint(s.env.Stderr, f.Trace())
	return nil
}

// maxSize is the size of a batch with this record alone, by the bound that Kafka's
// producer uses.
func (r timedRecord) maxSize() int { return record.HeaderSize + recordOverheadMax + r.bodySize() }

// size is what the record adds to a batch.
func (r timedRecord) size(batch *openBatch) int {
	timestampDelta, offsetDelta := int64(0), 0
	if batch != nil {
		timestampDelta, offsetDelta = r.timestamp-batch.records[0].timestamp, len(batch.records)
	}
	n := 1 + varintSize(timestampDelta) + varintSize(int64(offsetDelta)) + r.bodySize()
	return varintSize(int64(n)) + n
}

func (r timedRecord) bodySize() int {
	n := fieldSize(r.key) + fieldSize(r.value) + varintSize(int64(len(r.headers)))
	for _, h := range r.headers {
		n += fieldSize(h.Key) + fieldSize(h.Value)
	}
	return n
}

func fieldSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

// varintSize is the length of a zig-zag varint.
func varintSize(v int64) int {
	n := 1
	for u := uint64(v<<1) ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
