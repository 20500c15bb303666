package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

const defaultConfigSource = kmsg.ConfigSourceDefaultConfig

// topicView is a topic as --describe shows it.
type topicView struct {
	name       string
	id         [16]byte
	partitions []partitionView
	configs    []kmsg.DescribeConfigsResponseResourceConfig // in the order to print
}

type partitionView struct {
	id, leader      int32 // leader −1 = none
	replicas, isr   []int32
	elr, lastKnown  []int32
	hasELR          bool // the broker's answer has the two lists above
	adding, leaving []int32
	moving          bool // a reassignment is under way
}

// replicationFactor counts the copies that shall be there, not those of a move under way.
func (p partitionView) replicationFactor() int {
	if p.moving && slices.ContainsFunc(p.replicas, func(id int32) bool {
		return slices.Contains(p.adding, id) || slices.Contains(p.leaving, id)
	}) {
		return len(p.replicas) - len(p.adding)
	}
	return len(p.replicas)
}

func (c *topicsCommand) describeTopics(ctx context.Context) error {
	topics, err := c.chosenTopics(ctx)
	if err != nil || len(topics) == 0 {
		return err
	}
	if err := c.addConfigs(ctx, topics); err != nil {
		return err
	}
	if err := c.addReassignments(ctx, topics); err != nil {
		return err
	}
	live, err := c.liveBrokers(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.env.Stdout)
	for _, t := range topics {
		c.printTopic(out, t)
		for _, p := range t.partitions {
			if !c.overrides.Has() && c.showPartition(t, p, live) {
				printPartition(out, t.name, p)
			}
		}
	}
	return out.Flush()
}

func (c *topicsCommand) chosenTopics(ctx context.Context) ([]topicView, error) {
	id, byID, err := c.wantedID()
	if err != nil {
		return nil, err
	}
	if byID {
		return c.topicByID(ctx, id)
	}
	names, err := c.matching(ctx, !c.ifExists.Has())
	if err != nil || len(names) == 0 {
		return nil, err
	}
	topics, err := c.lookUp(ctx, names)
	cli.HashOrder(topics, len(topics), func(t topicView) string { return t.name })
	return topics, err
}

// wantedID reads --topic-id; an id of zeroes counts as none.
func (c *topicsCommand) wantedID() (id [16]byte, ok bool, err error) {
	text, err := c.topicID.Value()
	if err != nil || !c.topicID.Has() {
		return id, false, err
	}
	if c.topic.Has() && c.ifExists.Has() {
		fmt.Fprintln(c.env.Stdout, "Only topic id will be used when both --topic and --topic-id are specified and "+
			"topicId is not Uuid.ZERO_UUID")
	}
	if len(text) > 24 {
		return id, false, cli.BadArgument("Input string with prefix `%s` is too long to be decoded as a base64 UUID",
			text[:24])
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return id, false, cli.BadArgument("Illegal base64 character in %s", text)
	}
	if copy(id[:], data) != len(id) || len(data) != len(id) {
		return id, false, cli.BadArgument("Input string `%s` decoded as %d bytes, which is not equal to the expected 16 "+
			"bytes of a base64-encoded UUID", text, len(data))
	}
	return id, id != [16]byte{}, nil
}

func (c *topicsCommand) topicByID(ctx context.Context, id [16]byte) ([]topicView, error) {
	all, err := c.admin.Topics(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.TopicID == id && t.Topic != nil && !(c.excludeInternal.Has() && t.IsInternal) {
			return []topicView{metadataView(t)}, nil
		}
	}
	if c.ifExists.Has() {
		return nil, nil
	}
	return nil, cli.BadArgument("TopicId '%s' does not exist as expected", base64.RawURLEncoding.EncodeToString(id[:]))
}

func metadataView(t kmsg.MetadataResponseTopic) topicView {
	view := topicView{name: *t.Topic, id: t.TopicID}
	for _, p := range t.Partitions {
		view.partitions = append(view.partitions,
			partitionView{id: p.Partition, leader: p.Leader, replicas: p.Replicas, isr: p.ISR})
	}
	return view.sorted()
}

