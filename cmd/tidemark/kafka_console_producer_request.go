package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

// Error codes that the producer acts on.
const (
	codeMessageTooLarge   = 10
	codeInvalidTopic      = 17
	codeDuplicateSequence = 46
	codeInvalidRecord     = 87
)

// topicMeta is what the producer knows of its topic.
type topicMeta struct {
	id      [16]byte
	ids     []int32         // partition numbers, ascending
	leaders map[int32]int32 // node by partition
}

// producerIdentity is the producer id of an idempotent producer, and the next sequence
// number of each partition.
type producerIdentity struct {
	id    int64 // −1 = none yet
	epoch int16
	next  map[int32]int32
}

func (p *producerIdentity) forget() {
	*p = producerIdentity{id: -1, epoch: -1, next: map[int32]int32{}}
}

// take hands out n sequence numbers of a partition; they wrap after 2^31−1.
func (p *producerIdentity) take(partition int32, n int) int32 {
	first := p.next[partition]
	p.next[partition] = int32((int64(first) + int64(n)) & math.MaxInt32)
	return first
}

// wantMeta makes sure that the topic's partitions are known. It waits for a topic that
// is being made for as long as max.block.ms.
func (s *sender) wantMeta(ctx context.Context) *cli.Failure {
	if s.invalid > 0 {
		return s.invalidTopic()
	}
	deadline := time.Now().Add(time.Duration(s.maxBlockMs) * time.Millisecond)
	for tries := 1; len(s.meta.ids) == 0; tries++ {
		code, err := s.askMeta(ctx)
		if err == nil && code != 0 {
			s.env.Log("WARN", "org.apache.kafka.clients.NetworkClient", fmt.Sprintf("[Producer clientId=%s] The metadata "+
				"response from the cluster reported a recoverable issue with correlation id %d : {%s=%s}",
				s.clientID, tries, s.topic, cli.CodeName(code)))
		}
		if code == codeInvalidTopic {
			return s.invalidTopic()
		}
		if len(s.meta.ids) > 0 {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return cli.Fail(classKafkaTimeout, "Topic %s not present in metadata after %d ms.", s.topic, s.maxBlockMs)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(s.backoffMs) * time.Millisecond):
		}
	}
	return nil
}

// invalidTopic words the refusal of a name as Kafka's producer does: in full for the
// first record only.
func (s *sender) invalidTopic() *cli.Failure {
	const class = "org.apache.kafka.common.errors.InvalidTopicException"
	s.invalid++
	if s.invalid > 1 {
		return cli.Fail(class, "%s", s.topic)
	}
	s.env.Log("ERROR", "org.apache.kafka.clients.Metadata", fmt.Sprintf("[Producer clientId=%s] Metadata response "+
		"reported invalid topics [%s]", s.clientID, s.topic))
	return cli.Fail(class, "Invalid topics: [%s]", s.topic)
}

func (s *sender) askMeta(ctx context.Context) (code int16, err error) {
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = true
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &s.topic
	request.Topics = []kmsg.MetadataRequestTopic{topic}
	answer, err := s.client.Request(ctx, request)
	if err != nil {
		return 0, err
	}
	response, ok := answer.(*kmsg.MetadataResponse)
	if !ok || len(response.Topics) != 1 {
		return 0, fmt.Errorf("metadata of one topic: answer %T", answer)
	}
	t := response.Topics[0]
	if t.ErrorCode != 0 {
		return t.ErrorCode, nil
	}
	s.meta = topicMeta{id: t.TopicID, leaders: map[int32]int32{}}
	for _, p := range t.Partitions {
		s.meta.ids = append(s.meta.ids, p.Partition)
		s.meta.leaders[p.Partition] = p.Leader
	}
	slices.Sort(s.meta.ids)
	return 0, nil
}

// deliver sends records as one batch, and again as long as Kafka's producer would. What
// is too large for the broker goes out in halves.
func (s *sender) deliver(ctx context.Context, partition int32, records []timedRecord) error {
	deadline := time.Now().Add(time.Duration(s.deliveryMs) * time.Millisecond)
	sequence := record.NoSequence
	for tries := 1; ; tries++ {
		answer, err := s.attempt(ctx, partition, records, &sequence)
		code := int16(0)
		if err == nil {
			code = answer.ErrorCode
		}
		switch {
		case err == nil && (code == 0 || code == codeDuplicateSequence):
			return nil
		case code == codeMessageTooLarge && len(records) > 1:
			s.identity.forget()
			if err := s.deliver(ctx, partition, records[:len(records)/2]); err != nil {
				return err
			}
			return s.deliver(ctx, partition, records[len(records)/2:])
		case err == nil && !cli.Retriable(code), int64(tries) > s.retries && err == nil:
			s.identity.forget()
			return s.refused(records, answer)
		case time.Now().After(deadline):
			s.identity.forget()
			return s.allFailed(records, cli.Fail(classKafkaTimeout, "Expiring %d record(s) for %s-%d:%d ms has passed since "+
				"batch creation", len(records), s.topic, partition, s.deliveryMs))
		}
		time.Sleep(time.Duration(s.backoffMs) * time.Millisecond)
		if _, err := s.askMeta(ctx); err != nil {
			continue // the next attempt meets the same trouble and counts it
		}
	}
}

