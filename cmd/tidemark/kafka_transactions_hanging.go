package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// openTransaction is a transaction that a partition holds open.
type openTransaction struct {
	partition cli.Partition
	producer  activeProducer
}

// searchBatch is how many partitions or topics one request asks for at most.
const searchBatch = 500

const msPerMinute = 60_000

func findHanging(ctx context.Context, c *transactionsCall) error {
	_, byTopic := c.args.text("--topic")
	broker, byBroker := c.args.number("--broker-id")
	_, onePartition := c.args.number("--partition")
	switch {
	case !byTopic && !byBroker:
		return refusal("The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search")
	case onePartition && !byTopic:
		return refusal("The --partition argument requires --topic to be provided")
	case !byBroker:
		broker = -1
	}
	partitions, err := c.toSearch(ctx, int32(broker))
	if err != nil {
		return err
	}
	open, err := c.openTooLong(ctx, int32(broker), partitions)
	if err != nil {
		return err
	}
	hanging, err := c.hanging(ctx, open)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, t := range hanging {
		p := t.producer
		rows = append(rows, []string{t.partition.Topic, decimal(t.partition.ID), decimal(p.ProducerID),
			decimal(p.ProducerEpoch), decimal(max(p.CoordinatorEpoch, -1)), decimal(p.CurrentTxnStartOffset),
			decimal(p.LastTimestamp), decimal((c.env.Now().UnixMilli() - p.LastTimestamp) / msPerMinute)})
	}
	printTable(c.env, []string{"Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
		"LastTimestamp", "Duration(min)"}, rows)
	return nil
}

// toSearch lists the partitions to look at: one, those of a topic, or all; only those with a replica on broker when it
// is not negative.
func (c *transactionsCall) toSearch(ctx context.Context, broker int32) ([]cli.Partition, error) {
	if _, one := c.args.number("--partition"); one {
		return []cli.Partition{c.partition()}, nil
	}
	topic, ok := c.args.text("--topic")
	names := []string{topic}
	if !ok {
		var err error
		if names, err = c.admin.TopicNames(ctx, false); err != nil {
			return nil, explained("Failed to list topics", err)
		}
		cli.HashOrder(names, 0, func(name string) string { return name })
	}
	var all []cli.Partition
	for batch := range slices.Chunk(names, searchBatch) {
		topics, err := c.topics(ctx, "describeTopics", batch...)
		for _, t := range topics {
			if failure := cli.APIFailure(t.ErrorCode, nil); failure != nil && err == nil {
				err = failure
			}
		}
		if err != nil {
			return nil, explained(fmt.Sprintf("Failed to describe %d topics", len(batch)), err)
		}
		cli.HashOrder(topics, len(batch), func(t cli.Topic) string { return *t.Topic })
		for _, t := range topics {
			all = append(all, partitionsOn(t, broker)...)
		}
	}
	return all, nil
}

// partitionsOn are the partitions of a topic that have a replica on broker; all when it is negative.
func partitionsOn(t cli.Topic, broker int32) (all []cli.Partition) {
	for _, p := range t.Partitions {
		if broker < 0 || slices.Contains(p.Replicas, broker) {
			all = append(all, cli.Partition{Topic: *t.Topic, ID: p.Partition})
		}
	}
	slices.SortFunc(all, func(a, b cli.Partition) int { return int(a.ID) - int(b.ID) })
	return all
}

// openTooLong finds the open transactions whose last record is older than --max-transaction-timeout.
func (c *transactionsCall) openTooLong(ctx context.Context, broker int32, partitions []cli.Partition,
) (open []openTransaction, err error) {
	minutes, _ := c.args.number("--max-transaction-timeout")
	for batch := range slices.Chunk(partitions, searchBatch) {
		found, err := c.producers(ctx, broker, batch)
		if err != nil {
			on := "Optional.empty"
			if broker >= 0 {
				on = fmt.Sprintf("Optional[%d]", broker)
			}
			return nil, explained(fmt.Sprintf("Failed to describe producers for %d partitions on broker %s", len(batch), on),
				err)
		}
		cli.HashOrderBy(batch, 0, partitionHash)
		now := c.env.Now().UnixMilli()
		for _, p := range batch {
			for _, producer := range found[p] {
				if producer.CurrentTxnStartOffset >= 0 && now-producer.LastTimestamp > minutes*msPerMinute {
					open = append(open, openTransaction{p, producer})
				}
			}
		}
	}
	return open, nil
}

// hanging are those of the open transactions that their coordinators do not know of.
func (c *transactionsCall) hanging(ctx context.Context, open []openTransaction) ([]openTransaction, error) {
	if len(open) == 0 {
		return nil, nil
	}
	var ids []int64
	byID := map[int64][]openTransaction{}
	for _, t := range open {
		id := t.producer.ProducerID
		if byID[id] == nil {
			ids = append(ids, id)
		}
		byID[id] = append(byID[id], t)
	}
	cli.HashOrderBy(ids, 0, longHash)
	all, err := c.list(ctx, func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = ids })
	if err != nil {
		return nil, explained(fmt.Sprintf("Failed to list transactions for %d producers", len(ids)), err)
	}
	known := map[int64]map[cli.Partition]bool{}
	for _, of := range all {
		for _, t := range of.list {
			if byID[t.ProducerID] == nil {
				continue
			}
			if known[t.ProducerID], err = c.awaited(ctx, t.TransactionalID); err != nil {
				return nil, err
			}
		}
	}
	var hanging []openTransaction
	for _, id := range ids {
		for _, t := range byID[id] {
			if !known[id][t.partition] {
				hanging = append(hanging, t)
			}
		}
	}
	return hanging, nil
}

// awaited are the partitions whose marker the coordinator has yet to write; none when it does not know the id.
func (c *transactionsCall) awaited(ctx context.Context, id string) (map[cli.Partition]bool, error) {
	_, state, err := c.describe(ctx, id)
	if f := cli.AsFailure(err); f != nil && f.Code == codeUnknownID {
		return nil, nil
	}
	if err != nil {
		return nil, cli.Execution(err)
	}
	partitions := map[cli.Partition]bool{}
	for _, p := range partitionsOf(state) {
		partitions[p] = true
	}
	return partitions, nil
}
