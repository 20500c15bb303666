package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/coordinator"
	"tidemark/internal/txn"
)

// AddOffsetsToTxn (25).
//
// v1: throttling. v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE.

func (a *API) addOffsetsToTxn(c *call, request *kmsg.AddOffsetsToTxnRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.AddOffsetsToTxnResponse](request)
	answer := func(err error) {
		response.ErrorCode = a.fencedSince(c, 2, err)
		done(response)
	}
	switch {
	case !a.allowed(c, auth.Write, auth.TransactionalID(request.TransactionalID)):
		answer(kerr.TransactionalIDAuthorizationFailed)
		return
	case !a.allowed(c, auth.Read, auth.Group(request.Group)):
		answer(kerr.GroupAuthorizationFailed)
		return
	}
	producer := txn.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch}
	offsets := []checkpoint.TopicPartition{a.offsetsPartition(request.Group)}
	a.Transactions.Add(request.TransactionalID, producer, offsets, 0, answer)
}

// offsetsPartition is the partition of __consumer_offsets that a group belongs to.
func (a *API) offsetsPartition(group string) checkpoint.TopicPartition {
	n := a.Node().Broker().OffsetsTopic.NumPartitions
	if topic := a.Metadata.Image().Topic(offsetsTopic); topic != nil {
		n = int32(topic.NumPartitions())
	}
	return checkpoint.TopicPartition{Topic: offsetsTopic, Partition: coordinator.PartitionFor(group, n)}
}