// attempt sends the batch once. *sequence is kept over attempts, so that the broker
// recognises a batch that it has already.
func (s *sender) attempt(ctx context.Context, partition int32, records []timedRecord, sequence *int32,
) (*kmsg.ProduceResponseTopicPartition, error) {
	if s.idempotent && s.identity.id < 0 {
		if err := s.askIdentity(ctx); err != nil {
			return nil, err
		}
		*sequence = record.NoSequence
	}
	if s.idempotent && *sequence == record.NoSequence {
		*sequence = s.identity.take(partition, len(records))
	}
	batch, err := s.batch(records, *sequence)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = s.acks, int32(min(s.requestTimeoutMs, math.MaxInt32))
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = s.topic, s.meta.id
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch
	topic.Partitions = []kmsg.ProduceRequestTopicPartition{part}
	request.Topics = []kmsg.ProduceRequestTopic{topic}
	answer, err := s.client.Broker(int(s.meta.leaders[partition])).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	response, ok := answer.(*kmsg.ProduceResponse)
	if !ok {
		return nil, fmt.Errorf("produce: answer %T", answer)
	}
	if s.acks == 0 {
		return &kmsg.ProduceResponseTopicPartition{}, nil
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return nil, errors.New("produce: answer without the partition")
	}
	return &response.Topics[0].Partitions[0], nil
}

func (s *sender) batch(records []timedRecord, sequence int32) ([]byte, error) {
	options := record.DefaultBuilderOptions()
	options.Codec, options.Level = s.codec, s.level
	options.ProducerID, options.ProducerEpoch, options.BaseSequence = s.identity.id, s.identity.epoch, sequence
	builder := record.NewBuilder(options)
	for _, r := range records {
		if err := builder.Append(r.timestamp, r.key, r.value, r.headers); err != nil {
			return nil, err
		}
	}
	return builder.Bytes(), nil
}

func (s *sender) askIdentity(ctx context.Context) error {
	request := kmsg.NewPtrInitProducerIDRequest()
	request.TransactionTimeoutMillis = math.MaxInt32
	request.ProducerID, request.ProducerEpoch = -1, -1
	answer, err := s.client.Request(ctx, request)
	if err != nil {
		return err
	}
	response, ok := answer.(*kmsg.InitProducerIDResponse)
	if !ok {
		return fmt.Errorf("producer id: answer %T", answer)
	}
	if f := cli.APIFailure(response.ErrorCode, nil); f != nil {
		return f
	}
	s.identity.forget()
	s.identity.id, s.identity.epoch = response.ProducerID, response.ProducerEpoch
	return nil
}

// refused reports records of a batch that the broker did not take. It may have said
// which ones are to blame.
func (s *sender) refused(records []timedRecord, answer *kmsg.ProduceResponseTopicPartition) error {
	top := cli.APIFailure(answer.ErrorCode, answer.ErrorMessage)
	if len(answer.ErrorRecords) == 0 {
		return s.allFailed(records, top)
	}
	blamed := map[int]*cli.Failure{}
	for _, e := range answer.ErrorRecords {
		f := *top
		if len(answer.ErrorRecords) > 1 {
			f = *cli.APIFailure(codeInvalidRecord, &top.Message)
		}
		if e.ErrorMessage != nil {
			f.Message = *e.ErrorMessage
		}
		blamed[int(e.RelativeOffset)] = &f
	}
	for i, r := range records {
		f := blamed[i]
		if f == nil {
			f = cli.Fail(classKafkaException, "Failed to append record because it was part of a batch which had one more "+
				"more invalid records")
		}
		if err := s.failed(r, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) allFailed(records []timedRecord, f *cli.Failure) error {
	for _, r := range records {
		if err := s.failed(r, f); err != nil {
			return err
		}
	}
	return nil
}
