//go:build oracle

package differential

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// sorted orders lists by what is in them: Kafka's order is a hash table's.
func sorted(fields ...string) change {
	var walk func(tree any)
	walk = func(tree any) {
		switch v := tree.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(inner)
				list, ok := inner.([]any)
				for _, f := range fields {
					if ok && key == f {
						sort.SliceStable(list, func(i, j int) bool { return asText(list[i]) < asText(list[j]) })
					}
				}
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	return func(_ *side, tree any) any {
		walk(tree)
		return tree
	}
}

func asText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (w *world) testACLs(t *testing.T) {
	for v := int16(1); v <= 3; v++ {
		w.same(t, "DescribeAcls", func(*side) kmsg.Request {
			req := kmsg.NewPtrDescribeACLsRequest()
			req.SetVersion(v)
			req.ResourceType, req.ResourcePatternType, req.Operation, req.PermissionType = 1, 1, 1, 1
			return req
		})
		w.same(t, "CreateAcls", func(*side) kmsg.Request {
			req := kmsg.NewPtrCreateACLsRequest()
			req.SetVersion(v)
			one := kmsg.NewCreateACLsRequestCreation()
			one.ResourceType, one.ResourceName, one.ResourcePatternType = 2, "t", 3
			one.Principal, one.Host, one.Operation, one.PermissionType = "User:a", "*", 3, 3
			req.Creations = append(req.Creations, one, one)
			return req
		})
		w.same(t, "DeleteAcls", func(*side) kmsg.Request {
			req := kmsg.NewPtrDeleteACLsRequest()
			req.SetVersion(v)
			one := kmsg.NewDeleteACLsRequestFilter()
			one.ResourceType, one.ResourcePatternType, one.Operation, one.PermissionType = 1, 1, 1, 1
			req.Filters = append(req.Filters, one)
			return req
		})
	}
}

type topicPartitions struct {
	topic      string
	partitions []int32
}

func (w *world) testElectLeaders(t *testing.T) {
	w.create(t, "elect", 2)
	for name, topics := range map[string][]topicPartitions{
		"all":        nil,
		"none":       {},
		"one":        {{"elect", []int32{0}}},
		"unknown":    {{"elect", []int32{0, 7}}, {"nope", []int32{0}}},
		"twice":      {{"elect", []int32{1, 1}}, {"elect", []int32{1}}},
		"empty list": {{"elect", nil}},
	} {
		for v := int16(0); v <= 2; v++ {
			for kind := int8(0); kind <= 2; kind++ {
				w.same(t, name, func(*side) kmsg.Request {
					req := kmsg.NewPtrElectLeadersRequest()
					req.SetVersion(v)
					req.ElectionType, req.TimeoutMillis = kind, 10_000
					if topics != nil {
						req.Topics = []kmsg.ElectLeadersRequestTopic{}
					}
					for _, tp := range topics {
						rt := kmsg.NewElectLeadersRequestTopic()
						rt.Topic, rt.Partitions = tp.topic, tp.partitions
						req.Topics = append(req.Topics, rt)
					}
					return req
				}, sorted("Topics", "Partitions"))
			}
		}
	}
}

type reassignment struct {
	topic     string
	partition int32
	replicas  []int32
}

func (w *world) testReassignments(t *testing.T) {
	w.create(t, "reassign", 2)
	for name, moves := range map[string][]reassignment{
		"nothing":           nil,
		"where it is":       {{"reassign", 0, []int32{1}}},
		"cancel":            {{"reassign", 0, nil}},
		"unknown topic":     {{"nope", 0, []int32{1}}, {"nope", 0, nil}},
		"unknown partition": {{"reassign", 9, []int32{1}}},
		"unknown broker":    {{"reassign", 0, []int32{1, 2}}, {"reassign", 1, []int32{1}}},
		"twice":             {{"reassign", 1, []int32{1, 1}}},
		"empty":             {{"reassign", 1, []int32{}}},
		"negative":          {{"reassign", 1, []int32{-1}}},
	} {
		for v := int16(0); v <= 1; v++ {
			for _, change := range []bool{true, false} {
				w.same(t, name, func(*side) kmsg.Request {
					req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
					req.SetVersion(v)
					req.TimeoutMillis, req.AllowReplicationFactorChange = 10_000, change
					for _, m := range moves {
						rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
						rt.Topic = m.topic
						rt.Partitions = append(rt.Partitions, kmsg.AlterPartitionAssignmentsRequestTopicPartition{
							Partition: m.partition, Replicas: m.replicas})
						req.Topics = append(req.Topics, rt)
					}
					return req
				})
			}
		}
	}
	for name, topics := range map[string][]topicPartitions{
		"all": nil, "none": {}, "some": {{"reassign", []int32{0, 1, 9}}, {"nope", []int32{0}}},
	} {
		w.same(t, name, func(*side) kmsg.Request {
			req := kmsg.NewPtrListPartitionReassignmentsRequest()
			req.TimeoutMillis = 10_000
			if topics != nil {
				req.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{}
			}
			for _, tp := range topics {
				rt := kmsg.NewListPartitionReassignmentsRequestTopic()
				rt.Topic, rt.Partitions = tp.topic, tp.partitions
				req.Topics = append(req.Topics, rt)
			}
			return req
		})
	}
}

func (w *world) testLogDirs(t *testing.T) {
	w.create(t, "dirs", 2)
	for i := range 3 {
		w.same(t, "produce", produce(9, "dirs", int32(i%2), 1, batch{records: some(i + 1)}.encode()), hideTimes)
	}
	ownDir := func(s *side, tree any) any {
		if m, ok := tree.(map[string]any); ok {
			dirs, _ := m["Dirs"].([]any)
			for _, d := range dirs {
				dir := d.(map[string]any)
				dir["Dir"] = strings.Replace(fmt.Sprint(dir["Dir"]), s.Dir, "DIR", 1)
				delete(dir, "UsableBytes")
				dir["Topics"] = only(dir["Topics"], "dirs")
			}
		}
		return tree
	}
	for name, topics := range map[string][]topicPartitions{
		"all": nil, "none": {}, "some": {{"dirs", []int32{0, 9}}, {"nope", []int32{0}}}, "twice": {{"dirs", []int32{0, 0}}},
	} {
		for v := int16(1); v <= 5; v++ {
			w.same(t, name, func(*side) kmsg.Request {
				req := kmsg.NewPtrDescribeLogDirsRequest()
				req.SetVersion(v)
				if topics != nil {
					req.Topics = []kmsg.DescribeLogDirsRequestTopic{}
				}
				for _, tp := range topics {
					rt := kmsg.NewDescribeLogDirsRequestTopic()
					rt.Topic, rt.Partitions = tp.topic, tp.partitions
					req.Topics = append(req.Topics, rt)
				}
				return req
			}, ownDir, sorted("Topics", "Partitions"))
		}
	}
	w.alterLogDirs(t)
}

// only leaves one topic: others may have got different numbers of records.
func only(topics any, name string) any {
	var out []any
	list, _ := topics.([]any)
	for _, one := range list {
		if one.(map[string]any)["Topic"] == name {
			out = append(out, one)
		}
	}
	return out
}

func (w *world) alterLogDirs(t *testing.T) {
	long := strings.Repeat("x", 240)
	for name, dir := range map[string]func(*side) string{
		"the same":  func(s *side) string { return s.Dir },
		"no such":   func(*side) string { return "/nonexistent" },
		"relative":  func(*side) string { return "data" },
		"empty":     func(*side) string { return "" },
		"not clean": func(s *side) string { return s.Dir + "/" },
	} {
		for v := int16(1); v <= 2; v++ {
			w.same(t, name, func(s *side) kmsg.Request {
				req := kmsg.NewPtrAlterReplicaLogDirsRequest()
				req.SetVersion(v)
				d := kmsg.NewAlterReplicaLogDirsRequestDir()
				d.Dir = dir(s)
				d.Topics = []kmsg.AlterReplicaLogDirsRequestDirTopic{
					{Topic: "dirs", Partitions: []int32{0, 1, 9}}, {Topic: "nope", Partitions: []int32{0}},
					{Topic: long, Partitions: []int32{0}},
				}
				req.Dirs = append(req.Dirs, d)
				return req
			}, sorted("Topics", "Partitions"))
		}
	}
}

func (w *world) testDescribeQuorum(t *testing.T) {
	// Offsets and epochs count what each has written.
	own := hide("LogEndOffset", "HighWatermark", "LeaderEpoch", "LastFetchTimestamp", "LastCaughtUpTimestamp")
	noListener := func(_ *side, tree any) any { // Tidemark opens none for controllers
		m, _ := tree.(map[string]any)
		nodes, _ := m["Nodes"].([]any)
		for _, n := range nodes {
			delete(n.(map[string]any), "Listeners")
		}
		return tree
	}
	for name, topics := range map[string][]topicPartitions{
		"the log": {{"__cluster_metadata", []int32{0}}},
		"none":    {}, "no partition": {{"__cluster_metadata", nil}},
		"two":   {{"__cluster_metadata", []int32{0, 1}}},
		"other": {{"nope", []int32{0}}}, "partition 1": {{"__cluster_metadata", []int32{1}}},
	} {
		for v := int16(0); v <= 2; v++ {
			w.same(t, name, func(*side) kmsg.Request {
				req := kmsg.NewPtrDescribeQuorumRequest()
				req.SetVersion(v)
				for _, tp := range topics {
					rt := kmsg.NewDescribeQuorumRequestTopic()
					rt.Topic = tp.topic
					for _, p := range tp.partitions {
						rt.Partitions = append(rt.Partitions, kmsg.DescribeQuorumRequestTopicPartition{Partition: p})
					}
					req.Topics = append(req.Topics, rt)
				}
				return req
			}, own, noListener)
		}
	}
}

func (w *world) testListConfigResources(t *testing.T) {
	w.create(t, "listed", 1)
	for _, c := range []alterCase{
		{kind: 32, name: "listed-group", ops: []configOp{{key: "consumer.session.timeout.ms", value: "50000"}}},
		{kind: 16, name: "listed-metrics", ops: []configOp{{key: "interval.ms", value: "1000"}}},
	} {
		w.same(t, c.name, c.incremental(1))
		w.waitDynamic(t, c, true)
	}
	for name, kinds := range map[string][]int8{
		"all": nil, "topics": {2}, "brokers": {4}, "loggers": {8}, "metrics": {16}, "groups": {32},
		"some": {32, 16}, "twice": {2, 2}, "unknown": {2, 99}, "zero": {0},
	} {
		for v := int16(0); v <= 1; v++ {
			w.same(t, name, func(*side) kmsg.Request {
				req := kmsg.NewPtrListConfigResourcesRequest()
				req.SetVersion(v)
				if v > 0 {
					req.ResourceTypes = kinds
				}
				return req
			}, func(_ *side, tree any) any {
				if m, ok := tree.(map[string]any); ok {
					var out []any
					list, _ := m["ConfigResources"].([]any)
					for _, r := range list {
						if !strings.HasPrefix(fmt.Sprint(r.(map[string]any)["Name"]), "__") {
							out = append(out, r)
						}
					}
					m["ConfigResources"] = out
				}
				return tree
			}, sorted("ConfigResources"))
		}
	}
}
