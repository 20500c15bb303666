package api

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/quorum"
)

// CreateTopics (19).
//
// v1: validate only, error messages. v2: throttle time. v4: defaults by −1 (KIP-464). v5: flexible, answers with
// partitions and configs (KIP-525). v6: throttling (KIP-599). v7: topic ids (KIP-516).

func (a *API) createTopics(c *call, request *kmsg.CreateTopicsRequest) kmsg.Response {
	response := answerTo[*kmsg.CreateTopicsResponse](request)
	create := controller.CreateTopics{ValidateOnly: request.ValidateOnly}
	forbidden := map[string]bool{}
	for _, t := range request.Topics {
		if a.mayCreate(c, t.Topic) {
			create.Topics = append(create.Topics, newTopic(t))
		} else {
			forbidden[t.Topic] = true
		}
	}
	result, err := quorum.Ask[controller.CreateTopicsResult](c.ctx, a.Metadata, create,
		c.caller.Principal)
	for _, t := range result.Topics {
		response.Topics = append(response.Topics, a.createdTopic(c, request, t))
	}
	for _, t := range request.Topics {
		switch {
		case forbidden[t.Topic]:
			response.Topics = append(response.Topics, a.notCreated(c, t.Topic, kerr.TopicAuthorizationFailed))
		case err != nil:
			response.Topics = append(response.Topics, a.notCreated(c, t.Topic, err))
		}
	}
	return response
}

func (a *API) mayCreate(c *call, topic string) bool {
	return a.allowed(c, auth.Create, auth.Cluster) || a.allowed(c, auth.Create, auth.Topic(topic))
}

func newTopic(t kmsg.CreateTopicsRequestTopic) controller.NewTopic {
	n := controller.NewTopic{Name: t.Topic, Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
	for _, assigned := range t.ReplicaAssignment {
		n.Assignments = append(n.Assignments,
			controller.Assignment{Partition: assigned.Partition, Brokers: assigned.Replicas})
	}
	for _, entry := range t.Configs {
		n.Configs = append(n.Configs, controller.ConfigEntry{Key: entry.Name, Value: entry.Value})
	}
	return n
}

func (a *API) notCreated(c *call, topic string, err error) kmsg.CreateTopicsResponseTopic {
	out := kmsg.NewCreateTopicsResponseTopic()
	out.Topic, out.ErrorCode, out.ErrorMessage = topic, a.failed(c, err), errorText(err)
	out.NumPartitions, out.ReplicationFactor = -1, -1
	out.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	return out
}

func (a *API) createdTopic(c *call, request *kmsg.CreateTopicsRequest, t controller.CreatedTopic,
) kmsg.CreateTopicsResponseTopic {
	if t.Err != nil {
		return a.notCreated(c, t.Name, t.Err)
	}
	out := kmsg.NewCreateTopicsResponseTopic()
	out.Topic, out.TopicID, out.NumPartitions, out.ReplicationFactor = t.Name, t.ID, t.Partitions, t.ReplicationFactor
	if !a.allowed(c, auth.DescribeConfigs, auth.Topic(t.Name)) {
		out.NumPartitions, out.ReplicationFactor = -1, -1
		out.ConfigErrorCode = kerr.TopicAuthorizationFailed.Code
		return out
	}
	for _, asked := range request.Topics {
		if asked.Topic == t.Name {
			out.Configs = a.createdConfigs(asked)
		}
	}
	return out
}

// createdConfigs are the effective configs of a topic that was, or with ValidateOnly would be, created.
func (a *API) createdConfigs(asked kmsg.CreateTopicsRequestTopic) []kmsg.CreateTopicsResponseTopicConfig {
	overrides := map[string]string{}
	for _, entry := range asked.Configs {
		if entry.Value != nil {
			overrides[entry.Name] = *entry.Value
		}
	}
	entries, err := a.Node().DescribeTopic(overrides)
	if err != nil {
		return nil
	}
	out := make([]kmsg.CreateTopicsResponseTopicConfig, 0, len(entries))
	for _, e := range entries {
		one := kmsg.NewCreateTopicsResponseTopicConfig()
		one.Name, one.Value, one.ReadOnly = e.Name, e.Value, e.ReadOnly
		one.IsSensitive, one.Source = e.Sensitive, int8(e.Source)
		out = append(out, one)
	}
	return out
}

// automaticTopic is a topic that is created because a client asked for it: the internal ones have configs of their
// own.
func (a *API) automaticTopic(name string) controller.NewTopic {
	b := a.Node().Broker()
	topic := controller.NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1}
	set := func(t config.InternalTopic, configs map[string]string) {
		topic.Partitions, topic.ReplicationFactor = t.NumPartitions, t.ReplicationFactor
		configs["segment.bytes"] = strconv.Itoa(int(t.SegmentBytes))
		if configs["compression.type"] == "" {
			configs["compression.type"] = "producer"
		}
		for _, key := range sortedKeys(configs) {
			value := configs[key]
			topic.Configs = append(topic.Configs, controller.ConfigEntry{Key: key, Value: &value})
		}
	}
	switch name {
	case offsetsTopic:
		set(b.OffsetsTopic, map[string]string{"cleanup.policy": "compact"})
	case txnTopic:
		set(b.TransactionTopic, map[string]string{"cleanup.policy": "compact", "compression.type": "uncompressed",
			"unclean.leader.election.enable": "false",
			"min.insync.replicas":            strconv.Itoa(int(b.TransactionTopic.MinInsyncReplicas))})
	case shareTopic:
		set(b.ShareStateTopic, map[string]string{"cleanup.policy": "delete", "retention.ms": "-1",
			"min.insync.replicas": strconv.Itoa(int(b.ShareStateTopic.MinInsyncReplicas))})
	}
	return topic
}
