package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/wire"
)

// describedGroup is a group as its coordinator describes it.
type describedGroup struct {
	id, state, assignor    string
	coordinator            coordinatorNode
	epoch, assignmentEpoch *int32 // nil: a classic group
	members                []describedMember
}

// coordinatorNode is the broker that coordinates a group.
type coordinatorNode struct {
	id, port int32
	host     string
}

func (n coordinatorNode) String() string { return fmt.Sprintf("%s:%d  (%d)", n.host, n.port, n.id) }

// describedMember is a member of a group.
type describedMember struct {
	id, instance, client, host string
	assigned, target           []cli.Partition
	epoch                      *int32 // nil: of a classic group
	upgraded                   *bool  // nil: not known
}

// Error codes that the tool handles.
const (
	codeGroupNotFound      = 69
	codeUnsupportedVersion = 35
)

// coordinator finds the broker that coordinates a group.
func (c *consumerGroupsCommand) coordinator(ctx context.Context, call, group string) (coordinatorNode, error) {
	timeout, err := c.timeout.Int()
	if err != nil {
		return coordinatorNode{}, err
	}
	deadline := c.env.Now().Add(time.Duration(timeout) * time.Millisecond)
	for tries := 1; ; tries++ {
		request := kmsg.NewPtrFindCoordinatorRequest()
		request.CoordinatorKey, request.CoordinatorKeys = group, []string{group}
		response, err := cli.Ask[*kmsg.FindCoordinatorResponse](ctx, c.admin, call+"(api=FIND_COORDINATOR)", request)
		if err != nil {
			return coordinatorNode{}, err
		}
		code, message := response.ErrorCode, response.ErrorMessage
		node := coordinatorNode{response.NodeID, response.Port, response.Host}
		if len(response.Coordinators) > 0 {
			one := response.Coordinators[0]
			code, message, node = one.ErrorCode, one.ErrorMessage, coordinatorNode{one.NodeID, one.Port, one.Host}
		}
		if code == 0 || !cli.Retriable(code) || c.env.Now().After(deadline) {
			return node, groupFailure(code, message)
		}
		time.Sleep(cli.Backoff(tries))
	}
}

// groupFailure is the failure for an error code, nil for 0; an empty message is none.
func groupFailure(code int16, message *string) error {
	if message != nil && *message == "" {
		message = nil
	}
	if f := cli.APIFailure(code, message); f != nil {
		return f
	}
	return nil
}

// askCoordinator asks a group's coordinator, and again as long as it says that it is not, or not yet.
func askCoordinator[R kmsg.Response](ctx context.Context, c *consumerGroupsCommand, call, group string,
	request kmsg.Request, code func(R) int16) (response R, node coordinatorNode, err error) {
	timeout, err := c.timeout.Int()
	if err != nil {
		return response, node, err
	}
	deadline := c.env.Now().Add(time.Duration(timeout) * time.Millisecond)
	for tries := 1; ; tries++ {
		if node, err = c.coordinator(ctx, call, group); err != nil {
			return response, node, err
		}
		response, err = cli.AskBroker[R](ctx, c.admin, node.id, call, request)
		if err != nil || !coordinatorMoved(code(response)) || c.env.Now().After(deadline) {
			return response, node, err
		}
		time.Sleep(cli.Backoff(tries))
	}
}

// coordinatorMoved tells whether an error code means to find the coordinator again.
func coordinatorMoved(code int16) bool {
	const loading, notAvailable, notCoordinator = 14, 15, 16
	return code == loading || code == notAvailable || code == notCoordinator
}

// describeAll describes groups, in the order in which Kafka's tool goes through them. The second result has an error
// for each that cannot be described.
func (c *consumerGroupsCommand) describeAll(ctx context.Context, ids []string) ([]describedGroup, []error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	cli.HashOrder(ids, 0, func(id string) string { return id })
	groups, errs := make([]describedGroup, len(ids)), make([]error, len(ids))
	for i, id := range ids {
		groups[i], errs[i] = c.describeOne(ctx, id)
		groups[i].id = id
	}
	return groups, errs
}

const describeCall = "describeConsumerGroups"

// describeOne asks for a group of the newer protocol first; a group that is none is asked for as a classic one.
func (c *consumerGroupsCommand) describeOne(ctx context.Context, id string) (describedGroup, error) {
	request := kmsg.NewPtrConsumerGroupDescribeRequest()
	request.Groups = []string{id}
	response, node, err := askCoordinator(ctx, c, describeCall, id, request,
		func(r *kmsg.ConsumerGroupDescribeResponse) int16 { return firstCode(r.Groups) })
	switch {
	case err != nil && strings.Contains(cli.AsFailure(err).Class, "UnsupportedVersion"):
		return c.describeClassic(ctx, id)
	case err != nil:
		return describedGroup{}, err
	}
	g := response.Groups[0]
	switch g.ErrorCode {
	case 0:
		return newerGroup(g, node), nil
	case codeGroupNotFound, codeUnsupportedVersion:
		return c.describeClassic(ctx, id)
	}
	return describedGroup{}, groupFailure(g.ErrorCode, g.ErrorMessage)
}

func firstCode(groups []kmsg.ConsumerGroupDescribeResponseGroup) int16 {
	if len(groups) == 0 {
		return -1
	}
	return groups[0].ErrorCode
}

func newerGroup(g kmsg.ConsumerGroupDescribeResponseGroup, node coordinatorNode) describedGroup {
	d := describedGroup{id: g.Group, state: g.State, assignor: g.AssignorName, coordinator: node, epoch: &g.Epoch,
		assignmentEpoch: &g.AssignmentEpoch}
	for _, m := range g.Members {
		one := describedMember{id: m.MemberID, client: m.ClientID, host: m.ClientHost, epoch: &m.MemberEpoch,
			assigned: newerPartitions(m.Assignment), target: newerPartitions(m.TargetAssignment)}
		if m.InstanceID != nil {
			one.instance = *m.InstanceID
		}
		if m.MemberType >= 0 {
			upgraded := m.MemberType == 1
			one.upgraded = &upgraded
		}
		d.members = append(d.members, one)
	}
	return d
}

