package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/metadata"
)

// DescribeTopicPartitions (75).
//
// v0: topics in pages, with eligible leader replicas (KIP-966).

func (a *API) describeTopicPartitions(c *call, request *kmsg.DescribeTopicPartitionsRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeTopicPartitionsResponse](request)
	page := partitionPage{api: a, call: c, image: a.Metadata.Image(), response: response,
		left: int(min(request.ResponsePartitionLimit, a.Node().Broker().MaxRequestPartitionSizeLimit))}
	if cursor := request.Cursor; cursor != nil {
		page.fromTopic, page.fromPartition = cursor.Topic, cursor.Partition
	}
	for _, name := range page.names(request) {
		if !page.add(name) {
			break
		}
	}
	return response
}

// partitionPage collects one page of the answer.
type partitionPage struct {
	api           *API
	call          *call
	image         *metadata.Image
	response      *kmsg.DescribeTopicPartitionsResponse
	left          int // partitions that still fit
	fromTopic     string
	fromPartition int32
}

// names are the topics to describe, sorted, from the cursor's on; no topics asked for means all.
func (p *partitionPage) names(request *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	if len(request.Topics) == 0 {
		for topic := range p.image.Topics() {
			names = append(names, topic.Name)
		}
	}
	for _, t := range request.Topics {
		names = append(names, t.Topic)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	first, _ := slices.BinarySearch(names, p.fromTopic)
	return names[first:]
}

// add describes a topic, as far as the page has room; false when it is full.
func (p *partitionPage) add(name string) bool {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.IsInternal = &name, isInternal(name)
	out.AuthorizedOperations = p.api.operations(p.call, topicOperations, auth.Topic(name))
	topic := p.image.Topic(name)
	switch {
	case !p.api.allowed(p.call, auth.Describe, auth.Topic(name)):
		out.ErrorCode, out.AuthorizedOperations = kerr.TopicAuthorizationFailed.Code, notAsked
	case topic == nil:
		out.ErrorCode, out.AuthorizedOperations = kerr.UnknownTopicOrPartition.Code, notAsked
		if config.CheckTopicName(name) != nil {
			out.ErrorCode = kerr.InvalidTopicException.Code
		}
	default:
		out.TopicID = topic.ID
		return p.addPartitions(topic, &out)
	}
	p.response.Topics = append(p.response.Topics, out)
	return true
}

func (p *partitionPage) addPartitions(topic *metadata.Topic, out *kmsg.DescribeTopicPartitionsResponseTopic) bool {
	full := false
	for id, partition := range topic.Partitions() {
		if topic.Name == p.fromTopic && id < p.fromPartition {
			continue
		}
		if p.left == 0 {
			next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
			next.Topic, next.Partition = topic.Name, id
			p.response.NextCursor = &next
			full = true
			break
		}
		p.left--
		out.Partitions = append(out.Partitions, p.describe(id, partition))
	}
	if len(out.Partitions) > 0 || !full {
		p.response.Topics = append(p.response.Topics, *out)
	}
	return !full
}

func (p *partitionPage) describe(id int32, partition *metadata.Partition,
) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	known := p.api.describePartition(p.call, 12, p.image, id, partition)
	out := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	out.Partition, out.ErrorCode = id, known.ErrorCode
	out.LeaderID, out.LeaderEpoch = known.Leader, known.LeaderEpoch
	out.Replicas, out.ISR, out.OfflineReplicas = known.Replicas, known.ISR, known.OfflineReplicas
	out.EligibleLeaderReplicas = append([]int32{}, partition.ELR...)
	out.LastKnownELR = append([]int32{}, partition.LastKnownELR...)
	return out
}
