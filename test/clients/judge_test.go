//go:build oracle

package clients

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/pair"
	"tidemark/test/proc"
)

// judge looks at the broker from outside, whatever the clients say.
type judge struct {
	client *kgo.Client
	admin  *kadm.Client
}

func newJudge(t *testing.T, addr string) *judge {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &judge{client: c, admin: kadm.NewClient(c)}
}

// waitTopic waits until a new topic has its leaders: Kafka answers the request that makes it some time before.
func (j *judge) waitTopic(t *testing.T, topic string, partitions int) {
	t.Helper()
	var found kadm.TopicDetails
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if found, err = j.admin.ListTopics(t.Context(), topic); err != nil || found[topic].Err != nil {
			continue
		}
		n := 0
		for _, p := range found[topic].Partitions {
			if p.Err == nil && p.Leader >= 0 {
				n++
			}
		}
		if n == partitions {
			return
		}
	}
	t.Fatalf("topic %s has no leaders: %v, %+v", topic, err, found)
}

// batches are the batches of partition 0 of a topic, as they lie in the log.
func (j *judge) batches(t *testing.T, topic string) (all []record.Batch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	topics, err := j.admin.ListTopics(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.PartitionMaxBytes = 10 << 20
	of := kmsg.NewFetchRequestTopic()
	of.Topic, of.TopicID, of.Partitions = topic, topics[topic].ID, []kmsg.FetchRequestTopicPartition{partition}
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.Topics = 10<<20, []kmsg.FetchRequestTopic{of}
	answer, err := req.RequestWith(ctx, j.client)
	if err != nil {
		t.Fatal(err)
	}
	got := answer.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		t.Fatal(err)
	}
	for rest := got.RecordBatches; len(rest) > 0; {
		var entry []byte
		if _, entry, rest, err = record.NextEntry(rest); err != nil {
			t.Fatal(err)
		}
		b, err := record.ParseBatch(entry)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// values are the values of partition 0 of a topic that a reader sees, up to the end.
func (j *judge) values(t *testing.T, addr, topic string, level kgo.IsolationLevel) (values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ends, err := j.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for next := int64(0); next < end.Offset; {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%s after %q: %v", topic, values, err)
		}
		for r := range fetches.RecordsAll() {
			if next = r.Offset + 1; !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		}
	}
	return values
}

// committed is the offset that a group has committed for a partition; −1 is none.
func (j *judge) committed(t *testing.T, group, topic string, partition int32) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found, err := j.admin.FetchOffsets(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := found.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}

// members waits until a group has so many members, in the protocol given.
func (j *judge) members(t *testing.T, group, protocol string, want int) {
	t.Helper()
	n, err := -1, error(nil)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if n, err = j.count(t, group, protocol); err == nil && n == want {
			return
		}
	}
	t.Fatalf("group %s has %d members (%v), want %d", group, n, err, want)
}

func (j *judge) count(t *testing.T, group, protocol string) (int, error) {
	if protocol == "consumer" {
		req := kmsg.NewPtrConsumerGroupDescribeRequest()
		req.Groups = []string{group}
		answer, err := req.RequestWith(t.Context(), j.client)
		if err != nil {
			return -1, err
		}
		return len(answer.Groups[0].Members), kerr.ErrorForCode(answer.Groups[0].ErrorCode)
	}
	found, err := j.admin.DescribeGroups(t.Context(), group)
	if err != nil {
		return -1, err
	}
	if g := found[group]; g.ProtocolType != "consumer" && len(g.Members) > 0 {
		return -1, fmt.Errorf("protocol type %q", g.ProtocolType)
	}
	return len(found[group].Members), found[group].Err
}

// world is a broker that can be killed and started again in its place.
type world struct {
	addr  string
	kill  func(t *testing.T) // and starts it again
	judge *judge
}

// settings make groups settle without the pauses that are meant for large ones.
var settings = map[string]string{"group.initial.rebalance.delay.ms": "100", "offsets.topic.num.partitions": "5",
	"transaction.state.log.num.partitions": "5", "group.consumer.min.heartbeat.interval.ms": "100",
	"group.consumer.heartbeat.interval.ms": "300"}

// newWorld starts a broker: Tidemark, or Kafka when Kafka plays its part (see package pair).
func newWorld(t *testing.T) *world {
	dir := filepath.Join(t.TempDir(), "data")
	w := &world{}
	if pair.Twin() {
		n := oracle.Get(t, oracle.Version).Start(t, oracle.NodeOptions{Dir: dir, Properties: settings})
		w.addr = n.Addr
		w.kill = func(t *testing.T) {
			n.Kill(t)
			n = n.Restart(t, settings)
		}
	} else {
		var flags []string
		for key, value := range settings {
			flags = append(flags, "--set", key+"="+value)
		}
		port := proc.FreePorts(t, 1)[0]
		p, addr := proc.Serve(t, dir, port, flags...)
		oracle.WaitReady(t, p, addr)
		w.addr = addr
		w.kill = func(t *testing.T) {
			p.Kill(t)
			p, _ = proc.Serve(t, dir, port, flags...)
			oracle.WaitReady(t, p, addr)
		}
	}
	w.judge = newJudge(t, w.addr)
	return w
}
