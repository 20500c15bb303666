package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/txn"
)

// InitProducerId (22).
//
// v1: throttling. v2: flexible. v3: resumes an id and epoch (KIP-360). v4: PRODUCER_FENCED. v5: KIP-890.

// resuming is the first version in which a producer names what it has.
const resuming = 3

func (a *API) initProducerID(c *call, request *kmsg.InitProducerIDRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.InitProducerIDResponse](request)
	answer := func(p txn.Producer, err error) {
		response.ProducerID, response.ProducerEpoch = p.ID, p.Epoch
		response.ErrorCode = a.fencedSince(c, 4, err)
		done(response)
	}
	expected := txn.NoProducer
	if request.Version >= resuming {
		expected = txn.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch}
	}
	id := request.TransactionalID
	switch {
	case id != nil && !a.allowed(c, auth.Write, auth.TransactionalID(*id)):
		answer(txn.NoProducer, kerr.TransactionalIDAuthorizationFailed)
	case id == nil && !a.mayWriteIdempotently(c):
		answer(txn.NoProducer, kerr.ClusterAuthorizationFailed)
	case (expected.ID == txn.NoProducerID) != (expected.Epoch == txn.NoProducerEpoch):
		answer(txn.NoProducer, kerr.InvalidRequest)
	case id != nil:
		a.Transactions.Init(*id, request.TransactionTimeoutMillis, expected, answer)
	default:
		producerID, err := a.NewProducerID()
		if err != nil {
			answer(txn.NoProducer, err)
			return
		}
		answer(txn.Producer{ID: producerID}, nil)
	}
}

// mayWriteIdempotently: the right to write idempotently comes with the right to write to any topic.
func (a *API) mayWriteIdempotently(c *call) bool {
	if a.allowed(c, auth.IdempotentWrite, auth.Cluster) {
		return true
	}
	for topic := range a.Metadata.Image().Topics() {
		if a.allowed(c, auth.Write, auth.Topic(topic.Name)) {
			return true
		}
	}
	return false
}
