package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

type configEntry = kmsg.DescribeConfigsResponseResourceConfig

// configSources are Kafka's names of where a setting comes from, by number.
var configSources = map[kmsg.ConfigSource]string{
	kmsg.ConfigSourceDynamicTopicConfig:         "DYNAMIC_TOPIC_CONFIG",
	kmsg.ConfigSourceDynamicBrokerConfig:        "DYNAMIC_BROKER_CONFIG",
	kmsg.ConfigSourceDynamicDefaultBrokerConfig: "DYNAMIC_DEFAULT_BROKER_CONFIG",
	kmsg.ConfigSourceStaticBrokerConfig:         "STATIC_BROKER_CONFIG",
	kmsg.ConfigSourceDefaultConfig:              "DEFAULT_CONFIG",
	kmsg.ConfigSourceDynamicBrokerLoggerConfig:  "DYNAMIC_BROKER_LOGGER_CONFIG",
	sourceClientMetrics:                         "DYNAMIC_CLIENT_METRICS_CONFIG",
	sourceGroup:                                 "DYNAMIC_GROUP_CONFIG",
}

const (
	sourceClientMetrics kmsg.ConfigSource = 7
	sourceGroup         kmsg.ConfigSource = 8
)

// resourceKinds are the kinds of entity that have settings rather than quotas: the
// resource type of each and the source that counts as its own; 0 = any.
var resourceKinds = map[string]struct {
	resource kmsg.ConfigResourceType
	source   kmsg.ConfigSource
}{
	topicEntity:   {kmsg.ConfigResourceTypeTopic, kmsg.ConfigSourceDynamicTopicConfig},
	brokerEntity:  {kmsg.ConfigResourceTypeBroker, kmsg.ConfigSourceDynamicBrokerConfig},
	loggerEntity:  {kmsg.ConfigResourceTypeBrokerLogger, 0},
	metricsEntity: {kmsg.ConfigResourceTypeClientMetrics, sourceClientMetrics},
	groupEntity:   {kmsg.ConfigResourceTypeGroupConfig, sourceGroup},
}

func (c *configsCommand) describeConfig(ctx context.Context) error {
	switch kind := c.kinds[0]; kind {
	case userEntity, clientEntity:
		if err := c.describeQuotas(ctx); err != nil {
			return err
		}
		if c.has(clientEntity) || slices.Contains(c.entityNames, "") {
			return nil
		}
		return c.describeScram(ctx)
	case ipEntity:
		return c.describeQuotas(ctx)
	default:
		return c.describeResources(ctx, kind)
	}
}

// singular is the kind without its last letter, as Kafka's tool has it.
func singular(kind string) string { return kind[:len(kind)-1] }

