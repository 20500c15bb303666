//go:build oracle

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/test/oracle"
)

// codes are the wire codes of the reasons that the test meets.
var codes = map[error]int16{
	ErrUnknownTopic: 3, ErrInvalidTopic: 17, ErrUnsupportedVersion: 35, ErrTopicExists: 36, ErrInvalidPartitions: 37,
	ErrInvalidReplicationFactor: 38, ErrInvalidReplicaAssignment: 39, ErrInvalidConfig: 40, ErrInvalidRequest: 42,
	ErrPolicyViolation: 44, ErrInvalidUpdateVersion: 95, ErrUnknownTopicID: 100, ErrBrokerNotRegistered: 102,
}

func answer(e *Error) string {
	if e == nil {
		return "0 "
	}
	for reason, code := range codes {
		if errors.Is(e, reason) {
			return fmt.Sprint(code, " ", e.Message)
		}
	}
	return fmt.Sprint("? ", e)
}

func kafkaAnswer(code int16, message *string) string {
	if message == nil {
		return fmt.Sprint(code, " ")
	}
	return fmt.Sprint(code, " ", *message)
}

// Left out: more than 10000 new partitions for a topic, where Kafka answers -1
// and adds those that fit all the same; and an upgrade of kraft.version, which
// this node's quorum refuses.

// TestRefusalsEqualKafka sends requests to Kafka, and the same commands to a
// controller over an image with the same topics, and compares codes and texts.
func TestRefusalsEqualKafka(t *testing.T) {
	node := oracle.Get(t, oracle.Version).Start(t, oracle.NodeOptions{})
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	props := map[string]string{"log.dirs": "/data", "node.id": "1"}
	config.FillStandalone(props)
	static, err := config.NewNode(props)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NodeOptions("4L6g3nShT-eMCtK--X86sw", static, func() *config.Node { return static })
	if err != nil {
		t.Fatal(err)
	}
	k := newCluster(t)
	k.c = New(o)
	k.addBroker(1)
	b := both{t, client, k}
	b.createTopics()
	b.createPartitions()
	b.alterConfigs()
	b.deleteTopics()
	b.updateFeatures()
}

// both asks Kafka and the controller.
type both struct {
	t      *testing.T
	client *kgo.Client
	k      *cluster
}

func (b both) compare(what string, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s\n  got %s\n want %s", what, got, want)
	}
}

func (b both) createTopics() {
	v := func(s string) *string { return &s }
	topics := []NewTopic{
		{Name: "have.it", Partitions: 3, ReplicationFactor: 1},
		{Name: "have.it", Partitions: 3, ReplicationFactor: 1},
		{Name: "have_it", Partitions: 1, ReplicationFactor: 1},
		{Name: "ä", Partitions: 1, ReplicationFactor: 1},
		{Name: "__cluster_metadata", Partitions: 1, ReplicationFactor: 1},
		{Name: "n", Partitions: -2, ReplicationFactor: 1},
		{Name: "n", Partitions: 1, ReplicationFactor: -2},
		{Name: "n", Partitions: 10001, ReplicationFactor: 1},
		{Name: "n", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"retention.ms", nil}}},
		{Name: "n", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"retention.ms", v("x")}}},
		{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{2}}}},
		{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{1, 1}}}},
		{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{1, []int32{1}}}},
		{Name: "n", Partitions: 1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{1}}}},
		{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{1}}, {0, []int32{1}}}},
	}
	for _, topic := range topics {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.TimeoutMillis = 10000
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic.Name, topic.Partitions, topic.ReplicationFactor
		for _, a := range topic.Assignments {
			ra := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			ra.Partition, ra.Replicas = a.Partition, a.Brokers
			rt.ReplicaAssignment = append(rt.ReplicaAssignment, ra)
		}
		for _, c := range topic.Configs {
			rc := kmsg.NewCreateTopicsRequestTopicConfig()
			rc.Name, rc.Value = c.Key, c.Value
			rt.Configs = append(rt.Configs, rc)
		}
		req.Topics = []kmsg.CreateTopicsRequestTopic{rt}
		resp, err := req.RequestWith(context.Background(), b.client)
		if err != nil {
			b.t.Fatal(err)
		}
		got := ""
		d, err := b.k.decide(CreateTopics{Topics: []NewTopic{topic}})
		if err != nil {
			got = answer(asError(err, ErrUnknownServerError))
		} else {
			b.k.apply(d)
			got = answer(d.Result.(CreateTopicsResult).Topics[0].Err)
		}
		b.compare(fmt.Sprintf("create %+v", topic), got, kafkaAnswer(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage))
	}
}

