package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/metadata"
)

// DescribeConfigs (32).
//
// v0: Kafka 3.9 never sets "is default". v1: synonyms and sources (KIP-226). v3: types and documentation (KIP-569).
// v4: flexible. Groups are described since KIP-848, client metrics since KIP-714.

func (a *API) describeConfigs(c *call, request *kmsg.DescribeConfigsRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeConfigsResponse](request)
	for _, r := range request.Resources {
		if !describable(r.ResourceType) {
			return a.refuseDescription(c, request, kerr.InvalidRequest)
		}
	}
	for _, r := range request.Resources {
		out := describedResource(r)
		entries, err := a.resourceConfigs(c, metadata.ResourceType(r.ResourceType), r.ResourceName)
		if err != nil {
			out.ErrorCode, out.ErrorMessage, entries = a.failed(c, err), describeErrorText(err), nil
		}
		for _, e := range entries {
			if len(r.ConfigNames) == 0 || slices.Contains(r.ConfigNames, e.Name) {
				out.Configs = append(out.Configs, describedConfig(request, e))
			}
		}
		response.Resources = append(response.Resources, out)
	}
	return response
}

func describable(kind kmsg.ConfigResourceType) bool {
	switch metadata.ResourceType(kind) {
	case metadata.ResourceTopic, metadata.ResourceBroker, metadata.ResourceBrokerLogger, metadata.ResourceClientMetrics,
		metadata.ResourceGroup:
		return true
	}
	return false
}

// describedResource is the answer for one resource before anything went wrong: the message is empty then, not null.
func describedResource(r kmsg.DescribeConfigsRequestResource) kmsg.DescribeConfigsResponseResource {
	out := kmsg.NewDescribeConfigsResponseResource()
	out.ResourceType, out.ResourceName, out.ErrorMessage = r.ResourceType, r.ResourceName, kmsg.StringPtr("")
	return out
}

// refuseDescription refuses the whole request.
func (a *API) refuseDescription(c *call, request *kmsg.DescribeConfigsRequest, err error) kmsg.Response {
	response := answerTo[*kmsg.DescribeConfigsResponse](request)
	for _, r := range request.Resources {
		out := describedResource(r)
		out.ErrorCode, out.ErrorMessage = a.failed(c, err), errorText(err)
		response.Resources = append(response.Resources, out)
	}
	return response
}

// describeErrorText: an unknown topic is only a code.
func describeErrorText(err error) *string {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return kmsg.StringPtr("")
	}
	return errorText(err)
}

// resourceConfigs are the effective configs of a resource.
func (a *API) resourceConfigs(c *call, kind metadata.ResourceType, name string) ([]config.Entry, error) {
	stored := a.Metadata.Image().Config(metadata.ConfigResource{Type: kind, Name: name}).Map()
	switch kind {
	case metadata.ResourceTopic:
		return a.topicConfigs(c, name, stored)
	case metadata.ResourceBroker:
		if !a.allowed(c, auth.DescribeConfigs, auth.Cluster) {
			return nil, kerr.ClusterAuthorizationFailed
		}
		if name == "" {
			return a.Node().DescribeClusterDefault(), nil
		}
		const unexpected = "Unexpected broker id, expected %d or empty string, but received %s"
		if err := a.checkOwnID(name, "Broker", unexpected); err != nil {
			return nil, err
		}
		return a.Node().DescribeBroker(), nil
	case metadata.ResourceGroup:
		return a.Node().DescribeGroup(stored)
	case metadata.ResourceClientMetrics:
		if name == "" {
			return nil, wireError(kerr.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return config.DescribeClientMetrics(stored)
	case metadata.ResourceBrokerLogger:
		return a.describeLoggers(c, name)
	}
	return nil, wireError(kerr.InvalidRequest, fmt.Sprintf("Unsupported resource type: %d", kind))
}

func (a *API) topicConfigs(c *call, name string, stored map[string]string) ([]config.Entry, error) {
	if !a.allowed(c, auth.DescribeConfigs, auth.Topic(name)) {
		return nil, kerr.TopicAuthorizationFailed
	}
	if err := config.CheckTopicName(name); err != nil {
		return nil, err
	}
	if a.Metadata.Image().Topic(name) == nil {
		return nil, kerr.UnknownTopicOrPartition
	}
	return a.Node().DescribeTopic(stored)
}

// checkOwnID refuses a name that is not this node's id: what is configured statically on another one only that one
// knows. what is what Kafka calls the node here, Broker or Node; unexpected takes this node's id and the name.
func (a *API) checkOwnID(name, what, unexpected string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case err != nil:
		return wireError(kerr.InvalidRequest, what+" id must be an integer, but it is: "+name)
	case int32(id) != a.NodeID:
		return wireError(kerr.InvalidRequest, fmt.Sprintf(unexpected, a.NodeID, name))
	}
	return nil
}

func describedConfig(request *kmsg.DescribeConfigsRequest, e config.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value, out.ReadOnly, out.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	out.Source = kmsg.ConfigSource(e.Source)
	if request.IncludeSynonyms {
		for _, s := range e.Synonyms {
			synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			synonym.Name, synonym.Value, synonym.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			out.ConfigSynonyms = append(out.ConfigSynonyms, synonym)
		}
	}
	out.ConfigType = kmsg.ConfigType(e.Type)
	// Kafka: what a logger is for is told as an empty text, whether asked for or not.
	if request.IncludeDocumentation && e.Doc != "" || e.Source == config.SourceBrokerLogger {
		doc := e.Doc
		out.Documentation = &doc
	}
	return out
}