func (c *configsCommand) describeResources(ctx context.Context, kind string) error {
	names := c.entityNames
	if len(names) > 0 {
		names = names[:1]
		if !c.all.Has() {
			found, err := c.exists(ctx, kind, names[0])
			if err != nil {
				return err
			}
			if !found {
				_, err := fmt.Fprintf(c.env.Stdout, "The %s '%s' doesn't exist and doesn't have dynamic config.\n",
					singular(kind), names[0])
				return err
			}
		}
	} else {
		var err error
		if names, err = c.allNames(ctx, kind); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := c.describeResource(ctx, kind, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *configsCommand) describeResource(ctx context.Context, kind, name string) error {
	which := "Dynamic"
	if c.all.Has() {
		which = "All"
	}
	if name == "" {
		fmt.Fprintf(c.env.Stdout, "Default configs for %s in the cluster are:\n", kind)
	} else {
		fmt.Fprintf(c.env.Stdout, "%s configs for %s %s are:\n", which, singular(kind), name)
	}
	entries, err := c.resourceConfig(ctx, kind, name, c.all.Has())
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		var synonyms []string
		for _, s := range e.ConfigSynonyms {
			synonyms = append(synonyms, configSources[s.Source]+":"+s.Name+"="+cli.OrNull(s.Value))
		}
		fmt.Fprintf(&text, "  %s=%s sensitive=%t synonyms={%s}\n", e.Name, cli.OrNull(e.Value), e.IsSensitive,
			strings.Join(synonyms, ", "))
	}
	_, err = fmt.Fprint(c.env.Stdout, text.String())
	return err
}

// exists reports whether there is an entity of that name, or settings for one.
func (c *configsCommand) exists(ctx context.Context, kind, name string) (bool, error) {
	if kind == topicEntity {
		if err := checkTopicName(name); err != nil {
			return false, err
		}
	}
	names, err := c.allNames(ctx, kind)
	return slices.Contains(names, name), err
}

// allNames lists the entities of a kind, in the order in which Kafka's tool shows them.
func (c *configsCommand) allNames(ctx context.Context, kind string) ([]string, error) {
	switch kind {
	case topicEntity:
		topics, err := c.admin.Topics(ctx)
		cli.HashOrder(topics, 0, func(t cli.Topic) string { return cli.OrNull(t.Topic) })
		var names []string
		for _, t := range topics {
			names = append(names, cli.OrNull(t.Topic))
		}
		return names, cli.Execution(err)
	case brokerEntity, loggerEntity:
		nodes, err := c.admin.Nodes(ctx)
		slices.Sort(nodes)
		var names []string
		for _, id := range nodes {
			names = append(names, strconv.Itoa(int(id)))
		}
		return append(names, ""), cli.Execution(err)
	case metricsEntity:
		return c.configResources(ctx, kmsg.ConfigResourceTypeClientMetrics)
	}
	return c.groupNames(ctx)
}

// configResources lists the entities of a type that have settings.
func (c *configsCommand) configResources(ctx context.Context, kind kmsg.ConfigResourceType) ([]string, error) {
	request := kmsg.NewPtrListConfigResourcesRequest()
	request.ResourceTypes = []int8{int8(kind)}
	response, err := cli.Ask[*kmsg.ListConfigResourcesResponse](ctx, c.admin, "listConfigResources", request)
	if err == nil && response.ErrorCode != 0 {
		err = cli.APIFailure(response.ErrorCode, nil)
	}
	if err != nil {
		return nil, cli.Execution(err)
	}
	var names []string
	for _, r := range response.ConfigResources {
		names = append(names, r.Name)
	}
	return names, nil
}

// groupNames lists the groups that are there and those that have settings.
func (c *configsCommand) groupNames(ctx context.Context) ([]string, error) {
	response, err := cli.Ask[*kmsg.ListGroupsResponse](ctx, c.admin, "listGroups", kmsg.NewPtrListGroupsRequest())
	if err != nil && c.controller.Has() {
		err = &cli.Failure{Class: "org.apache.kafka.common.KafkaException",
			Message: "Failed to find brokers to send ListGroups", Cause: cli.AsFailure(err)}
	}
	if err == nil && response.ErrorCode != 0 {
		err = cli.APIFailure(response.ErrorCode, nil)
	}
	if err != nil {
		return nil, cli.Execution(err)
	}
	var names []string
	for _, g := range response.Groups {
		names = append(names, g.Group)
	}
	configured, err := c.configResources(ctx, kmsg.ConfigResourceTypeGroupConfig)
	if err != nil {
		return names, unlessRefused(cli.AsFailure(err).Cause)
	}
	for _, name := range configured {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// resourceConfig asks for the settings of one entity, sorted by name; without all, only
// those of the entity itself.
func (c *configsCommand) resourceConfig(ctx context.Context, kind, name string, all bool) ([]configEntry, error) {
	if kind == topicEntity {
		if err := checkTopicName(name); err != nil {
			return nil, err
		}
	}
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.IncludeSynonyms = true
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = resourceKinds[kind].resource, name
	request.Resources = []kmsg.DescribeConfigsRequestResource{resource}
	waited, cancel := context.WithTimeout(ctx, describePatience)
	defer cancel()
	response, err := cli.Ask[*kmsg.DescribeConfigsResponse](waited, c.admin, "describeConfigs", request)
	switch {
	case err != nil && waited.Err() != nil:
		return nil, &cli.Failure{Class: "java.util.concurrent.TimeoutException", Bare: true}
	case err != nil:
		return nil, cli.Execution(err)
	}
	source := resourceKinds[kind].source
	if kind == brokerEntity && name == "" {
		source = kmsg.ConfigSourceDynamicDefaultBrokerConfig
	}
	var entries []configEntry
	for _, r := range response.Resources {
		if f := cli.APIFailure(r.ErrorCode, r.ErrorMessage); f != nil {
			return nil, cli.Execution(f)
		}
		for _, e := range r.Configs {
			if all || source == 0 || e.Source == source {
				entries = append(entries, e)
			}
		}
	}
	slices.SortFunc(entries, func(a, b configEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// describePatience is for how long Kafka's tool waits for settings, whatever the client's own timeout is.
const describePatience = 30 * time.Second

const maxTopicName = 249 // characters

// checkTopicName refuses names that no topic can have.
func checkTopicName(name string) error {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
	}
	reason := ""
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == "." || name == "..":
		reason = "'" + name + "' is not allowed"
	case len(name) > maxTopicName:
		reason = fmt.Sprintf("the length of '%s' is longer than the max allowed length %d", name, maxTopicName)
	case strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return cli.Fail(classInvalidTopic, "Topic name is invalid: %s", reason)
}