func (b both) createPartitions() {
	for _, m := range []MorePartitions{
		{Topic: "none", Count: 2},
		{Topic: "have.it", Count: 3},
		{Topic: "have.it", Count: 2},
		{Topic: "have.it", Count: -1},
		{Topic: "have.it", Count: 5, Assignments: [][]int32{{1}}},
		{Topic: "have.it", Count: 4, Assignments: [][]int32{{3}}},
		{Topic: "have.it", Count: 4, Assignments: [][]int32{{}}},
		{Topic: "have.it", Count: 4},
	} {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.TimeoutMillis = 10000
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = m.Topic, m.Count
		for _, replicas := range m.Assignments {
			ra := kmsg.NewCreatePartitionsRequestTopicAssignment()
			ra.Replicas = replicas
			rt.Assignment = append(rt.Assignment, ra)
		}
		req.Topics = []kmsg.CreatePartitionsRequestTopic{rt}
		resp, err := req.RequestWith(context.Background(), b.client)
		if err != nil {
			b.t.Fatal(err)
		}
		res := b.k.do(CreatePartitions{Topics: []MorePartitions{m}}).(CreatePartitionsResult)
		b.compare(fmt.Sprintf("partitions %+v", m), answer(res.Topics[0].Err),
			kafkaAnswer(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage))
	}
}

func (b both) alterConfigs() {
	v := func(s string) *string { return &s }
	topic := metadata.TopicConfigs("have.it")
	for _, a := range []AlterResource{
		{topic, []ConfigOp{{"retention.ms", OpSet, v("5")}}},
		{topic, []ConfigOp{{"retention.ms", OpAppend, v("5")}}},
		{topic, []ConfigOp{{"retention.ms", OpSet, nil}}},
		{topic, []ConfigOp{{"retention.ms", OpSet, v("5")}, {"retention.ms", OpDelete, nil}}},
		{topic, []ConfigOp{{"nope", OpSet, v("5")}}},
		{topic, []ConfigOp{{"nope", OpDelete, nil}}},
		{topic, []ConfigOp{{"nope", OpAppend, v("a")}}},
		{topic, []ConfigOp{{"cleanup.policy", OpAppend, v("compact")}}},
		{topic, []ConfigOp{{"cleanup.policy", OpAppend, v("other")}}},
		{topic, []ConfigOp{{"cleanup.policy", OpSubtract, v("delete,compact")}}},
		{topic, []ConfigOp{{"segment.bytes", OpSet, v("x")}}},
		{metadata.TopicConfigs("none"), []ConfigOp{{"retention.ms", OpSet, v("5")}}},
		{metadata.TopicConfigs("a/b"), []ConfigOp{{"retention.ms", OpSet, v("5")}}},
		{metadata.TopicConfigs(""), []ConfigOp{{"retention.ms", OpSet, v("5")}}},
		{metadata.ClusterConfigs, []ConfigOp{{minISRKey, OpDelete, nil}}},
		{metadata.ConfigResource{Type: metadata.ResourceGroup},
			[]ConfigOp{{"consumer.heartbeat.interval.ms", OpSet, v("6000")}}},
		{metadata.ConfigResource{Type: metadata.ResourceGroup, Name: "g"}, []ConfigOp{{"nope", OpSet, v("6000")}}},
		{metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "m"}, []ConfigOp{{"nope", OpSet, v("6000")}}},
		{metadata.ConfigResource{Type: 99, Name: "m"}, []ConfigOp{{"nope", OpSet, v("6000")}}},
	} {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		rr := kmsg.NewIncrementalAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceType(a.Resource.Type), a.Resource.Name
		for _, op := range a.Ops {
			rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			rc.Name, rc.Op, rc.Value = op.Key, kmsg.IncrementalAlterConfigOp(op.Op), op.Value
			rr.Configs = append(rr.Configs, rc)
		}
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{rr}
		resp, err := req.RequestWith(context.Background(), b.client)
		if err != nil {
			b.t.Fatal(err)
		}
		res := b.k.do(IncrementalAlterConfigs{Resources: []AlterResource{a}}).(AlterConfigsResult)
		b.compare(fmt.Sprintf("alter %+v", a), answer(res.Resources[0].Err),
			kafkaAnswer(resp.Resources[0].ErrorCode, resp.Resources[0].ErrorMessage))
	}
}

