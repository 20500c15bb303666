package api

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
)

// waiting fails when a request that must wait was answered.
func waiting(t *testing.T, answer <-chan protocol.Response) {
	t.Helper()
	select {
	case <-answer:
		t.Fatal("answered, must wait")
	default:
	}
}

func produced(t *testing.T, req *kmsg.ProduceRequest, answer <-chan protocol.Response,
) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	select {
	case r := <-answer:
		return read[*kmsg.ProduceResponse](t, req, r).Topics[0].Partitions[0]
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		panic("unreachable")
	}
}

func TestAcksAllWaitsForTheFollower(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1, self, other)
	req := produceRequest(t, "a", acksAll, 0)
	answer := w.send(context.Background(), req)
	waiting(t, answer)
	ask[*kmsg.FetchResponse](w, fetchRequest("a", other, 0, 0)) // has nothing yet
	waiting(t, answer)
	ask[*kmsg.FetchResponse](w, fetchRequest("a", other, 1, 0)) // has the record
	if got := produced(t, req, answer); got.ErrorCode != none || got.BaseOffset != 0 {
		t.Errorf("got %+v, want offset 0", got)
	}
}

func TestAcksLeaderDoesNotWait(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1, self, other)
	got := ask[*kmsg.ProduceResponse](w, produceRequest(t, "a", acksLeader, 0)).Topics[0].Partitions[0]
	if got.ErrorCode != none || got.BaseOffset != 0 {
		t.Errorf("got %+v, want offset 0", got)
	}
}

// The batch is in the log: Kafka keeps its offset in the answer.
func TestAcksAllTimesOut(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1, self, other)
	req := produceRequest(t, "a", acksAll, 0)
	answer := w.send(context.Background(), req)
	waiting(t, answer)
	w.timers[0]()
	if got := produced(t, req, answer); got.ErrorCode != 7 || got.BaseOffset != 0 {
		t.Errorf("got %+v, want code 7 and offset 0", got)
	}
}

func TestAcksAllEndsWithTheLeadership(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1, self, other)
	req := produceRequest(t, "a", acksAll, 0)
	answer := w.send(context.Background(), req)
	waiting(t, answer)
	w.replay(&metadata.PartitionChangeRecord{TopicID: topicID("a"), Leader: other})
	if got := produced(t, req, answer); got.ErrorCode != 6 {
		t.Errorf("got %+v, want code 6", got)
	}
}

func TestAcksAllEndsWithTheTopic(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1, self, other)
	req := produceRequest(t, "a", acksAll, 0)
	answer := w.send(context.Background(), req)
	waiting(t, answer)
	w.replay(&metadata.RemoveTopicRecord{TopicID: topicID("a")})
	if got := produced(t, req, answer); got.ErrorCode != 3 {
		t.Errorf("got %+v, want code 3", got)
	}
}

func TestConsumersReadBelowTheHighWatermark(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1, self, other)
	ask[*kmsg.ProduceResponse](w, produceRequest(t, "a", acksLeader, 0))
	got := ask[*kmsg.FetchResponse](w, fetchRequest("a", -1, 0, 0)).Topics[0].Partitions[0]
	if got.HighWatermark != 0 || len(got.RecordBatches) != 0 {
		t.Errorf("consumer: %+v, want nothing and high watermark 0", got)
	}
	got = ask[*kmsg.FetchResponse](w, fetchRequest("a", other, 0, 0)).Topics[0].Partitions[0]
	if len(got.RecordBatches) == 0 {
		t.Error("the follower gets no records")
	}
	ask[*kmsg.FetchResponse](w, fetchRequest("a", other, 1, 0))
	got = ask[*kmsg.FetchResponse](w, fetchRequest("a", -1, 0, 0)).Topics[0].Partitions[0]
	if got.HighWatermark != 1 || len(got.RecordBatches) == 0 {
		t.Errorf("consumer: %+v, want the record and high watermark 1", got)
	}
}

// An old leader tells where the new one is, once the client's version can take it.
func TestErrorsNameTheNewLeader(t *testing.T) {
	w := newWorld(t)
	w.replay(&metadata.RegisterBrokerRecord{BrokerID: other, EndPoints: []metadata.Endpoint{{Name: "PLAINTEXT",
		Host: "there", Port: 99}}, LogDirs: []metadata.UUID{{8}}})
	w.topic("a", 1, self, other)
	w.replay(&metadata.PartitionChangeRecord{TopicID: topicID("a"), Leader: other})
	for _, version := range []int16{15, 16} {
		req := fetchRequest("a", -1, 0, 0)
		req.SetVersion(version)
		req.Topics[0].TopicID = topicID("a")
		answer := ask[*kmsg.FetchResponse](w, req)
		got := answer.Topics[0].Partitions[0]
		want := int32(-1)
		if version >= leaderFetch {
			want = other
		}
		if got.ErrorCode != 6 || got.CurrentLeader.LeaderID != want || (len(answer.Brokers) == 1) != (want == other) {
			t.Errorf("fetch v%d: %+v, %+v; want code 6 and leader %d", version, got, answer.Brokers, want)
		}
	}
	for _, version := range []int16{9, 10} {
		req := produceRequest(t, "a", acksLeader, 0)
		req.SetVersion(version)
		answer := ask[*kmsg.ProduceResponse](w, req)
		got := answer.Topics[0].Partitions[0]
		want := int32(-1)
		if version >= leaderProduceVersion {
			want = other
		}
		if got.ErrorCode != 6 || got.CurrentLeader.LeaderID != want || (len(answer.Brokers) == 1) != (want == other) {
			t.Errorf("produce v%d: %+v, %+v; want code 6 and leader %d", version, got, answer.Brokers, want)
		}
	}
}
