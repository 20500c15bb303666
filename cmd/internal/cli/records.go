package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Deleted is the outcome of a deletion of records in one partition.
type Deleted struct {
	Partition
	LowWatermark int64
	Err          *Failure
}

// DeleteRecords deletes the records below an offset in each of partitions, -1 for all that are replicated. Partitions
// without a known leader are tried again until the API timeout.
func (a *Admin) DeleteRecords(ctx context.Context, env *Env, partitions []Partition, before []int64) []Deleted {
	done := make([]Deleted, len(partitions))
	open := make([]int, len(partitions))
	for i, p := range partitions {
		done[i].Partition, open[i] = p, i
	}
	deadline := time.Now().Add(a.timeout)
	for tries := 1; ; tries++ {
		open = a.deleteOnce(ctx, env, done, open, before)
		if len(open) == 0 {
			return done
		}
		if now := time.Now(); now.After(deadline) {
			for _, i := range open {
				done[i].Err = Fail(classTimeout, "Call(callName=deleteRecords(api=METADATA), deadlineMs=%d, tries=%d, "+
					"nextAllowedTryMs=%d) timed out at %d after %d attempt(s)", deadline.UnixMilli(), tries,
					now.UnixMilli()+int64(Backoff(tries)/time.Millisecond), now.UnixMilli(), tries)
			}
			return done
		}
		time.Sleep(Backoff(tries))
	}
}

// deleteOnce asks each leader once and returns the partitions to ask for again.
func (a *Admin) deleteOnce(ctx context.Context, env *Env, done []Deleted, open []int, before []int64) (again []int) {
	byLeader, again, err := a.leadersOf(ctx, done, open)
	if err != nil {
		for _, i := range open {
			done[i].Err = AsFailure(err)
		}
		return nil
	}
	for leader, items := range byLeader {
		request := kmsg.NewPtrDeleteRecordsRequest()
		request.TimeoutMillis = int32(a.timeout / time.Millisecond)
		for _, i := range items {
			request.Topics = append(request.Topics, kmsg.DeleteRecordsRequestTopic{Topic: done[i].Topic,
				Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: done[i].ID, Offset: before[i]}}})
		}
		response, err := AskBroker[*kmsg.DeleteRecordsResponse](ctx, a, leader, "deleteRecords", request)
		if err != nil {
			for _, i := range items {
				done[i].Err = AsFailure(err)
			}
			continue
		}
		again = append(again, takeDeleted(env, done, items, response)...)
	}
	return again
}

func takeDeleted(env *Env, done []Deleted, items []int, response *kmsg.DeleteRecordsResponse) (again []int) {
	answers := map[string]kmsg.DeleteRecordsResponseTopicPartition{}
	key := func(topic string, id int32) string { return topic + "-" + strconv.Itoa(int(id)) }
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			answers[key(t.Topic, p.Partition)] = p
		}
	}
	for _, i := range items {
		name := key(done[i].Topic, done[i].ID)
		answer, ok := answers[name]
		if !ok {
			answer.ErrorCode = -1
		}
		done[i].LowWatermark, done[i].Err = answer.LowWatermark, APIFailure(answer.ErrorCode, nil)
		switch {
		case answer.ErrorCode == 0:
		case Retriable(answer.ErrorCode):
			again = append(again, i)
		default:
			env.Log("ERROR", "org.apache.kafka.clients.admin.internals.DeleteRecordsHandler",
				fmt.Sprintf("[AdminClient clientId=adminclient-1] DeleteRecords request for topic partition %s failed due to an "+
					"unexpected error %s", name, CodeName(answer.ErrorCode)))
		}
	}
	return again
}

// leadersOf groups partitions by their leaders, as they are now; again are those without.
func (a *Admin) leadersOf(ctx context.Context, done []Deleted, items []int) (map[int32][]int, []int, error) {
	request := kmsg.NewPtrMetadataRequest()
	asked := map[string]bool{}
	for _, i := range items {
		if topic := done[i].Topic; !asked[topic] {
			asked[topic] = true
			one := kmsg.NewMetadataRequestTopic()
			one.Topic = &topic
			request.Topics = append(request.Topics, one)
		}
	}
	response, err := Ask[*kmsg.MetadataResponse](ctx, a, "deleteRecords(api=METADATA)", request)
	if err != nil {
		return nil, nil, err
	}
	leaders, invalid := map[Partition]int32{}, map[string]*Failure{}
	for _, p := range Partitions(response.Topics) {
		leaders[Partition{Topic: p.Topic, ID: p.ID}] = p.Leader
	}
	for _, t := range response.Topics {
		if t.Topic != nil && t.ErrorCode != 0 && !Retriable(t.ErrorCode) {
			invalid[*t.Topic] = APIFailure(t.ErrorCode, nil)
		}
	}
	by := map[int32][]int{}
	var again []int
	for _, i := range items {
		leader, ok := leaders[Partition{Topic: done[i].Topic, ID: done[i].ID}]
		switch f := invalid[done[i].Topic]; {
		case f != nil:
			f.Message = fmt.Sprintf("Failed to fetch metadata for partition %s-%d due to invalid topic error: %s",
				done[i].Topic, done[i].ID, f.Message)
			done[i].Err = f
		case !ok || leader < 0:
			again = append(again, i)
		default:
			by[leader] = append(by[leader], i)
		}
	}
	return by, again, nil
}

// PartitionHash is the hashCode of Java's TopicPartition.
func PartitionHash(topic string, id int32) uint32 { return 31*(31+uint32(id)) + JavaHash(topic) }
