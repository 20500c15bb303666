package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/config"
)

const (
	topicRequestTimeoutMs = 30000
	topicExists           = 36 // error code TOPIC_ALREADY_EXISTS
)

func (c *topicsCommand) createTopic(ctx context.Context) error {
	topic, err := c.newTopic()
	if err != nil {
		return err
	}
	if strings.ContainsAny(topic.Topic, "._") {
		fmt.Fprintln(c.env.Stdout, "WARNING: Due to limitations in metric names, topics with a period ('.') or "+
			"underscore ('_') could collide. To avoid issues it is best to use either, but not both.")
	}
	if c.replicationFactor.Has() {
		n, _ := c.replicationFactor.Int()
		if n > math.MaxInt16 || n < 1 {
			return cli.BadArgument("The replication factor must be between 1 and 32767 inclusive")
		}
	}
	if c.partitions.Has() && topic.NumPartitions < 1 {
		return cli.BadArgument("The partitions must be greater than 0")
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = topicRequestTimeoutMs
	request.Topics = []kmsg.CreateTopicsRequestTopic{topic}
	response, err := cli.Ask[*kmsg.CreateTopicsResponse](ctx, c.admin, "createTopics", request)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		if t.ErrorCode == topicExists && c.ifNotExists.Has() {
			return nil
		}
		if f := cli.APIFailure(t.ErrorCode, t.ErrorMessage); f != nil {
			return f
		}
	}
	_, err = fmt.Fprintln(c.env.Stdout, "Created topic "+topic.Topic+".")
	return err
}

// checkTopicConfigs refuses what no broker would take, before one is asked, with the exceptions of Kafka's tool.
func checkTopicConfigs(configs []kmsg.CreateTopicsRequestTopicConfig) error {
	texts := make(map[string]string, len(configs))
	for _, entry := range configs {
		texts[entry.Name] = *entry.Value
	}
	err := config.CheckTopicConfigs(texts)
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "Invalid value "):
		return cli.Fail("org.apache.kafka.common.config.ConfigException", "%v", err)
	}
	return cli.Fail(classInvalidConfig, "%v", err)
}

// newTopic is the topic that the options describe; −1 stands for the broker's default.
func (c *topicsCommand) newTopic() (kmsg.CreateTopicsRequestTopic, error) {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.NumPartitions, topic.ReplicationFactor = -1, -1
	var err error
	if topic.Topic, err = c.topic.Value(); err != nil {
		return topic, err
	}
	if c.partitions.Has() {
		n, err := c.partitions.Int()
		if err != nil {
			return topic, err
		}
		topic.NumPartitions = int32(n)
	}
	if c.replicationFactor.Has() {
		n, err := c.replicationFactor.Int()
		if err != nil {
			return topic, err
		}
		topic.ReplicationFactor = int16(n)
	}
	assignment, err := c.assignment()
	if err != nil {
		return topic, err
	}
	for i, brokers := range assignment {
		one := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		one.Partition, one.Replicas = int32(i), brokers
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, one)
	}
	if topic.Configs, err = c.topicConfigs(); err != nil {
		return topic, err
	}
	return topic, checkTopicConfigs(topic.Configs)
}

var equalsSign = cli.Pattern(`\s*=\s*`)

func (c *topicsCommand) topicConfigs() ([]kmsg.CreateTopicsRequestTopicConfig, error) {
	var configs []kmsg.CreateTopicsRequestTopicConfig
	for _, text := range c.config.Values() {
		pair := equalsSign().Split(text, -1)
		for len(pair) > 1 && pair[len(pair)-1] == "" {
			pair = pair[:len(pair)-1]
		}
		if len(pair) != 2 {
			return nil, cli.BadArgument("requirement failed: Invalid topic config: all configs to be added must be in " +
				"the format \"key=val\".")
		}
		key, value := strings.TrimSpace(pair[0]), strings.TrimSpace(pair[1])
		if i := slices.IndexFunc(configs, func(e kmsg.CreateTopicsRequestTopicConfig) bool { return e.Name == key }); i >= 0 {
			configs[i].Value = &value
			continue
		}
		entry := kmsg.NewCreateTopicsRequestTopicConfig()
		entry.Name, entry.Value = key, &value
		configs = append(configs, entry)
	}
	return configs, nil
}

