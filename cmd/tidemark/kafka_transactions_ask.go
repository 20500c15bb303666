package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// Error codes that the questions of this file handle in their own way.
const (
	codeNotLeader          = 6
	codeLoading            = 14
	codeNotAvailable       = 15
	codeNotCoordinator     = 16
	codeConcurrent         = 51
	codeBrokerNotAvailable = 8
	codeReplicaMissing     = 9
	codeUnknownID          = 105
)

const errorClasses = "org.apache.kafka.common.errors."

// again asks until an answer is final or the API timeout is over.
func (c *transactionsCall) again(ctx context.Context, call string, ask func() (final bool, err error)) error {
	deadline := time.Now().Add(c.admin.Timeout())
	for tries := 1; ; tries++ {
		final, err := ask()
		if final || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return cli.Fail(errorClasses+"TimeoutException", "Timed out waiting for a node assignment. Call: %s", call)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(cli.Backoff(tries)):
		}
	}
}

// handlerLog writes the log line of Kafka's admin client when a broker refused for good.
func (c *transactionsCall) handlerLog(handler, format string, args ...any) {
	c.env.Log("ERROR", "org.apache.kafka.clients.admin.internals."+handler,
		"[AdminClient clientId=adminclient-1] "+fmt.Sprintf(format, args...))
}

// leader finds the broker that leads a partition.
func (c *transactionsCall) leader(ctx context.Context, call string, p cli.Partition) (node int32, err error) {
	call += "(api=METADATA)"
	err = c.again(ctx, call, func() (bool, error) {
		byNode, err := c.leaders(ctx, call, []cli.Partition{p})
		for node = range byNode {
			return true, nil
		}
		return false, err
	})
	return node, err
}

// topics asks for the metadata of topics.
func (c *transactionsCall) topics(ctx context.Context, call string, names ...string) ([]cli.Topic, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, topic)
	}
	answer, err := cli.Ask[*kmsg.MetadataResponse](ctx, c.admin, call, request)
	if err != nil {
		return nil, err
	}
	return answer.Topics, nil
}

// coordinator finds the coordinator of a transactional id.
func (c *transactionsCall) coordinator(ctx context.Context, call, id string) (node int32, err error) {
	call += "(api=FIND_COORDINATOR)"
	err = c.again(ctx, call, func() (bool, error) {
		request := kmsg.NewPtrFindCoordinatorRequest()
		request.CoordinatorType, request.CoordinatorKey, request.CoordinatorKeys = 1, id, []string{id}
		answer, err := cli.Ask[*kmsg.FindCoordinatorResponse](ctx, c.admin, call, request)
		if err != nil {
			return false, err
		}
		code := answer.ErrorCode
		node = answer.NodeID
		if len(answer.Coordinators) > 0 {
			code, node = answer.Coordinators[0].ErrorCode, answer.Coordinators[0].NodeID
		}
		if code == codeNotAvailable || code == codeLoading {
			return false, nil
		}
		if f := cli.APIFailure(code, nil); f != nil {
			return false, f
		}
		return true, nil
	})
	return node, err
}

// describe asks the coordinator of a transactional id for its state.
func (c *transactionsCall) describe(ctx context.Context, id string,
) (node int32, state kmsg.DescribeTransactionsResponseTransactionState, err error) {
	const call = "describeTransactions"
	err = c.again(ctx, call+"(api=DESCRIBE_TRANSACTIONS)", func() (bool, error) {
		var err error
		if node, err = c.coordinator(ctx, call, id); err != nil {
			return false, err
		}
		request := kmsg.NewPtrDescribeTransactionsRequest()
		request.TransactionalIDs = []string{id}
		answer, err := cli.AskBroker[*kmsg.DescribeTransactionsResponse](ctx, c.admin, node,
			call+"(api=DESCRIBE_TRANSACTIONS)", request)
		if err != nil || len(answer.TransactionStates) != 1 {
			return false, err
		}
		state = answer.TransactionStates[0]
		return describeOutcome(id, state.ErrorCode)
	})
	return node, state, err
}

func describeOutcome(id string, code int16) (final bool, err error) {
	failure := cli.APIFailure(code, nil)
	reason := "due to unexpected error"
	switch code {
	case 0:
		return true, nil
	case codeLoading, codeNotCoordinator, codeNotAvailable:
		return false, nil
	case codeUnknownID:
		reason = "because the ID could not be found"
	}
	failure.Message = fmt.Sprintf("DescribeTransactions request for transactionalId `%s` failed %s", id, reason)
	return false, failure
}

// listings are the transactions of one coordinator.
type listings struct {
	node int32
	list []kmsg.ListTransactionsResponseTransactionState
}

// list asks every broker for its transactions; the answers come by broker.
func (c *transactionsCall) list(ctx context.Context, edit func(*kmsg.ListTransactionsRequest)) ([]listings, error) {
	nodes, err := c.nodes(ctx, "listTransactions(api=METADATA)")
	if err != nil {
		return nil, err
	}
	var all []listings
	for _, node := range nodes {
		request := kmsg.NewPtrListTransactionsRequest()
		request.DurationFilterMillis = -1
		edit(request)
		err := c.again(ctx, "listTransactions(api=LIST_TRANSACTIONS)", func() (bool, error) {
			answer, err := cli.AskBroker[*kmsg.ListTransactionsResponse](ctx, c.admin, node,
				"listTransactions(api=LIST_TRANSACTIONS)", request)
			if err != nil || answer.ErrorCode == codeLoading {
				return false, err
			}
			if failure := cli.APIFailure(answer.ErrorCode, nil); failure != nil {
				c.handlerLog("ListTransactionsHandler", "The `ListTransactions` request sent to broker %d failed because of "+
					"an unexpected error %s", node, cli.CodeName(answer.ErrorCode))
				failure.Message = fmt.Sprintf("ListTransactions request sent to broker %d failed with an unexpected exception",
					node)
				return false, failure
			}
			all = append(all, listings{node, answer.TransactionStates})
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// nodes are the brokers that are up, by number.
func (c *transactionsCall) nodes(ctx context.Context, call string) ([]int32, error) {
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{}
	answer, err := cli.Ask[*kmsg.MetadataResponse](ctx, c.admin, call, request)
	if err != nil {
		return nil, err
	}
	var nodes []int32
	for _, b := range answer.Brokers {
		nodes = append(nodes, b.NodeID)
	}
	slices.Sort(nodes)
	return nodes, nil
}
