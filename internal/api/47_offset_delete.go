package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// OffsetDelete (47, KIP-496).

func (a *API) offsetDelete(c *call, request *kmsg.OffsetDeleteRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.OffsetDeleteResponse](request)
	if !a.allowed(c, auth.Delete, auth.Group(request.Group)) {
		response.ErrorCode = a.failed(c, kerr.GroupAuthorizationFailed)
		done(response)
		return
	}
	valid := a.deletable(c, request, response)
	a.Groups.DeleteOffsets(request.Group, valid, func(each []error, err error) {
		if err != nil {
			response.ErrorCode, response.Topics = a.failed(c, err), nil
			done(response)
			return
		}
		i := 0
		for _, t := range valid {
			for _, p := range t.Partitions {
				setDeleted(response, t.Topic, p, a.failed(c, each[i]))
				i++
			}
		}
		done(response)
	})
}

// deletable are the partitions that exist and that the caller may read; the others are refused.
func (a *API) deletable(c *call, request *kmsg.OffsetDeleteRequest, response *kmsg.OffsetDeleteResponse,
) []group.TopicPartitions {
	var valid []group.TopicPartitions
	for _, t := range request.Topics {
		one := group.TopicPartitions{Topic: t.Topic}
		topic := a.Metadata.Image().Topic(t.Topic)
		allowed := a.allowed(c, auth.Read, auth.Topic(t.Topic))
		for _, p := range t.Partitions {
			switch {
			case !allowed:
				setDeleted(response, t.Topic, p.Partition, a.failed(c, kerr.TopicAuthorizationFailed))
			case topic == nil || topic.Partition(p.Partition) == nil:
				setDeleted(response, t.Topic, p.Partition, a.failed(c, kerr.UnknownTopicOrPartition))
			default:
				one.Partitions = append(one.Partitions, p.Partition)
			}
		}
		if len(one.Partitions) > 0 {
			valid = append(valid, one)
		}
	}
	return valid
}

func setDeleted(response *kmsg.OffsetDeleteResponse, topic string, partition int32, code int16) {
	i := slices.IndexFunc(response.Topics, func(t kmsg.OffsetDeleteResponseTopic) bool { return t.Topic == topic })
	if i < 0 {
		t := kmsg.NewOffsetDeleteResponseTopic()
		t.Topic = topic
		response.Topics = append(response.Topics, t)
		i = len(response.Topics) - 1
	}
	p := kmsg.NewOffsetDeleteResponseTopicPartition()
	p.Partition, p.ErrorCode = partition, code
	response.Topics[i].Partitions = append(response.Topics[i].Partitions, p)
}
