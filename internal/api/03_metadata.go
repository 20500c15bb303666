package api

import (
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// Metadata (3).
//
// v1: controller id, null = all topics. v2: cluster id. v4: auto creation is the client's choice. v5: offline
// replicas. v7: leader epochs. v8: authorized operations (KIP-430). v9: flexible. v10: topic ids (KIP-516).
// v11: cluster operations are DescribeCluster's. v12: topics by id. v13: top-level error (KIP-1102).

// notAsked is the bit field of authorized operations that were not asked for.
const notAsked = math.MinInt32

func (a *API) metadata(c *call, request *kmsg.MetadataRequest) kmsg.Response {
	response := answerTo[*kmsg.MetadataResponse](request)
	image := a.Metadata.Image()
	a.fillBrokers(c, image, response)
	response.AuthorizedOperations = notAsked
	if request.IncludeClusterAuthorizedOperations {
		response.AuthorizedOperations = a.operations(c, clusterOperations, auth.Cluster)
	}
	if request.Topics == nil || request.Version == 0 && len(request.Topics) == 0 {
		for topic := range image.Topics() {
			if a.allowed(c, auth.Describe, auth.Topic(topic.Name)) {
				response.Topics = append(response.Topics, a.describeTopic(c, request, image, topic))
			}
		}
		return response
	}
	if err := checkMetadataTopics(request); err != nil {
		return a.refuseMetadata(c, request, err)
	}
	a.addAskedTopics(c, request, image, response)
	return response
}

// addAskedTopics answers for each topic asked for, once. As soon as one is asked for by its id, names do not count.
// Order: unknown ids, topics there are, topics there are not.
func (a *API) addAskedTopics(c *call, request *kmsg.MetadataRequest, image *metadata.Image,
	response *kmsg.MetadataResponse) {
	byID := slices.ContainsFunc(request.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.TopicID != [16]byte{} })
	var missing []kmsg.MetadataResponseTopic
	var found []*metadata.Topic
	seen := map[topicKey]bool{}
	for _, t := range request.Topics {
		if byID && t.TopicID == [16]byte{} {
			continue
		}
		key := topicKey{id: t.TopicID}
		var topic *metadata.Topic
		if byID {
			topic = image.TopicByID(t.TopicID)
		} else {
			key.name = *t.Topic
			topic = image.Topic(key.name)
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		switch {
		case topic != nil && a.allowed(c, auth.Describe, auth.Topic(topic.Name)):
			found = append(found, topic)
		case byID && topic == nil:
			response.Topics = append(response.Topics, a.missingTopic(c, nil, t.TopicID, kerr.UnknownTopicID))
		case byID:
			missing = append(missing, a.missingTopic(c, nil, t.TopicID, kerr.TopicAuthorizationFailed))
		default:
			missing = append(missing, a.unknownName(c, request, key.name))
		}
	}
	for _, topic := range found {
		response.Topics = append(response.Topics, a.describeTopic(c, request, image, topic))
	}
	response.Topics = append(response.Topics, missing...)
}

// topicKey is how a request names a topic.
type topicKey struct {
	name string
	id   metadata.UUID
}

// checkMetadataTopics refuses what the version cannot mean: until v12 every topic has a name and no id. A topic with
// neither, unless ids are asked for, is a null that Kafka trips over.
func checkMetadataTopics(request *kmsg.MetadataRequest) error {
	byID, nameless := false, false
	for _, t := range request.Topics {
		byID = byID || t.TopicID != [16]byte{}
		nameless = nameless || t.Topic == nil
	}
	switch {
	case request.Version < 12 && (byID || nameless):
		return kerr.InvalidRequest
	case nameless && !byID:
		return kerr.UnknownServerError
	}
	return nil
}

// refuseMetadata refuses the whole request: every topic, and since v13 the whole as well.
func (a *API) refuseMetadata(c *call, request *kmsg.MetadataRequest, err error) kmsg.Response {
	response := answerTo[*kmsg.MetadataResponse](request)
	response.AuthorizedOperations = notAsked
	response.ControllerID = -1
	response.ErrorCode = a.failed(c, err)
	for _, t := range request.Topics {
		out := kmsg.NewMetadataResponseTopic()
		out.Topic, out.TopicID, out.ErrorCode = t.Topic, t.TopicID, code(err)
		if out.Topic == nil {
			out.Topic = kmsg.StringPtr("")
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}

// fillBrokers lists the brokers that clients can reach on the listener they asked on. A client that wants the
// controller may ask any broker: requests are forwarded.
func (a *API) fillBrokers(c *call, image *metadata.Image, response *kmsg.MetadataResponse) {
	response.ControllerID = -1
	for b := range image.Brokers() {
		endpoint, ok := b.Endpoint(c.caller.Listener)
		if b.Fenced || !ok {
			continue
		}
		out := kmsg.NewMetadataResponseBroker()
		out.NodeID, out.Host, out.Port, out.Rack = b.ID, endpoint.Host, int32(endpoint.Port), b.Rack
		response.Brokers = append(response.Brokers, out)
		response.ControllerID = b.ID
	}
	cluster := a.ClusterID
	response.ClusterID = &cluster
}

// unknownName answers for a name that is no topic, or none that the caller may know of, and has the topic created
// if the caller wants that.
func (a *API) unknownName(c *call, request *kmsg.MetadataRequest, name string) kmsg.MetadataResponseTopic {
	if !a.allowed(c, auth.Describe, auth.Topic(name)) {
		return a.missingTopic(c, &name, metadata.ZeroUUID, kerr.TopicAuthorizationFailed)
	}
	reason := kerr.InvalidTopicException
	if config.CheckTopicName(name) == nil {
		reason = kerr.UnknownTopicOrPartition
		a.autoCreate(c, request, name)
	}
	out := a.missingTopic(c, &name, metadata.ZeroUUID, reason)
	out.IsInternal = isInternal(name)
	if request.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = a.operations(c, topicOperations, auth.Topic(name))
	}
	return out
}

func (a *API) missingTopic(c *call, name *string, id metadata.UUID, reason error) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.ErrorCode = name, id, a.failed(c, reason)
	out.AuthorizedOperations = notAsked
	return out
}

// autoCreate starts the creation of a topic that a client asked for; the client asks again.
func (a *API) autoCreate(c *call, request *kmsg.MetadataRequest, topic string) {
	wanted := request.Version < 4 || request.AllowAutoTopicCreation
	if !wanted || !a.Node().Broker().AutoCreateTopicsEnable ||
		!(a.allowed(c, auth.Create, auth.Cluster) || a.allowed(c, auth.Create, auth.Topic(topic))) {
		return
	}
	who := c.caller.Principal
	go func() {
		create := controller.CreateTopics{Topics: []controller.NewTopic{a.automaticTopic(topic)}}
		if _, err := quorum.Ask[controller.CreateTopicsResult](context.Background(), a.Metadata, create, who); err != nil {
			a.Logger.Warn("topic was not created", "topic", topic, "error", err)
		}
	}()
}

func (a *API) describeTopic(c *call, request *kmsg.MetadataRequest, image *metadata.Image, topic *metadata.Topic,
) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	name := topic.Name
	out.Topic, out.TopicID, out.IsInternal = &name, topic.ID, isInternal(name)
	out.AuthorizedOperations = notAsked
	if request.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = a.operations(c, topicOperations, auth.Topic(name))
	}
	for id, p := range topic.Partitions() {
		out.Partitions = append(out.Partitions, a.describePartition(c, request.Version, image, id, p))
	}
	return out
}

func (a *API) describePartition(c *call, version int16, image *metadata.Image, id int32, p *metadata.Partition,
) kmsg.MetadataResponseTopicPartition {
	out := kmsg.NewMetadataResponseTopicPartition()
	out.Partition, out.Leader, out.LeaderEpoch = id, p.Leader, p.LeaderEpoch
	out.Replicas, out.ISR = p.Replicas, p.ISR
	for _, replica := range p.Replicas {
		if b := image.Broker(replica); b == nil || b.Fenced {
			out.OfflineReplicas = append(out.OfflineReplicas, replica)
		}
	}
	leader := image.Broker(p.Leader)
	if leader == nil {
		out.Leader, out.ErrorCode = -1, kerr.LeaderNotAvailable.Code
		return out
	}
	if _, reachable := leader.Endpoint(c.caller.Listener); !reachable {
		out.Leader, out.ErrorCode = -1, kerr.ListenerNotFound.Code
		if version < 6 {
			out.ErrorCode = kerr.LeaderNotAvailable.Code
		}
	}
	return out
}
