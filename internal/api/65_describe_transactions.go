package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/txn"
)

// DescribeTransactions (65), answered by the coordinator of a transactional id.
//
// v0: KIP-664.

func (a *API) describeTransactions(c *call, request *kmsg.DescribeTransactionsRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.DescribeTransactionsResponse](request)
	response.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState,
		len(request.TransactionalIDs))
	var left sync.WaitGroup
	left.Add(len(request.TransactionalIDs))
	for i, id := range request.TransactionalIDs {
		out := &response.TransactionStates[i]
		*out = kmsg.NewDescribeTransactionsResponseTransactionState()
		out.TransactionalID = id
		if !a.allowed(c, auth.Describe, auth.TransactionalID(id)) {
			out.ErrorCode = a.failed(c, kerr.TransactionalIDAuthorizationFailed)
			left.Done()
			continue
		}
		a.Transactions.Describe(id, func(d txn.Description, err error) {
			if out.ErrorCode = a.failed(c, err); err == nil {
				a.describeTransaction(c, d, out)
			}
			left.Done()
		})
	}
	go func() {
		left.Wait()
		done(response)
	}()
}

func (a *API) describeTransaction(c *call, d txn.Description, out *kmsg.DescribeTransactionsResponseTransactionState) {
	out.State, out.TimeoutMillis, out.StartTimestamp = d.State.String(), d.TimeoutMs, d.StartMs
	out.ProducerID, out.ProducerEpoch = d.ID, d.Epoch
	names, byName := groupByTopic(d.Partitions)
	for _, name := range names {
		if !a.allowed(c, auth.Describe, auth.Topic(name)) {
			continue
		}
		topic := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
		topic.Topic = name
		for _, i := range byName[name] {
			topic.Partitions = append(topic.Partitions, d.Partitions[i].Partition)
		}
		out.Topics = append(out.Topics, topic)
	}
}