// assignment reads --replica-assignment: the brokers of partition 0, 1, …
func (c *topicsCommand) assignment() ([][]int32, error) {
	text, err := c.replicaAssignment.Value()
	if err != nil || text == "" {
		return nil, err
	}
	var all [][]int32
	for part := range strings.SplitSeq(text, ",") {
		var brokers, twice []int32
		for id := range strings.SplitSeq(part, ":") {
			id = strings.TrimSpace(id)
			n, err := strconv.ParseInt(id, 10, 32)
			if err != nil {
				return nil, cli.Fail("java.lang.NumberFormatException", "For input string: \"%s\"", id)
			}
			if slices.Contains(brokers, int32(n)) && !slices.Contains(twice, int32(n)) {
				twice = append(twice, int32(n))
			}
			brokers = append(brokers, int32(n))
		}
		if twice != nil {
			return nil, cli.Fail("org.apache.kafka.tools.AdminCommandFailedException",
				"Partition replica lists may not contain duplicate entries: %s", join(twice, ","))
		}
		all = append(all, brokers)
		if len(brokers) != len(all[0]) {
			return nil, cli.Fail("org.apache.kafka.tools.AdminOperationException",
				"Partition %d has different replication factor: [%s]", len(all)-1, join(brokers, ", "))
		}
	}
	return all, nil
}

func join(ids []int32, separator string) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, separator)
}

func (c *topicsCommand) alterTopics(ctx context.Context) error {
	want, err := c.newTopic()
	if err != nil {
		return err
	}
	names, err := c.matching(ctx, !c.ifExists.Has())
	if err != nil || len(names) == 0 {
		return err
	}
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.TimeoutMillis = topicRequestTimeoutMs
	for _, name := range names {
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = name, want.NumPartitions
		if topic.Assignment, err = c.addedAssignment(ctx, name, want); err != nil {
			return err
		}
		request.Topics = append(request.Topics, topic)
	}
	response, err := cli.Ask[*kmsg.CreatePartitionsResponse](ctx, c.admin, "createPartitions", request)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		if f := cli.APIFailure(t.ErrorCode, t.ErrorMessage); f != nil {
			return f
		}
	}
	return nil
}

// addedAssignment is the part of the wanted assignment that lies past the topic's
// present partitions.
func (c *topicsCommand) addedAssignment(ctx context.Context, name string, want kmsg.CreateTopicsRequestTopic,
) ([]kmsg.CreatePartitionsRequestTopicAssignment, error) {
	if len(want.ReplicaAssignment) == 0 {
		return nil, nil
	}
	topics, err := c.lookUp(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	var added []kmsg.CreatePartitionsRequestTopicAssignment
	for _, a := range want.ReplicaAssignment[min(len(topics[0].partitions), len(want.ReplicaAssignment)):] {
		one := kmsg.NewCreatePartitionsRequestTopicAssignment()
		one.Replicas = a.Replicas
		added = append(added, one)
	}
	return added, nil
}

func (c *topicsCommand) deleteTopics(ctx context.Context) error {
	names, err := c.matching(ctx, !c.ifExists.Has())
	if err != nil || len(names) == 0 {
		return err
	}
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis = topicRequestTimeoutMs
	request.TopicNames = names
	for _, name := range names {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	response, err := cli.Ask[*kmsg.DeleteTopicsResponse](ctx, c.admin, "deleteTopics", request)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		if f := cli.APIFailure(t.ErrorCode, t.ErrorMessage); f != nil {
			return f
		}
	}
	return nil
}
