package api

import (
	"context"
	"math"

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
	for _, t := range request.Topics {
		if err := checkMetadataTopic(request.Version, t); err != nil {
			return a.refuseMetadata(c, request, err)
		}
	}
	for _, t := range request.Topics {
		response.Topics = append(response.Topics, a.askedTopic(c, request, image, t))
	}
	return response
}

// checkMetadataTopic refuses what the version cannot mean: until v12 every topic has a name and no id.
func checkMetadataTopic(version int16, t kmsg.MetadataRequestTopic) error {
	if version < 12 && (t.Topic == nil || t.TopicID != [16]byte{}) {
		return kerr.InvalidRequest
	}
	return nil
}

func (a *API) refuseMetadata(c *call, request *kmsg.MetadataRequest, err error) kmsg.Response {
	response := answerTo[*kmsg.MetadataResponse](request)
	response.AuthorizedOperations = notAsked
	response.ControllerID = -1
	for _, t := range request.Topics {
		out := kmsg.NewMetadataResponseTopic()
		out.Topic, out.TopicID, out.ErrorCode = t.Topic, t.TopicID, a.failed(c, err)
		if out.Topic == nil && request.Version < 12 {
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

func (a *API) askedTopic(c *call, request *kmsg.MetadataRequest, image *metadata.Image,
	asked kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	var topic *metadata.Topic
	missing := error(kerr.UnknownTopicOrPartition)
	if asked.TopicID != [16]byte{} {
		topic, missing = image.TopicByID(asked.TopicID), kerr.UnknownTopicID
	} else if asked.Topic != nil {
		topic = image.Topic(*asked.Topic)
	}
	if topic != nil {
		if a.allowed(c, auth.Describe, auth.Topic(topic.Name)) {
			return a.describeTopic(c, request, image, topic)
		}
		missing = kerr.TopicAuthorizationFailed
	} else if asked.TopicID == [16]byte{} && asked.Topic != nil {
		if err := config.CheckTopicName(*asked.Topic); err != nil {
			missing = kerr.InvalidTopicException
		} else {
			a.autoCreate(c, request, *asked.Topic)
		}
	}
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.ErrorCode = asked.Topic, asked.TopicID, a.failed(c, missing)
	out.AuthorizedOperations = notAsked
	if asked.Topic != nil {
		out.IsInternal = isInternal(*asked.Topic)
	}
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
