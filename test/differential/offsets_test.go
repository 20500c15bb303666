//go:build oracle

package differential

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fill produces to both sides: three batches of three records, disordered, then one of a compressed body.
func (w *world) fill(t *testing.T, topic string) {
	t.Helper()
	for i := range 4 {
		b := batch{gzip: i == 3}
		for _, d := range []int64{0, 5000, 1000} {
			b.records = append(b.records, rec{ts: base + int64(i)*3000 + d, key: []byte("k"), value: []byte("value")})
		}
		answer, ok := w.same(t, "fill", produce(11, topic, 0, -1, b.encode())).(*kmsg.ProduceResponse)
		if !ok || answer.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("Kafka: %+v", answer)
		}
	}
}

type offsetQuery struct {
	partition int32
	timestamp int64
	epoch     int32 // current leader epoch, −1 = not given
}

func listOffsets(version int16, replica int32, isolation int8, topic string, queries ...offsetQuery) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrListOffsetsRequest()
		req.SetVersion(version)
		req.ReplicaID, req.IsolationLevel = replica, isolation
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		for _, q := range queries {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = q.partition, q.timestamp, q.epoch
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
		return req
	}
}

func (w *world) testListOffsets(t *testing.T) {
	w.create(t, "offsets", 2, "retention.ms", "-1")
	w.fill(t, "offsets")
	times := []int64{-1, -2, -3, -4, -5, -6, -7, -8, -1 << 63, 0, base - 1, base, base + 1, base + 1000, base + 3500,
		base + 5000, base + 5001, base + 8000, base + 14_000, base + 14_001, 1<<63 - 1}
	for v := int16(1); v <= 11; v++ {
		for _, ts := range times {
			for isolation := range int8(2) {
				for partition := range int32(2) {
					w.same(t, fmt.Sprintf("partition %d, time %d, isolation %d", partition, ts, isolation),
						listOffsets(v, -1, isolation, "offsets", offsetQuery{partition, ts, -1}))
				}
			}
		}
		w.same(t, "unknown partition", listOffsets(v, -1, 0, "offsets", offsetQuery{7, -1, -1}))
		w.same(t, "unknown topic", listOffsets(v, -1, 0, "nope", offsetQuery{0, -1, -1}))
		w.same(t, "partition twice", listOffsets(v, -1, 0, "offsets", offsetQuery{0, -1, -1}, offsetQuery{0, -2, -1}))
		w.same(t, "epoch 0", listOffsets(v, -1, 0, "offsets", offsetQuery{0, -1, 0}))
		w.same(t, "epoch 9", listOffsets(v, -1, 0, "offsets", offsetQuery{0, base, 9}))
		w.same(t, "debug replica", listOffsets(v, -2, 0, "offsets", offsetQuery{0, -1, -1}))
		w.same(t, "isolation 7", listOffsets(v, -1, 7, "offsets", offsetQuery{0, -1, -1}))
		w.same(t, "no topics", func(*side) kmsg.Request {
			req := kmsg.NewPtrListOffsetsRequest()
			req.SetVersion(v)
			return req
		})
	}
}

func (w *world) testOffsetForLeaderEpoch(t *testing.T) {
	w.create(t, "epochs", 2, "retention.ms", "-1")
	w.fill(t, "epochs")
	for v := int16(2); v <= 4; v++ {
		for _, q := range []struct{ partition, current, epoch int32 }{
			{0, -1, 0}, {0, -1, 1}, {0, -1, -1}, {0, -1, 1 << 30}, {0, 0, 0}, {0, 1, 0}, {1, -1, 0}, {9, -1, 0},
		} {
			w.same(t, fmt.Sprintf("%+v", q), func(*side) kmsg.Request {
				req := kmsg.NewPtrOffsetForLeaderEpochRequest()
				req.SetVersion(v)
				req.ReplicaID = -1
				rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
				rt.Topic = "epochs"
				rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
				rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = q.partition, q.current, q.epoch
				rt.Partitions = append(rt.Partitions, rp)
				req.Topics = append(req.Topics, rt)
				return req
			})
		}
	}
}
