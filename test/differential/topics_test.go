//go:build oracle

package differential

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// deletion names a topic to delete, by name or by the id that create learned.
type deletion struct {
	name   string
	idOf   string
	id     [16]byte
	noName bool
}

func deleteTopics(version int16, topics ...deletion) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.SetVersion(version)
		req.TimeoutMillis = 30_000
		for _, d := range topics {
			req.TopicNames = append(req.TopicNames, d.name)
			rt := kmsg.NewDeleteTopicsRequestTopic()
			rt.TopicID = d.id
			if d.idOf != "" {
				rt.TopicID = s.topicID(d.idOf)
			} else if !d.noName && d.id == [16]byte{} {
				rt.Topic = kmsg.StringPtr(d.name)
			}
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

func (w *world) testDeleteTopics(t *testing.T) {
	for v := int16(1); v <= 6; v++ {
		topic := fmt.Sprintf("delete%d", v)
		w.create(t, topic, 1)
		w.same(t, "unknown", deleteTopics(v, deletion{name: "nope"}))
		w.same(t, "illegal name", deleteTopics(v, deletion{name: "a/b"}))
		w.same(t, "empty name", deleteTopics(v, deletion{}))
		w.same(t, "metadata topic", deleteTopics(v, deletion{name: "__cluster_metadata"}))
		w.same(t, "none", deleteTopics(v))
		w.same(t, "unknown twice", deleteTopics(v, deletion{name: "nope"}, deletion{name: "nope"}), byTopic)
		w.same(t, "one and an unknown one", deleteTopics(v, deletion{name: topic}, deletion{name: "nope"}), byTopic)
		w.same(t, "again", deleteTopics(v, deletion{name: topic}))
	}
	w.create(t, "by-id", 1)
	w.create(t, "by-name", 1)
	w.same(t, "twice", deleteTopics(6, deletion{name: "by-name"}, deletion{name: "by-name"}), byTopic)
	w.same(t, "by name and id", deleteTopics(6, deletion{name: "by-id"}, deletion{idOf: "by-id"}), byTopic, hideID)
	w.same(t, "by id", deleteTopics(6, deletion{idOf: "by-id"}))
	w.same(t, "by id again", deleteTopics(6, deletion{idOf: "by-id"}))
	w.same(t, "unknown id", deleteTopics(6, deletion{id: [16]byte{7, 7}}))
	w.same(t, "neither name nor id", deleteTopics(6, deletion{noName: true}))
	w.same(t, "gone", metadata(12, []string{"by-id", "by-name"}, false), hide("ClusterID"), byTopic)
}

type moreCase struct {
	topic      string
	count      int32
	assignment [][]int32
	validate   bool
	twice      bool
}

func (c moreCase) request(version int16) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.SetVersion(version)
		req.TimeoutMillis, req.ValidateOnly = 30_000, c.validate
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = c.topic, c.count
		for _, brokers := range c.assignment {
			ra := kmsg.NewCreatePartitionsRequestTopicAssignment()
			ra.Replicas = brokers
			rt.Assignment = append(rt.Assignment, ra)
		}
		req.Topics = append(req.Topics, rt)
		if c.twice {
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

func (w *world) testCreatePartitions(t *testing.T) {
	w.create(t, "more", 3)
	for name, c := range map[string]moreCase{
		"unknown topic":      {topic: "nope", count: 5},
		"illegal topic":      {topic: "a/b", count: 5},
		"empty topic":        {count: 5},
		"as many":            {topic: "more", count: 3},
		"fewer":              {topic: "more", count: 2},
		"none":               {topic: "more"},
		"-1":                 {topic: "more", count: -1},
		"assignment missing": {topic: "more", count: 5, assignment: [][]int32{{1}}},
		"assignment more":    {topic: "more", count: 4, assignment: [][]int32{{1}, {1}}},
		"unknown broker":     {topic: "more", count: 4, assignment: [][]int32{{7}}},
		"replica twice":      {topic: "more", count: 4, assignment: [][]int32{{1, 1}}},
		"empty assignment":   {topic: "more", count: 4, assignment: [][]int32{{}}},
		"twice":              {topic: "more", count: 5, twice: true},
		"validate only":      {topic: "more", count: 5, validate: true},
		"validate assigned":  {topic: "more", count: 4, assignment: [][]int32{{1}}, validate: true},
	} {
		for v := int16(0); v <= 3; v++ {
			w.same(t, name, c.request(v), byTopic)
		}
	}
	w.same(t, "two more", moreCase{topic: "more", count: 5}.request(3))
	for _, s := range w.sides {
		s.waitLed(t, "more", 5)
	}
	w.same(t, "described", metadata(12, []string{"more"}, false), hide("ClusterID"), byTopic)
}

func (w *world) testDescribeCluster(t *testing.T) {
	for v := int16(0); v <= 2; v++ {
		for endpoints := int8(-1); endpoints <= 3; endpoints++ {
			for _, more := range []bool{false, true} {
				w.same(t, fmt.Sprintf("endpoint type %d", endpoints), func(*side) kmsg.Request {
					req := kmsg.NewPtrDescribeClusterRequest()
					req.SetVersion(v)
					req.EndpointType, req.IncludeClusterAuthorizedOperations, req.IncludeFencedBrokers = endpoints, more, more
					return req
				}, hide("ClusterID"))
			}
		}
	}
}

func describePartitions(limit int32, cursor *kmsg.DescribeTopicPartitionsRequestCursor, topics ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit, req.Cursor = limit, cursor
		for _, name := range topics {
			rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
			rt.Topic = name
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

func cursor(topic string, partition int32) *kmsg.DescribeTopicPartitionsRequestCursor {
	c := kmsg.NewDescribeTopicPartitionsRequestCursor()
	c.Topic, c.Partition = topic, partition
	return &c
}

func (w *world) testDescribeTopicPartitions(t *testing.T) {
	w.create(t, "page-a", 3)
	w.create(t, "page-b", 2)
	w.create(t, "page-c", 4)
	all := []string{"page-c", "page-a", "page-b"}
	for _, limit := range []int32{-1, 0, 1, 2, 3, 4, 5, 8, 9, 10, 2000, 5000} {
		w.same(t, fmt.Sprintf("limit %d", limit), describePartitions(limit, nil, all...))
		w.same(t, fmt.Sprintf("limit %d from page-b-1", limit), describePartitions(limit, cursor("page-b", 1), all...))
	}
	w.same(t, "a topic twice", describePartitions(100, nil, "page-a", "page-a"))
	w.same(t, "unknown and illegal names", describePartitions(100, nil, "nope", "a/b", "page-a"))
	w.same(t, "empty name", describePartitions(100, nil, "", "page-a"))
	w.same(t, "empty name behind the page", describePartitions(1, cursor("page-a", 0), "", "page-a"))
	w.same(t, "unknown names and a small page", describePartitions(1, nil, "nope", "page-a", "zzz"))
	w.same(t, "cursor at an unknown topic", describePartitions(100, cursor("page-aa", 1), all...))
	w.same(t, "cursor behind all", describePartitions(100, cursor("zzz", 0), all...))
	w.same(t, "cursor behind the partitions", describePartitions(100, cursor("page-a", 9), all...))
	w.same(t, "cursor with a negative partition", describePartitions(100, cursor("page-a", -1), all...))
	w.same(t, "cursor with an empty name", describePartitions(100, cursor("", 0), all...))
	w.same(t, "cursor without topics", describePartitions(3, cursor("page-a", 1)))
	t.Run("pages", w.pages)
}

// pages follows the cursor from page to page, on each side with its own.
func (w *world) pages(t *testing.T) {
	all := []string{"page-a", "page-b", "page-c"}
	next := make(map[*side]*kmsg.DescribeTopicPartitionsRequestCursor)
	for page := range 6 {
		w.same(t, fmt.Sprintf("page %d", page), func(s *side) kmsg.Request {
			return describePartitions(2, next[s], all...)(s)
		}, func(s *side, tree any) any {
			next[s] = nil
			m, _ := tree.(map[string]any)
			if c, ok := m["NextCursor"].(map[string]any); ok {
				var partition int32
				if _, err := fmt.Sscan(fmt.Sprint(c["Partition"]), &partition); err != nil {
					t.Errorf("cursor %v: %v", c, err)
				}
				next[s] = cursor(fmt.Sprint(c["Topic"]), partition)
			}
			return tree
		})
	}
}

// metadataTopics asks for topics by name, id or both.
func (w *world) testMetadataTopics(t *testing.T) {
	w.create(t, "named", 1)
	w.create(t, "numbered", 2)
	type asked struct {
		name, idOf string
		id         [16]byte
		noName     bool
	}
	for name, topics := range map[string][]asked{
		"two ids":                  {{idOf: "numbered", noName: true}, {idOf: "named", noName: true}},
		"an id twice":              {{idOf: "named", noName: true}, {idOf: "named", noName: true}},
		"a name and an id":         {{name: "named"}, {idOf: "numbered", noName: true}},
		"a name with its id":       {{name: "named", idOf: "named"}},
		"a name with another's id": {{name: "named", idOf: "numbered"}},
		"known and unknown ids":    {{idOf: "named", noName: true}, {id: [16]byte{3}, noName: true}},
		"neither":                  {{noName: true}},
		"name and neither":         {{name: "named"}, {noName: true}},
		"known and unknown names":  {{name: "nope"}, {name: "named"}, {name: "a/b"}},
		"an empty name":            {{name: ""}},
		"internal names":           {{name: "__consumer_offsets"}, {name: "__cluster_metadata"}},
	} {
		for v := int16(9); v <= 13; v++ {
			for _, operations := range []bool{false, true} {
				w.same(t, name, func(s *side) kmsg.Request {
					req := kmsg.NewPtrMetadataRequest()
					req.SetVersion(v)
					req.IncludeTopicAuthorizedOperations = operations
					req.IncludeClusterAuthorizedOperations = operations
					for _, a := range topics {
						rt := kmsg.NewMetadataRequestTopic()
						if rt.TopicID = a.id; a.idOf != "" {
							rt.TopicID = s.topicID(a.idOf)
						}
						if !a.noName || v < 10 {
							rt.Topic = kmsg.StringPtr(a.name)
						}
						req.Topics = append(req.Topics, rt)
					}
					return req
				}, hide("ClusterID"), byTopic)
			}
		}
	}
}