func (b both) deleteTopics() {
	for _, name := range []string{"none", "have.it", "have.it"} {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TimeoutMillis = 10000
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.Topic = &name
		req.Topics = []kmsg.DeleteTopicsRequestTopic{rt}
		resp, err := req.RequestWith(context.Background(), b.client)
		if err != nil {
			b.t.Fatal(err)
		}
		res := b.k.do(DeleteTopics{Names: []string{name}}).(DeleteTopicsResult)
		b.compare("delete "+name, answer(res.Topics[0].Err),
			kafkaAnswer(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage))
	}
	id := metadata.UUID{0: 3}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 10000
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.TopicID = id
	req.Topics = []kmsg.DeleteTopicsRequestTopic{rt}
	resp, err := req.RequestWith(context.Background(), b.client)
	if err != nil {
		b.t.Fatal(err)
	}
	res := b.k.do(DeleteTopics{IDs: []metadata.UUID{id}}).(DeleteTopicsResult)
	b.compare("delete by id", answer(res.Topics[0].Err),
		kafkaAnswer(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage))
}

func (b both) updateFeatures() {
	for _, u := range []FeatureUpdate{
		{"transaction.version", 3, Upgrade}, {"nope", 1, Upgrade}, {"transaction.version", 1, Upgrade},
		{"transaction.version", -1, Upgrade}, {"transaction.version", 1, SafeDowngrade},
		{"transaction.version", 2, SafeDowngrade}, {"metadata.version", 29, SafeDowngrade},
		{"metadata.version", 29, UnsafeDowngrade}, {"metadata.version", 6, SafeDowngrade}, {"metadata.version", 31, Upgrade},
		{"metadata.version", 30, Upgrade}, {"group.version", 0, SafeDowngrade}, {"streams.version", 0, UnsafeDowngrade},
		{"transaction.version", 1, 9},
		{"eligible.leader.replicas.version", 0, SafeDowngrade}, {"eligible.leader.replicas.version", 1, Upgrade},
	} {
		req := kmsg.NewPtrUpdateFeaturesRequest()
		req.TimeoutMillis = 10000
		rf := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		rf.Feature, rf.MaxVersionLevel, rf.UpgradeType = u.Name, u.Level, int8(u.Type)
		req.FeatureUpdates = []kmsg.UpdateFeaturesRequestFeatureUpdate{rf}
		resp, err := req.RequestWith(context.Background(), b.client)
		if err != nil {
			b.t.Fatal(err)
		}
		got := "0 "
		d, err := b.k.decide(UpdateFeatures{Updates: []FeatureUpdate{u}})
		if err != nil {
			got = answer(asError(err, ErrUnknownServerError))
		} else {
			b.k.apply(d)
		}
		b.compare(fmt.Sprintf("update %+v", u), got, kafkaAnswer(resp.ErrorCode, resp.ErrorMessage))
	}
}
