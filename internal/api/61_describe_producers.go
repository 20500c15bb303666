package api

import (
	"cmp"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/internal/producerstate"
)

// DescribeProducers (61), answered by the leader of a partition.
//
// v0: KIP-664.

func (a *API) describeProducers(c *call, request *kmsg.DescribeProducersRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeProducersResponse](request)
	for _, t := range request.Topics {
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = t.Topic
		text, refused := a.refusedTopic(c, t.Topic)
		for _, id := range t.Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = id
			if refused != nil {
				p.ErrorCode, p.ErrorMessage = a.failed(c, refused), text
			} else {
				a.describePartitionProducers(c, t.Topic, &p)
			}
			out.Partitions = append(out.Partitions, p)
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}

// refusedTopic is why nothing is told of a topic, with Kafka's text where there is one.
func (a *API) refusedTopic(c *call, topic string) (text *string, refused error) {
	var invalid *config.Error
	switch err := config.CheckTopicName(topic); {
	case errors.As(err, &invalid):
		return &invalid.Message, kerr.InvalidTopicException
	case !a.allowed(c, auth.Read, auth.Topic(topic)):
		refused = kerr.TopicAuthorizationFailed
	case a.Metadata.Image().Topic(topic) == nil:
		refused = kerr.UnknownTopicOrPartition
	default:
		return nil, nil
	}
	return usualText(code(refused)), refused
}

func (a *API) describePartitionProducers(c *call, topic string, out *kmsg.DescribeProducersResponseTopicPartition) {
	p, err := a.partitionOf(topic, metadata.ZeroUUID, out.Partition)
	if err == nil {
		var producers []producerstate.Entry
		if producers, err = p.Producers(); err == nil {
			out.ActiveProducers = activeProducers(producers)
			return
		}
	}
	out.ErrorCode = a.failed(c, err)
}

func activeProducers(producers []producerstate.Entry,
) []kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	slices.SortFunc(producers, func(a, b producerstate.Entry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	out := make([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, len(producers))
	for i := range producers {
		e := &producers[i]
		last, _ := e.LastBatch()
		out[i] = kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
			ProducerID: e.ProducerID, ProducerEpoch: int32(e.ProducerEpoch), LastSequence: last.LastSequence,
			LastTimestamp: e.LastTimestamp, CoordinatorEpoch: e.CoordinatorEpoch,
			CurrentTxnStartOffset: e.CurrentTxnFirstOffset}
	}
	return out
}