func newerPartitions(a kmsg.Assignment) (all []cli.Partition) {
	for _, t := range a.TopicPartitions {
		for _, p := range t.Partitions {
			all = append(all, cli.Partition{Topic: t.Topic, ID: p})
		}
	}
	return all
}

func (c *consumerGroupsCommand) describeClassic(ctx context.Context, id string) (describedGroup, error) {
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.Groups = []string{id}
	response, node, err := askCoordinator(ctx, c, describeCall, id, request, func(r *kmsg.DescribeGroupsResponse) int16 {
		return r.Groups[0].ErrorCode
	})
	if err != nil {
		return describedGroup{}, err
	}
	g := response.Groups[0]
	if err := groupFailure(g.ErrorCode, g.ErrorMessage); err != nil {
		return describedGroup{}, err
	}
	if g.ProtocolType != "" && g.ProtocolType != consumerProtocolType {
		return describedGroup{}, cli.BadArgument("GroupId %s is not a consumer group (%s).", id, g.ProtocolType)
	}
	d := describedGroup{id: id, state: g.State, assignor: g.Protocol, coordinator: node}
	for _, m := range g.Members {
		one := describedMember{id: m.MemberID, client: m.ClientID, host: m.ClientHost,
			assigned: classicPartitions(m.MemberAssignment)}
		if m.InstanceID != nil {
			one.instance = *m.InstanceID
		}
		d.members = append(d.members, one)
	}
	return d, nil
}

// classicPartitions reads the assignment of a consumer:
//
//	int16 version | [] { STRING topic, [] int32 partition } | BYTES? user data
func classicPartitions(assignment []byte) (all []cli.Partition) {
	const smallestTopic, partitionBytes = 2 + 4, 4
	r := wire.NewReader(assignment)
	r.Int16()
	for range max(0, r.ArrayLen(smallestTopic)) {
		topic := r.Str()
		for range max(0, r.ArrayLen(partitionBytes)) {
			all = append(all, cli.Partition{Topic: topic, ID: r.Int32()})
		}
	}
	if r.Err() != nil {
		return nil
	}
	return all
}

// committedOffset is an offset that a group committed.
type committedOffset struct {
	cli.Partition
	offset      int64
	leaderEpoch int32 // -1: not known
}

// committed asks for all offsets of a group, in the order of a hash table of Kafka's tool.
func (c *consumerGroupsCommand) committed(ctx context.Context, id string) ([]committedOffset, error) {
	request := kmsg.NewPtrOffsetFetchRequest()
	request.Group = id
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = id
	request.Groups = append(request.Groups, one)
	response, _, err := askCoordinator(ctx, c, "listConsumerGroupOffsets", id, request,
		func(r *kmsg.OffsetFetchResponse) int16 { return fetchedGroup(r).ErrorCode })
	if err != nil {
		return nil, runtimeFailure(cli.Execution(err))
	}
	g := fetchedGroup(response)
	if err := groupFailure(g.ErrorCode, nil); err != nil {
		return nil, runtimeFailure(cli.Execution(err))
	}
	names, err := c.topicNames(ctx, g)
	if err != nil {
		return nil, err
	}
	var all []committedOffset
	for _, t := range g.Topics {
		for _, p := range t.Partitions {
			if p.Offset >= 0 && p.ErrorCode == 0 {
				all = append(all, committedOffset{cli.Partition{Topic: names(t), ID: p.Partition}, p.Offset, p.LeaderEpoch})
			}
		}
	}
	cli.HashOrderBy(all, 0, func(o committedOffset) uint32 { return partitionHash(o.Partition) })
	return all, nil
}

// fetchedGroup is the answer for the one group, whatever the version.
func fetchedGroup(r *kmsg.OffsetFetchResponse) kmsg.OffsetFetchResponseGroup {
	if len(r.Groups) > 0 {
		return r.Groups[0]
	}
	g := kmsg.NewOffsetFetchResponseGroup()
	g.ErrorCode = r.ErrorCode
	for _, t := range r.Topics {
		topic := kmsg.NewOffsetFetchResponseGroupTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			one.Partition, one.Offset, one.LeaderEpoch, one.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.ErrorCode
			topic.Partitions = append(topic.Partitions, one)
		}
		g.Topics = append(g.Topics, topic)
	}
	return g
}

// topicNames finds the names of topics that an answer tells by their ids alone.
func (c *consumerGroupsCommand) topicNames(ctx context.Context, g kmsg.OffsetFetchResponseGroup,
) (func(kmsg.OffsetFetchResponseGroupTopic) string, error) {
	byID := map[[16]byte]string{}
	if slices.ContainsFunc(g.Topics, func(t kmsg.OffsetFetchResponseGroupTopic) bool { return t.Topic == "" }) {
		topics, err := c.admin.Topics(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range topics {
			byID[t.TopicID] = cli.OrNull(t.Topic)
		}
	}
	return func(t kmsg.OffsetFetchResponseGroupTopic) string {
		if t.Topic != "" {
			return t.Topic
		}
		return byID[t.TopicID]
	}, nil
}

// partitionHash is TopicPartition.hashCode.
func partitionHash(p cli.Partition) uint32 {
	return 31*(31+uint32(p.ID)) + cli.JavaHash(p.Topic)
}

func partitionName(p cli.Partition) string { return fmt.Sprintf("%s-%d", p.Topic, p.ID) }
