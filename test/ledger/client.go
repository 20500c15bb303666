package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Client sends single requests to the one server of a cluster.
type Client struct {
	Addr   string
	client *kgo.Client
	serves map[int16]bool
}

// askTimeout bounds one request.
const askTimeout = time.Minute

// Dial returns a client of the server at addr, which must be ready. It is closed at the end of the test.
func Dial(t testing.TB, addr string) *Client {
	t.Helper()
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(0, 12) // later ones name topics by id
	versions.SetMaxKeyVersion(1, 12)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := &Client{Addr: addr, client: client, serves: make(map[int16]bool)}
	answer := Ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest())
	for _, k := range answer.ApiKeys {
		c.serves[k.ApiKey] = true
	}
	return c
}

// Serves tells whether the server answers all of the request kinds.
func (c *Client) Serves(keys ...int16) bool {
	for _, k := range keys {
		if !c.serves[k] {
			return false
		}
	}
	return true
}

// Try sends a request in the highest version that both know. It does not retry.
func (c *Client) Try(req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	return c.client.SeedBrokers()[0].Request(ctx, req)
}

// Ask is Try for requests that must be answered.
func Ask[R kmsg.Response](t testing.TB, c *Client, req kmsg.Request) R {
	t.Helper()
	resp, err := c.Try(req)
	if err != nil {
		t.Fatalf("%s: %s: %v", c.Addr, kmsg.NameForKey(req.Key()), err)
	}
	answer, ok := resp.(R)
	if !ok {
		t.Fatalf("%s: answer of type %T", c.Addr, resp)
	}
	return answer
}

// Produced is the answer to a produce request.
type Produced struct {
	Base          int64
	Code          int16
	LogAppendTime int64
}

// Err is nil when the batch was taken.
func (p Produced) Err() error { return kerr.ErrorForCode(p.Code) }

// Produce sends one batch with acks=all.
func (c *Client) Produce(topic string, partition int32, batch []byte) (Produced, error) {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30_000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := c.Try(req)
	if err != nil {
		return Produced{}, err
	}
	answer, ok := resp.(*kmsg.ProduceResponse)
	if !ok || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return Produced{}, errors.New("no answer for the partition")
	}
	r := answer.Topics[0].Partitions[0]
	return Produced{r.BaseOffset, r.ErrorCode, r.LogAppendTime}, nil
}

// CreateTopic makes a topic with configs given as key, value, …, and waits until it is led.
func (c *Client) CreateTopic(t testing.TB, topic string, partitions int32, configs ...string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, partitions, 1
	for i := 0; i+1 < len(configs); i += 2 {
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		rc.Name, rc.Value = configs[i], kmsg.StringPtr(configs[i+1])
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	answer := Ask[*kmsg.CreateTopicsResponse](t, c, req)
	if err := kerr.ErrorForCode(answer.Topics[0].ErrorCode); err != nil {
		t.Fatalf("%s: create %s: %v", c.Addr, topic, err)
	}
	c.WaitLed(t, topic, partitions)
}

// DeleteTopic deletes a topic.
func (c *Client) DeleteTopic(t testing.TB, topic string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames = 30_000, []string{topic}
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, rt)
	answer := Ask[*kmsg.DeleteTopicsResponse](t, c, req)
	if err := kerr.ErrorForCode(answer.Topics[0].ErrorCode); err != nil {
		t.Fatalf("%s: delete %s: %v", c.Addr, topic, err)
	}
}

// WaitLed waits until the partitions of a topic answer look-ups.
func (c *Client) WaitLed(t testing.TB, topic string, partitions int32) {
	t.Helper()
	queries := make(map[int32]int64)
	for p := range partitions {
		queries[p] = -1
	}
	var last error
	for deadline := time.Now().Add(askTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		last = nil
		for _, p := range c.listOffsets(t, map[string]map[int32]int64{topic: queries})[topic] {
			last = errors.Join(last, kerr.ErrorForCode(p.code))
		}
		if last == nil {
			return
		}
	}
	t.Fatalf("%s: %s is not led: %v", c.Addr, topic, last)
}

// Metadata describes the topics named, or all.
func (c *Client) Metadata(t testing.TB, topics ...string) map[string]kmsg.MetadataResponseTopic {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, rt)
	}
	out := make(map[string]kmsg.MetadataResponseTopic)
	for _, topic := range Ask[*kmsg.MetadataResponse](t, c, req).Topics {
		if topic.ErrorCode == 0 && topic.Topic != nil {
			out[*topic.Topic] = topic
		}
	}
	return out
}

type listed struct {
	Found
	code int16
}

// listOffsets asks one question per partition.
func (c *Client) listOffsets(t testing.TB, queries map[string]map[int32]int64) map[string]map[int32]listed {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	for topic, partitions := range queries {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		for p, ts := range partitions {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = p, ts, -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	out := make(map[string]map[int32]listed)
	for _, topic := range Ask[*kmsg.ListOffsetsResponse](t, c, req).Topics {
		out[topic.Topic] = make(map[int32]listed)
		for _, p := range topic.Partitions {
			out[topic.Topic][p.Partition] = listed{Found{p.Offset, p.Timestamp, p.LeaderEpoch}, p.ErrorCode}
		}
	}
	return out
}

// ForTime is a look-up by time at an isolation level, and its error code.
func (c *Client) ForTime(t testing.TB, topic string, partition int32, ts int64, isolation int8) (Found, int16) {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = partition, ts, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	p := Ask[*kmsg.ListOffsetsResponse](t, c, req).Topics[0].Partitions[0]
	return Found{p.Offset, p.Timestamp, p.LeaderEpoch}, p.ErrorCode
}

// EndOffset is the log end offset of a partition that has no open transaction.
func (c *Client) EndOffset(t testing.TB, topic string, partition int32) int64 {
	t.Helper()
	got := c.listOffsets(t, map[string]map[int32]int64{topic: {partition: -1}})[topic][partition]
	if err := kerr.ErrorForCode(got.code); err != nil {
		t.Fatalf("%s: end of %s-%d: %v", c.Addr, topic, partition, err)
	}
	return got.Offset
}
