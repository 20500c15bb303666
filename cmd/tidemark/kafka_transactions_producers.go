package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

type activeProducer = kmsg.DescribeProducersResponseTopicPartitionActiveProducer

// producersCall collects what partitions know of their producers.
type producersCall struct {
	*transactionsCall
	broker int32 // to ask, negative: each partition's leader
	found  map[cli.Partition][]activeProducer
	open   []cli.Partition // without an answer yet
}

// producers asks the leaders of partitions, or broker when it is not negative, for the producers that they know.
// Partitions without an answer are asked for again.
func (c *transactionsCall) producers(ctx context.Context, broker int32, partitions []cli.Partition,
) (map[cli.Partition][]activeProducer, error) {
	call := &producersCall{c, broker, map[cli.Partition][]activeProducer{}, slices.Clone(partitions)}
	name := "describeProducers(api=DESCRIBE_PRODUCERS)"
	if broker < 0 {
		name = "describeProducers(api=METADATA)"
	}
	err := c.again(ctx, name, func() (bool, error) {
		err := call.round(ctx)
		return len(call.open) == 0, err
	})
	return call.found, err
}

// round asks each broker once for all open partitions that it has.
func (c *producersCall) round(ctx context.Context) error {
	byNode := map[int32][]cli.Partition{c.broker: c.open}
	if c.broker < 0 {
		var err error
		if byNode, err = c.leaders(ctx, "describeProducers(api=METADATA)", c.open); err != nil {
			return err
		}
	}
	for node, partitions := range byNode {
		request := kmsg.NewPtrDescribeProducersRequest()
		at := map[string]int{}
		for _, p := range partitions {
			i, ok := at[p.Topic]
			if !ok {
				i = len(request.Topics)
				at[p.Topic] = i
				topic := kmsg.NewDescribeProducersRequestTopic()
				topic.Topic = p.Topic
				request.Topics = append(request.Topics, topic)
			}
			request.Topics[i].Partitions = append(request.Topics[i].Partitions, p.ID)
		}
		answer, err := cli.AskBroker[*kmsg.DescribeProducersResponse](ctx, c.admin, node,
			"describeProducers(api=DESCRIBE_PRODUCERS)", request)
		if err != nil {
			return err
		}
		if err := c.take(node, answer); err != nil {
			return err
		}
	}
	return nil
}

func (c *producersCall) take(node int32, answer *kmsg.DescribeProducersResponse) error {
	for _, t := range answer.Topics {
		for _, part := range t.Partitions {
			p := cli.Partition{Topic: t.Topic, ID: part.Partition}
			failure := cli.APIFailure(part.ErrorCode, nil)
			switch {
			case failure == nil:
				c.found[p] = part.ActiveProducers
				c.open = slices.DeleteFunc(c.open, func(o cli.Partition) bool { return o == p })
			case part.ErrorCode == codeUnknownTopic || part.ErrorCode == codeNotLeader && c.broker < 0:
				// asked again
			case part.ErrorCode == codeNotLeader:
				failure.Message = fmt.Sprintf("Failed to describe active producers for partition %s on brokerId %d",
					partitionName(p), node)
				return failure
			default:
				failure.Message = fmt.Sprintf("Failed to describe active producers for partition %s due to unexpected error",
					partitionName(p))
				return failure
			}
		}
	}
	return nil
}

// leaders groups partitions by the brokers that lead them. Those without a leader are left out.
func (c *transactionsCall) leaders(ctx context.Context, call string, partitions []cli.Partition,
) (map[int32][]cli.Partition, error) {
	var names []string
	for _, p := range partitions {
		if !slices.Contains(names, p.Topic) {
			names = append(names, p.Topic)
		}
	}
	topics, err := c.topics(ctx, call, names...)
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		if t.ErrorCode != codeUnknownTopic && !cli.Retriable(t.ErrorCode) && t.ErrorCode != 0 {
			return nil, cli.APIFailure(t.ErrorCode, nil)
		}
	}
	byNode := map[int32][]cli.Partition{}
	for _, found := range cli.Partitions(topics) {
		p := cli.Partition{Topic: found.Topic, ID: found.ID}
		if found.Leader >= 0 && slices.Contains(partitions, p) {
			byNode[found.Leader] = append(byNode[found.Leader], p)
		}
	}
	return byNode, nil
}
