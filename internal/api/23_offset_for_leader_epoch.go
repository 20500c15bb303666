package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/replica"
)

// OffsetForLeaderEpoch (23).
//
// v0: end offset of an epoch (KIP-101). v1: the epoch itself comes back. v2: current leader epoch, throttle time
// (KIP-320). v3: replica id (KIP-392). v4: flexible.

func (a *API) offsetForLeaderEpoch(c *call, request *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	response := answerTo[*kmsg.OffsetForLeaderEpochResponse](request)
	for _, t := range request.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, a.epochEnd(c, request.Version, t.Topic, p))
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}

func (a *API) epochEnd(c *call, version int16, topic string, in kmsg.OffsetForLeaderEpochRequestTopicPartition,
) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	out := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	out.Partition, out.LeaderEpoch, out.EndOffset = in.Partition, -1, -1
	if !a.allowed(c, auth.Describe, auth.Topic(topic)) {
		out.ErrorCode = a.failed(c, kerr.TopicAuthorizationFailed)
		return out
	}
	p, err := a.partitionByName(topic, in.Partition)
	if err == nil {
		current := int32(replica.NoEpoch)
		if version >= 2 {
			current = in.CurrentLeaderEpoch
		}
		var end replica.EpochEnd
		end, err = p.EpochEnd(current, in.LeaderEpoch)
		out.LeaderEpoch, out.EndOffset = end.Epoch, end.EndOffset
	}
	out.ErrorCode = a.failed(c, err)
	return out
}
