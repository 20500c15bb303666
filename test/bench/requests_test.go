//go:build oracle

package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
)

// batch is one batch of n records of valueBytes each, whose timestamps are a ms apart from base on. A quarter of each
// value is noise, so that codecs have something to do.
func batch(n, valueBytes int, base int64, codec record.Codec) ([]byte, error) {
	o := record.DefaultBuilderOptions()
	o.Codec, o.LeaderEpoch = codec, -1
	b := record.NewBuilder(o)
	value := make([]byte, valueBytes)
	seed := uint64(base)
	for i := range n {
		for j := range value {
			value[j] = byte('a' + j%16)
			if j%4 == 0 {
				seed = seed*6364136223846793005 + 1442695040888963407
				value[j] = byte(seed >> 56)
			}
		}
		if err := b.Append(base+int64(i), nil, value, nil); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// moveTo gives the n records of a batch timestamps that are a ms apart from base on.
func moveTo(batch []byte, n int, base int64) {
	binary.BigEndian.PutUint64(batch[27:], uint64(base))
	binary.BigEndian.PutUint64(batch[35:], uint64(base+int64(n)-1))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], castagnoli))
}

func produceRequest(topic string, partition int32, batch []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, -1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// appendOne appends a batch to partition 0 and waits for the answer.
func (w *wire) appendOne(topic string, batch []byte) error {
	if err := w.allow(ioTimeout); err != nil {
		return err
	}
	w.out = appendFrame(w.out[:0], produceRequest(topic, 0, batch))
	if err := w.send(w.out); err != nil {
		return err
	}
	return w.produced()
}

// untilProduced appends one record to partition 0, again and again until it is acknowledged.
func untilProduced(ctx context.Context, addr, topic string) error {
	set, err := batch(1, 20, time.Now().UnixMilli(), record.None)
	if err != nil {
		return err
	}
	return insist(ctx, addr, func(w *wire) error { return w.appendOne(topic, set) })
}

func fetchRequest(topic string, partition int32, offset int64, waitMs, maxBytes int32) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.MaxWaitMillis, r.MinBytes, r.MaxBytes = 12, waitMs, 1, 50<<20
	r.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, maxBytes
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func listOffsetsRequest(topic string, ts int64) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version, r.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = ts
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// createTopic makes a topic, once the broker answers, and waits until it leads every partition.
func createTopic(ctx context.Context, addr, name string, partitions int32, configs map[string]string) error {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 7, 60_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for key, value := range configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
	}
	r.Topics = append(r.Topics, t)
	err := insist(ctx, addr, func(w *wire) error {
		answer, err := ask[*kmsg.CreateTopicsResponse](w, r)
		if err != nil {
			return err
		}
		code := answer.Topics[0].ErrorCode
		if code == kerr.TopicAlreadyExists.Code { // an earlier try was not answered in time
			return nil
		}
		return kerr.ErrorForCode(code)
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	next := int32(0)
	err = insist(ctx, addr, func(w *wire) error {
		for ; next < partitions; next++ {
			r := fetchRequest(name, next, 0, 0, 1)
			answer, err := ask[*kmsg.FetchResponse](w, r)
			if err != nil {
				return err
			}
			if err := kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s-%d: %w", name, next, err)
	}
	return nil
}

// deleteTopic deletes a topic.
func deleteTopic(ctx context.Context, addr, name string) error {
	r := kmsg.NewPtrDeleteTopicsRequest()
	r.Version, r.TimeoutMillis = 5, 60_000
	r.TopicNames = []string{name}
	return insist(ctx, addr, func(w *wire) error {
		answer, err := ask[*kmsg.DeleteTopicsResponse](w, r)
		if err != nil {
			return err
		}
		code := answer.Topics[0].ErrorCode
		if code == kerr.UnknownTopicOrPartition.Code {
			return nil
		}
		return kerr.ErrorForCode(code)
	})
}
