package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/txn"
)

// ListTransactions (66): what this broker coordinates.
//
// v0: KIP-664. v1: by duration (KIP-994). v2: by pattern (KIP-1152).

func (a *API) listTransactions(c *call, request *kmsg.ListTransactionsRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.ListTransactionsResponse](request)
	f, unknown, err := transactionFilter(request)
	if err != nil {
		response.ErrorCode = a.failed(c, kerr.InvalidRegularExpression)
		done(response)
		return
	}
	a.Transactions.List(f, func(all []txn.Listed, err error) {
		if err != nil {
			response.ErrorCode = a.failed(c, err)
			done(response)
			return
		}
		response.UnknownStateFilters = unknown
		for _, one := range all {
			if !a.allowed(c, auth.Describe, auth.TransactionalID(one.ID)) {
				continue
			}
			response.TransactionStates = append(response.TransactionStates,
				kmsg.ListTransactionsResponseTransactionState{TransactionalID: one.ID, ProducerID: one.ProducerID,
					TransactionState: one.State.String()})
		}
		done(response)
	})
}

// transactionFilter is what a request asks for; names of states that do not exist are told back.
func transactionFilter(request *kmsg.ListTransactionsRequest) (f txn.Filter, unknown []string, err error) {
	f = txn.Filter{ProducerIDs: request.ProducerIDFilters, MinDurationMs: -1, OnlyStates: len(request.StateFilters) > 0}
	if request.Version >= 1 {
		f.MinDurationMs = request.DurationFilterMillis
	}
	for _, name := range request.StateFilters {
		if s, ok := txn.ParseState(name); ok {
			f.States = append(f.States, s)
		} else {
			unknown = append(unknown, name)
		}
	}
	if p := request.TransactionalIDPattern; request.Version >= 2 && p != nil && *p != "" {
		f.Pattern, err = txn.CompilePattern(*p)
	}
	return f, unknown, err
}
