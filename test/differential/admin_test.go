//go:build oracle

package differential

import (
	"encoding/json"
	"fmt"
	"sort"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestApiVersions compares the table of versions. Tidemark may lack a key that is not built; what it lists must be
// Kafka's range.
func (w *world) testApiVersions(t *testing.T) {
	listed := func(_ *side, tree any) any {
		m, ok := tree.(map[string]any)
		if !ok {
			return tree
		}
		delete(m, "SupportedFeatures")
		delete(m, "FinalizedFeatures")
		delete(m, "FinalizedFeaturesEpoch")
		return m
	}
	both := make(map[int16][2][2]int16)
	for i, s := range w.sides {
		req := kmsg.NewPtrApiVersionsRequest()
		req.SetVersion(3)
		req.ClientSoftwareName, req.ClientSoftwareVersion = "differential", "1"
		answer, ok := s.ask(t, req).(*kmsg.ApiVersionsResponse)
		if !ok {
			t.Fatalf("%s does not answer", s.Name)
		}
		for _, k := range answer.ApiKeys {
			ranges := both[k.ApiKey]
			ranges[i] = [2]int16{k.MinVersion, k.MaxVersion + 1}
			both[k.ApiKey] = ranges
		}
	}
	for key, r := range both {
		if r[1] != [2]int16{} && r[0] != r[1] {
			t.Errorf("%s: Kafka serves %d to %d, Tidemark %d to %d",
				kmsg.NameForKey(key), r[0][0], r[0][1]-1, r[1][0], r[1][1]-1)
		}
	}
	for _, name := range []string{"", "has space", "näme", "ok-1.2"} {
		w.same(t, "client software "+name, func(*side) kmsg.Request {
			req := kmsg.NewPtrApiVersionsRequest()
			req.SetVersion(3)
			req.ClientSoftwareName, req.ClientSoftwareVersion = name, "1"
			return req
		}, listed, func(_ *side, tree any) any { // the keys were compared above
			if m, ok := tree.(map[string]any); ok && m["ErrorCode"] == json.Number("0") {
				delete(m, "ApiKeys")
			}
			return tree
		})
	}
}

func metadata(version int16, topics []string, autoCreate bool) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrMetadataRequest()
		req.SetVersion(version)
		req.AllowAutoTopicCreation = autoCreate
		if topics != nil {
			req.Topics = []kmsg.MetadataRequestTopic{}
		}
		for _, name := range topics {
			rt := kmsg.NewMetadataRequestTopic()
			rt.Topic = kmsg.StringPtr(name)
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

// byTopic orders the topics of an answer: Kafka's order is a hash table's.
func byTopic(_ *side, tree any) any {
	m, ok := tree.(map[string]any)
	if !ok {
		return tree
	}
	if topics, ok := m["Topics"].([]any); ok {
		sort.SliceStable(topics, func(i, j int) bool { return fmt.Sprint(topics[i]) < fmt.Sprint(topics[j]) })
	}
	return tree
}

func (w *world) testMetadata(t *testing.T) {
	w.create(t, "one", 3)
	w.create(t, "two", 1)
	for v := int16(0); v <= 13; v++ {
		for name, req := range map[string]request{
			"all":                metadata(v, nil, false),
			"none":               metadata(v, []string{}, false),
			"one":                metadata(v, []string{"one"}, false),
			"unknown":            metadata(v, []string{"nope"}, false),
			"unknown, auto":      metadata(v, []string{"nope"}, true),
			"illegal name":       metadata(v, []string{"a/b"}, false),
			"illegal name, auto": metadata(v, []string{"a/b"}, true),
			"empty name":         metadata(v, []string{""}, false),
			"twice":              metadata(v, []string{"one", "one"}, false),
		} {
			w.same(t, name, req, hide("ClusterID"), byTopic)
		}
	}
	for v := int16(10); v <= 13; v++ {
		for name, id := range map[string]func(s *side) [16]byte{
			"by id":      func(s *side) [16]byte { return s.topicID("one") },
			"unknown id": func(*side) [16]byte { return [16]byte{9, 9} },
		} {
			w.same(t, name, func(s *side) kmsg.Request {
				req := kmsg.NewPtrMetadataRequest()
				req.SetVersion(v)
				rt := kmsg.NewMetadataRequestTopic()
				rt.TopicID = id(s)
				req.Topics = append(req.Topics, rt)
				return req
			}, hide("ClusterID"))
		}
	}
	for v := int16(0); v <= 2; v++ {
		w.same(t, "DescribeCluster", func(*side) kmsg.Request {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.SetVersion(v)
			return req
		}, hide("ClusterID"))
	}
}

type createCase struct {
	topic                  string
	partitions             int32
	replication            int16
	config, value          string
	assignment             map[int32][]int32
	twice, validate, noVal bool
}

func (c createCase) request(version int16) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.SetVersion(version)
		req.TimeoutMillis, req.ValidateOnly = 30_000, c.validate
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = c.topic, c.partitions, c.replication
		if c.config != "" {
			rc := kmsg.NewCreateTopicsRequestTopicConfig()
			rc.Name = c.config
			if !c.noVal {
				rc.Value = kmsg.StringPtr(c.value)
			}
			rt.Configs = append(rt.Configs, rc)
		}
		for p := range int32(len(c.assignment)) {
			ra := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			ra.Partition, ra.Replicas = p, c.assignment[p]
			rt.ReplicaAssignment = append(rt.ReplicaAssignment, ra)
		}
		req.Topics = append(req.Topics, rt)
		if c.twice {
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

func createCases() map[string]createCase {
	long := make([]byte, 250)
	for i := range long {
		long[i] = 'a'
	}
	out := map[string]createCase{
		"exists":                  {topic: "exists", partitions: 1, replication: 1},
		"replication factor 3":    {topic: "new", partitions: 1, replication: 3},
		"replication factor 0":    {topic: "new", partitions: 1, replication: 0},
		"replication factor -2":   {topic: "new", partitions: 1, replication: -2},
		"0 partitions":            {topic: "new", partitions: 0, replication: 1},
		"-2 partitions":           {topic: "new", partitions: -2, replication: 1},
		"empty name":              {topic: "", partitions: 1, replication: 1},
		"dot":                     {topic: ".", partitions: 1, replication: 1},
		"two dots":                {topic: "..", partitions: 1, replication: 1},
		"slash":                   {topic: "a/b", partitions: 1, replication: 1},
		"250 characters":          {topic: string(long), partitions: 1, replication: 1},
		"collides":                {topic: "with_dot", partitions: 1, replication: 1},
		"metadata topic":          {topic: "__cluster_metadata", partitions: 1, replication: 1},
		"twice":                   {topic: "new", partitions: 1, replication: 1, twice: true},
		"unknown config":          {topic: "new", partitions: 1, replication: 1, config: "nope", value: "1"},
		"null value":              {topic: "new", partitions: 1, replication: 1, config: "retention.ms", noVal: true},
		"unknown broker":          {topic: "new", partitions: -1, replication: -1, assignment: map[int32][]int32{0: {9}}},
		"assignment with numbers": {topic: "new", partitions: 1, replication: 1, assignment: map[int32][]int32{0: {1}}},
		"replica twice":           {topic: "new", partitions: -1, replication: -1, assignment: map[int32][]int32{0: {1, 1}}},
		"uneven": {topic: "new", partitions: -1, replication: -1,
			assignment: map[int32][]int32{0: {1}, 1: {}}},
		"validate only":           {topic: "valid", partitions: 2, replication: 1, validate: true},
		"defaults, validate only": {topic: "valid", partitions: -1, replication: -1, validate: true},
	}
	for key, value := range map[string]string{"segment.bytes": "1000", "cleanup.policy": "x", "retention.ms": "x",
		"compression.type": "x", "min.insync.replicas": "0", "message.timestamp.type": "x", "segment.ms": "0",
		"preallocate": "maybe", "min.cleanable.dirty.ratio": "1.5", "index.interval.bytes": "-1",
		"remote.storage.enable": "true", "follower.replication.throttled.replicas": "x", "compression.zstd.level": "99",
		"max.message.bytes": "99999999999", "flush.messages": "0", "compression.gzip.level": "0"} {
		out["config "+key] = createCase{topic: "new", partitions: 1, replication: 1, config: key, value: value}
	}
	return out
}

func (w *world) testCreateTopics(t *testing.T) {
	w.create(t, "exists", 1)
	w.create(t, "with.dot", 1)
	for name, c := range createCases() {
		for _, v := range []int16{2, 4, 5, 7} {
			w.same(t, name, c.request(v), hideID)
		}
	}
	made := createCase{topic: "made", partitions: 2, replication: 1, config: "retention.ms", value: "-1"}
	w.same(t, "made", made.request(7), hideID)
	w.same(t, "delete an unknown topic", deleteTopic("nope"))
}

// hideID hides a topic id that this side has not learned.
func hideID(_ *side, tree any) any {
	if m, ok := tree.(map[string]any); ok {
		for key := range m {
			if id, ok := m[key].([]any); ok && key == "TopicID" {
				m[key] = fmt.Sprintf("id, null %v", fmt.Sprint(id) == fmt.Sprint([16]byte{}))
			} else {
				m[key] = hideID(nil, m[key])
			}
		}
	}
	if list, ok := tree.([]any); ok {
		for i := range list {
			list[i] = hideID(nil, list[i])
		}
	}
	return tree
}

func deleteTopic(name string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.SetVersion(6)
		req.TimeoutMillis = 30_000
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, rt)
		return req
	}
}

func describeConfigs(version int16, kind kmsg.ConfigResourceType, name string, keys ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.SetVersion(version)
		req.IncludeSynonyms = true
		rr := kmsg.NewDescribeConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = kind, name
		if len(keys) > 0 {
			rr.ConfigNames = keys
		}
		req.Resources = append(req.Resources, rr)
		return req
	}
}