func (t topicView) sorted() topicView {
	slices.SortFunc(t.partitions, func(a, b partitionView) int { return int(a.id) - int(b.id) })
	return t
}

// lookUp asks for topics by name, in the order of the names.
func (c *topicsCommand) lookUp(ctx context.Context, names []string) ([]topicView, error) {
	limit := int64(2000)
	if c.partitionSizeLimit.Has() {
		var err error
		if limit, err = c.partitionSizeLimit.Int(); err != nil {
			return nil, err
		}
	}
	byName := map[string]*topicView{}
	request := kmsg.NewPtrDescribeTopicPartitionsRequest()
	request.ResponsePartitionLimit = int32(limit)
	for _, name := range names {
		topic := kmsg.NewDescribeTopicPartitionsRequestTopic()
		topic.Topic = name
		request.Topics = append(request.Topics, topic)
	}
	for {
		response, err := cli.Ask[*kmsg.DescribeTopicPartitionsResponse](ctx, c.admin, "describeTopics", request)
		if err != nil && strings.HasSuffix(cli.AsFailure(err).Class, "UnsupportedVersionException") {
			return c.lookUpOld(ctx, names)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range response.Topics {
			if f := cli.APIFailure(t.ErrorCode, nil); f != nil {
				return nil, f
			}
			addPartitions(byName, t)
		}
		if response.NextCursor == nil {
			break
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = response.NextCursor.Topic, response.NextCursor.Partition
		request.Cursor = &cursor
	}
	return inOrder(byName, names)
}

func addPartitions(byName map[string]*topicView, t kmsg.DescribeTopicPartitionsResponseTopic) {
	if t.Topic == nil {
		return
	}
	view := byName[*t.Topic]
	if view == nil {
		view = &topicView{name: *t.Topic, id: t.TopicID}
		byName[*t.Topic] = view
	}
	for _, p := range t.Partitions {
		view.partitions = append(view.partitions, partitionView{
			id: p.Partition, leader: p.LeaderID, replicas: p.Replicas, isr: p.ISR,
			elr: p.EligibleLeaderReplicas, lastKnown: p.LastKnownELR, hasELR: true,
		})
	}
}

func inOrder(byName map[string]*topicView, names []string) ([]topicView, error) {
	var topics []topicView
	for _, name := range names {
		view := byName[name]
		if view == nil {
			return nil, cli.APIFailure(3, nil)
		}
		topics = append(topics, view.sorted())
	}
	return topics, nil
}

// lookUpOld is lookUp for brokers that only know the Metadata request.
func (c *topicsCommand) lookUpOld(ctx context.Context, names []string) ([]topicView, error) {
	all, err := c.admin.Topics(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*topicView{}
	for _, t := range all {
		if t.Topic != nil {
			view := metadataView(t)
			byName[view.name] = &view
		}
	}
	return inOrder(byName, names)
}

func (c *topicsCommand) addConfigs(ctx context.Context, topics []topicView) error {
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, t := range topics {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, t.name
		request.Resources = append(request.Resources, resource)
	}
	response, err := cli.Ask[*kmsg.DescribeConfigsResponse](ctx, c.admin, "describeConfigs", request)
	if err != nil {
		return err
	}
	for i := range topics {
		for _, r := range response.Resources {
			if r.ResourceName != topics[i].name {
				continue
			}
			if f := cli.APIFailure(r.ErrorCode, r.ErrorMessage); f != nil {
				return f
			}
			topics[i].configs = r.Configs
			cli.HashOrder(topics[i].configs, 0, func(e kmsg.DescribeConfigsResponseResourceConfig) string { return e.Name })
		}
	}
	return nil
}

// addReassignments marks partitions that move between brokers. A broker that does not
// know the request has none.
func (c *topicsCommand) addReassignments(ctx context.Context, topics []topicView) error {
	request := kmsg.NewPtrListPartitionReassignmentsRequest()
	request.TimeoutMillis = topicRequestTimeoutMs
	for _, t := range topics {
		topic := kmsg.NewListPartitionReassignmentsRequestTopic()
		topic.Topic = t.name
		for _, p := range t.partitions {
			topic.Partitions = append(topic.Partitions, p.id)
		}
		request.Topics = append(request.Topics, topic)
	}
	response, err := cli.Ask[*kmsg.ListPartitionReassignmentsResponse](ctx, c.admin, "listPartitionReassignments", request)
	if err == nil && response.ErrorCode != 0 {
		err = cli.APIFailure(response.ErrorCode, response.ErrorMessage)
	}
	if err != nil {
		return unlessRefused(err)
	}
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			markMoving(topics, t.Topic, p)
		}
	}
	return nil
}

// unlessRefused drops the error of a broker that does not know or does not allow a request.
func unlessRefused(err error) error {
	class := cli.AsFailure(err).Class
	if strings.HasSuffix(class, "UnsupportedVersionException") ||
		strings.HasSuffix(class, "ClusterAuthorizationException") {
		return nil
	}
	return err
}

func markMoving(topics []topicView, name string, p kmsg.ListPartitionReassignmentsResponseTopicPartition) {
	for i := range topics {
		for j := range topics[i].partitions {
			if view := &topics[i].partitions[j]; topics[i].name == name && view.id == p.Partition {
				view.moving, view.adding, view.leaving = true, p.AddingReplicas, p.RemovingReplicas
			}
		}
	}
}

// liveBrokers lists the brokers that are up; it asks only when a filter needs them.
func (c *topicsCommand) liveBrokers(ctx context.Context) ([]int32, error) {
	if !c.unavailable.Has() {
		return nil, nil
	}
	nodes, err := c.admin.Nodes(ctx)
	return nodes, err
}

// onlyPartitions reports whether a filter leaves the lines about whole topics out.
func (c *topicsCommand) onlyPartitions() bool {
	return c.unavailable.Has() || c.underReplicated.Has() || c.underMinISR.Has() || c.atMin.Has()
}

func (c *topicsCommand) showPartition(t topicView, p partitionView, live []int32) bool {
	if !c.onlyPartitions() {
		return true
	}
	minISR := t.minISR()
	return c.underReplicated.Has() && p.replicationFactor() > len(p.isr) ||
		c.unavailable.Has() && (p.leader < 0 || !slices.Contains(live, p.leader)) ||
		c.underMinISR.Has() && (p.leader < 0 || len(p.isr) < minISR) ||
		c.atMin.Has() && len(p.isr) == minISR
}

func (t topicView) minISR() int {
	for _, e := range t.configs {
		if e.Name == "min.insync.replicas" && e.Value != nil {
			n, _ := strconv.Atoi(*e.Value) // the broker's own value is a number
			return n
		}
	}
	return 1
}

func (c *topicsCommand) printTopic(out io.Writer, t topicView) {
	if c.onlyPartitions() {
		return
	}
	var own []string
	for _, e := range t.configs {
		if e.Source != defaultConfigSource {
			own = append(own, e.Name+"="+cli.OrNull(e.Value))
		}
	}
	if c.overrides.Has() && len(own) == 0 {
		return
	}
	id := ""
	if t.id != [16]byte{} {
		id = "\tTopicId: " + base64.RawURLEncoding.EncodeToString(t.id[:])
	}
	factor := 0
	if len(t.partitions) > 0 {
		factor = t.partitions[0].replicationFactor()
	}
	fmt.Fprintf(out, "Topic: %s%s\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s\n",
		t.name, id, len(t.partitions), factor, strings.Join(own, ","))
}

func printPartition(out io.Writer, topic string, p partitionView) {
	leader := "none"
	if p.leader >= 0 {
		leader = strconv.Itoa(int(p.leader))
	}
	fmt.Fprintf(out, "\tTopic: %s\tPartition: %d\tLeader: %s\tReplicas: %s\tIsr: %s",
		topic, p.id, leader, join(p.replicas, ","), join(p.isr, ","))
	if p.moving {
		fmt.Fprintf(out, "\tAdding Replicas: %s\tRemoving Replicas: %s", join(p.adding, ","), join(p.leaving, ","))
	}
	elr, lastKnown := "N/A", "N/A"
	if p.hasELR {
		elr, lastKnown = join(p.elr, ","), join(p.lastKnown, ",")
	}
	fmt.Fprintf(out, "\tElr: %s\tLastKnownElr: %s\n", elr, lastKnown)
}
