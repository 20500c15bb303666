package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/txn"
)

// EndTxn (26).
//
// v1: throttling. v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE. v5: the epoch is raised, and the
// producer id and epoch of the next transaction are in the answer (KIP-890).

// raisingEndTxn is the first version of clients that work by transactions v2.
const raisingEndTxn = 5

func (a *API) endTxn(c *call, request *kmsg.EndTxnRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.EndTxnResponse](request)
	response.ProducerID, response.ProducerEpoch = txn.NoProducerID, txn.NoProducerEpoch
	if !a.allowed(c, auth.Write, auth.TransactionalID(request.TransactionalID)) {
		response.ErrorCode = a.failed(c, kerr.TransactionalIDAuthorizationFailed)
		done(response)
		return
	}
	version := int16(0)
	if request.Version >= raisingEndTxn {
		version = transactionsV2
	}
	producer := txn.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch}
	a.Transactions.End(request.TransactionalID, producer, request.Commit, version,
		func(next txn.Producer, err error) {
			response.ErrorCode = a.fencedSince(c, 2, err)
			response.ProducerID, response.ProducerEpoch = next.ID, next.Epoch
			done(response)
		})
}