// byName orders the configs of an answer: Kafka's order is a hash table's. Documentation is each project's own words.
func byName(_ *side, tree any) any {
	m, ok := tree.(map[string]any)
	if !ok {
		return tree
	}
	resources, _ := m["Resources"].([]any)
	for _, r := range resources {
		configs, _ := r.(map[string]any)["Configs"].([]any)
		name := func(i int) string { return fmt.Sprint(configs[i].(map[string]any)["Name"]) }
		sort.Slice(configs, func(i, j int) bool { return name(i) < name(j) })
		for _, c := range configs {
			delete(c.(map[string]any), "Documentation")
		}
	}
	return tree
}

func (w *world) testDescribeConfigs(t *testing.T) {
	w.create(t, "plain", 1)
	w.create(t, "set", 1, "retention.ms", "12345", "cleanup.policy", "compact,delete", "segment.bytes", "2000000")
	for v := int16(1); v <= 4; v++ {
		w.same(t, "defaults", describeConfigs(v, kmsg.ConfigResourceTypeTopic, "plain"), byName)
		w.same(t, "set", describeConfigs(v, kmsg.ConfigResourceTypeTopic, "set"), byName)
		w.same(t, "some keys", describeConfigs(v, kmsg.ConfigResourceTypeTopic, "set", "retention.ms", "nope"), byName)
		w.same(t, "unknown topic", describeConfigs(v, kmsg.ConfigResourceTypeTopic, "nope"))
		w.same(t, "illegal topic", describeConfigs(v, kmsg.ConfigResourceTypeTopic, "a/b"))
		w.same(t, "other broker", describeConfigs(v, kmsg.ConfigResourceTypeBroker, "7"))
		w.same(t, "broker x", describeConfigs(v, kmsg.ConfigResourceTypeBroker, "x"))
		w.same(t, "all brokers", describeConfigs(v, kmsg.ConfigResourceTypeBroker, ""), byName)
		w.same(t, "type 99", describeConfigs(v, kmsg.ConfigResourceType(99), "x"))
		w.same(t, "some keys of the broker", describeConfigs(v, kmsg.ConfigResourceTypeBroker, "1", "node.id",
			"log.retention.ms", "log.retention.hours", "num.partitions", "message.max.bytes"), byName)
	}
}

func initProducerID(version int16, txn *string, id int64, epoch int16) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.SetVersion(version)
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = txn, 60_000, id, epoch
		return req
	}
}

func (w *world) testInitProducerID(t *testing.T) {
	for _, s := range w.sides { // Kafka answers "loading" until it has fetched its first block of ids; id 0 is a default
		s.waitFor(t, "a producer id above 0", func() bool {
			answer, ok := s.ask(t, initProducerID(4, nil, -1, -1)(s)).(*kmsg.InitProducerIDResponse)
			return ok && answer.ErrorCode == 0 && answer.ProducerID > 0
		})
	}
	for v := int16(0); v <= 5; v++ {
		w.same(t, "no transaction", initProducerID(v, nil, -1, -1), hide("ProducerID"))
		w.same(t, "empty transactional id", initProducerID(v, kmsg.StringPtr(""), -1, -1), hide("ProducerID"))
		w.same(t, "a producer id and an epoch", initProducerID(v, nil, 5, 3), hide("ProducerID"))
	}
}
