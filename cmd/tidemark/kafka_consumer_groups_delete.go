package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

func (c *consumerGroupsCommand) deleteGroups(ctx context.Context) error {
	ids := c.group.Values()
	if c.allGroups.Has() {
		var err error
		if ids, err = c.allGroupIDs(ctx); err != nil {
			return err
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	cli.HashOrder(ids, 0, func(id string) string { return id })
	var deleted []string
	var failed []string
	for _, id := range ids {
		if err := c.deleteGroup(ctx, id); err != nil {
			failed = append(failed, "* Group '"+id+"' could not be deleted due to: "+cli.AsFailure(err).String())
		} else {
			deleted = append(deleted, "'"+id+"'")
		}
	}
	if failed == nil {
		fmt.Fprintf(c.env.Stdout, "Deletion of requested consumer groups (%s) was successful.\n",
			strings.Join(deleted, ", "))
		return nil
	}
	c.failed("Deletion of some consumer groups failed:", nil)
	fmt.Fprintln(c.env.Stdout, strings.Join(failed, "\n"))
	if deleted != nil {
		fmt.Fprintln(c.env.Stdout, "\nThese consumer groups were deleted successfully: "+strings.Join(deleted, ", "))
	}
	return nil
}

func (c *consumerGroupsCommand) deleteGroup(ctx context.Context, id string) error {
	request := kmsg.NewPtrDeleteGroupsRequest()
	request.Groups = []string{id}
	code := func(r *kmsg.DeleteGroupsResponse) int16 {
		if len(r.Groups) == 0 {
			return -1
		}
		return r.Groups[0].ErrorCode
	}
	response, _, err := askCoordinator(ctx, c, "deleteConsumerGroups", id, request, code)
	if err != nil {
		return err
	}
	return groupFailure(code(response), nil)
}

// deletedOffset is the outcome for one partition; -1 stands for a topic that is not known.
type deletedOffset struct {
	cli.Partition
	err error
}

func (c *consumerGroupsCommand) deleteGroupOffsets(ctx context.Context) error {
	id, err := c.group.Value()
	if err != nil {
		return err
	}
	partitions, missing, err := c.topicArguments(ctx)
	if err != nil {
		return err
	}
	var outcomes []deletedOffset
	for _, topic := range missing {
		outcomes = append(outcomes, deletedOffset{cli.Partition{Topic: topic, ID: -1},
			cli.APIFailure(codeUnknownTopic, nil)})
	}
	deleted, top, err := c.deleteOffsetsOf(ctx, id, partitions)
	if err != nil {
		return err
	}
	c.tellDeletion(id, top)
	c.printDeleted(append(outcomes, deleted...))
	return nil
}

// deleteOffsetsOf deletes offsets. top is the error of the whole, or else the first of the partitions.
func (c *consumerGroupsCommand) deleteOffsetsOf(ctx context.Context, id string, partitions []cli.Partition,
) (outcomes []deletedOffset, top *cli.Failure, err error) {
	request := kmsg.NewPtrOffsetDeleteRequest()
	request.Group = id
	for _, p := range partitions {
		i := slices.IndexFunc(request.Topics, func(t kmsg.OffsetDeleteRequestTopic) bool { return t.Topic == p.Topic })
		if i < 0 {
			t := kmsg.NewOffsetDeleteRequestTopic()
			t.Topic = p.Topic
			request.Topics = append(request.Topics, t)
			i = len(request.Topics) - 1
		}
		one := kmsg.NewOffsetDeleteRequestTopicPartition()
		one.Partition = p.ID
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, one)
	}
	response, _, err := askCoordinator(ctx, c, "deleteConsumerGroupOffsets", id, request,
		func(r *kmsg.OffsetDeleteResponse) int16 { return r.ErrorCode })
	if err != nil {
		return nil, nil, err
	}
	top = cli.APIFailure(response.ErrorCode, nil)
	for _, p := range partitions {
		outcome := deletedOffset{Partition: p}
		if top != nil && response.ErrorCode != 0 {
			outcome.err = top
		} else if f := cli.APIFailure(deletedCode(response, p), nil); f != nil {
			outcome.err = f
			if top == nil {
				top = f
			}
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, top, nil
}

func deletedCode(r *kmsg.OffsetDeleteResponse, p cli.Partition) int16 {
	for _, t := range r.Topics {
		for _, one := range t.Partitions {
			if t.Topic == p.Topic && one.Partition == p.ID {
				return one.ErrorCode
			}
		}
	}
	return -1
}

// tellDeletion prints how the deletion went as a whole.
func (c *consumerGroupsCommand) tellDeletion(id string, top *cli.Failure) {
	const invalidGroup, groupForbidden, notEmpty = 24, 30, 68
	const subscribed, topicForbidden = 86, 29
	if top == nil {
		fmt.Fprintln(c.env.Stdout, "Request succeeded for deleting offsets from group "+id+".")
		return
	}
	switch top.Code {
	case invalidGroup, codeGroupNotFound, groupForbidden, notEmpty:
		c.failed(top.Message, nil)
	case subscribed, topicForbidden, codeUnknownTopic:
		c.failed("Encountered some partition-level error, see the follow-up details.", nil)
	default:
		c.failed("Encountered some unknown error: "+cli.CodeName(top.Code), nil)
	}
}

func (c *consumerGroupsCommand) printDeleted(outcomes []deletedOffset) {
	slices.SortFunc(outcomes, func(a, b deletedOffset) int {
		name := func(o deletedOffset) string { return o.Topic + strconv.Itoa(int(o.ID)) }
		return cmp.Compare(name(a), name(b))
	})
	var topic widest
	for _, o := range outcomes {
		topic.add(o.Topic)
	}
	line := func(name, partition, status string) {
		fmt.Fprintf(c.env.Stdout, "\n%-*s %-10s %-15s", topic.width(), name, partition, status)
	}
	line("TOPIC", "PARTITION", "STATUS")
	for _, o := range outcomes {
		partition, status := absent, "Successful"
		if o.ID >= 0 {
			partition = strconv.Itoa(int(o.ID))
		}
		if o.err != nil {
			status = "Error: " + cli.AsFailure(o.err).String()
		}
		line(o.Topic, partition, status)
	}
	fmt.Fprintln(c.env.Stdout)
}
