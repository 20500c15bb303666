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
	page := partitionPage{api: a, call: c, image: a.Metadata.Image(),
		response: answerTo[*kmsg.DescribeTopicPartitionsResponse](request),
		everyone: len(request.Topics) == 0,
		left:     int(max(1, min(request.ResponsePartitionLimit, a.Node().Broker().MaxRequestPartitionSizeLimit)))}
	if cursor := request.Cursor; cursor != nil {
		page.fromTopic, page.fromPartition = cursor.Topic, cursor.Partition
	}
	names := page.names(request)
	if err := checkCursor(request, names); err != nil {
		return a.refusePage(c, request, err)
	}
	for _, name := range names {
		if !page.add(name) {
			break
		}
	}
	for i := range page.response.Topics {
		if *page.response.Topics[i].Topic == "" {
			return a.refusePage(c, request, kerr.UnknownServerError) // Kafka: a resource must have a name
		}
	}
	page.response.Topics = append(page.response.Topics, page.forbidden...)
	return page.response
}

// checkCursor refuses a cursor that is not at one of the topics asked for.
func checkCursor(request *kmsg.DescribeTopicPartitionsRequest, names []string) error {
	cursor := request.Cursor
	if cursor == nil {
		return nil
	}
	if len(request.Topics) > 0 && (len(names) == 0 || names[0] != cursor.Topic) {
		return kerr.InvalidRequest
	}
	if cursor.Partition < 0 {
		return kerr.InvalidRequest
	}
	return nil
}

// refusePage refuses the whole request.
func (a *API) refusePage(c *call, request *kmsg.DescribeTopicPartitionsRequest, err error) kmsg.Response {
	response := answerTo[*kmsg.DescribeTopicPartitionsResponse](request)
	for i := range request.Topics {
		out := kmsg.NewDescribeTopicPartitionsResponseTopic()
		out.Topic, out.ErrorCode, out.AuthorizedOperations = &request.Topics[i].Topic, a.failed(c, err), notAsked
		response.Topics = append(response.Topics, out)
	}
	return response
}

// partitionPage collects one page of the answer.
type partitionPage struct {
	api           *API
	call          *call
	image         *metadata.Image
	response      *kmsg.DescribeTopicPartitionsResponse
	forbidden     []kmsg.DescribeTopicPartitionsResponseTopic // what the caller may not know of
	everyone      bool                                        // all topics are asked for
	left          int                                         // partitions that still fit
	fromTopic     string
	fromPartition int32
}

// names are the topics to describe, sorted, from the cursor's on; no topics asked for means all.
func (p *partitionPage) names(request *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	if p.everyone {
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

// add describes a topic, as far as the page has room; false when the page is full. The next page may begin with a
// topic that there is not.
func (p *partitionPage) add(name string) bool {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.IsInternal, out.AuthorizedOperations = &name, isInternal(name), notAsked
	if !p.api.allowed(p.call, auth.Describe, auth.Topic(name)) {
		if !p.everyone {
			out.IsInternal, out.ErrorCode = false, kerr.TopicAuthorizationFailed.Code
			p.forbidden = append(p.forbidden, out)
		}
		return true
	}
	if p.left == 0 {
		p.continueAt(name, 0)
		return false
	}
	out.AuthorizedOperations = p.api.operations(p.call, topicOperations, auth.Topic(name))
	more := true
	if topic := p.image.Topic(name); topic != nil {
		out.TopicID = topic.ID
		more = p.addPartitions(topic, &out)
	} else if out.ErrorCode = kerr.UnknownTopicOrPartition.Code; config.CheckTopicName(name) != nil {
		out.ErrorCode = kerr.InvalidTopicException.Code
	}
	p.response.Topics = append(p.response.Topics, out)
	return more
}

func (p *partitionPage) continueAt(topic string, partition int32) {
	next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	next.Topic, next.Partition = topic, partition
	p.response.NextCursor = &next
}

// addPartitions adds the partitions of a topic that fit; false when there are more.
func (p *partitionPage) addPartitions(topic *metadata.Topic, out *kmsg.DescribeTopicPartitionsResponseTopic) bool {
	for id, partition := range topic.Partitions() {
		if topic.Name == p.fromTopic && id < p.fromPartition {
			continue
		}
		if p.left == 0 {
			p.continueAt(topic.Name, id)
			return false
		}
		p.left--
		out.Partitions = append(out.Partitions, p.describe(id, partition))
	}
	return true
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
