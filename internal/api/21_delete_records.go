package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
)

// DeleteRecords (21).
//
// v0: KIP-107. v1: throttling. v2: flexible.

func (a *API) deleteRecords(c *call, request *kmsg.DeleteRecordsRequest) kmsg.Response {
	response := answerTo[*kmsg.DeleteRecordsResponse](request)
	for _, t := range request.Topics {
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			one := kmsg.NewDeleteRecordsResponseTopicPartition()
			low, err := a.deleteUpTo(c, t.Topic, p)
			one.Partition, one.LowWatermark, one.ErrorCode = p.Partition, low, a.failed(c, err)
			out.Partitions = append(out.Partitions, one)
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}

// deleteUpTo moves the log start offset of a partition and returns it; -1 with an error.
func (a *API) deleteUpTo(c *call, topic string, in kmsg.DeleteRecordsRequestTopicPartition) (int64, error) {
	if !a.allowed(c, auth.Delete, auth.Topic(topic)) {
		return -1, kerr.TopicAuthorizationFailed
	}
	p, err := a.partitionByName(topic, in.Partition)
	switch {
	case err != nil:
		return -1, err
	case isInternal(topic):
		return -1, kerr.InvalidTopicException
	}
	return p.DeleteRecords(in.Offset)
}
