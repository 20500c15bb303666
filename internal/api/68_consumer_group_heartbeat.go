package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// ConsumerGroupHeartbeat (68).
//
// v1: patterns of topics; members name themselves (KIP-848, KIP-1082).

const ownIDsInHeartbeat = 1

// groupVersionFeature tells whether there are consumer groups.
const groupVersionFeature = "group.version"

// consumerGroups tells whether consumer groups are served.
func (a *API) consumerGroups() bool {
	return a.ConsumerGroups() && a.Metadata.Image().FeatureLevel(groupVersionFeature) >= 1
}

func (a *API) consumerGroupHeartbeat(c *call, request *kmsg.ConsumerGroupHeartbeatRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.ConsumerGroupHeartbeatResponse](request)
	if err := a.mayBeat(c, request); err != nil {
		response.ErrorCode = a.failed(c, err)
		done(response)
		return
	}
	a.Groups.ConsumerHeartbeat(a.heartbeatOf(c, request), func(answer group.ConsumerAnswer, err error) {
		if err != nil {
			response.ErrorCode, response.ErrorMessage = a.failed(c, err), errorText(err)
			done(response)
			return
		}
		response.MemberID, response.MemberEpoch = &answer.MemberID, answer.Epoch
		response.HeartbeatIntervalMillis = answer.HeartbeatIntervalMs
		if answer.Assigned {
			assignment := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
			for _, t := range answer.Partitions {
				one := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
				one.TopicID, one.Partitions = t.TopicID, t.Partitions
				assignment.Topics = append(assignment.Topics, one)
			}
			response.Assignment = &assignment
		}
		done(response)
	})
}

// mayBeat tells whether the request may be served: the caller has to be allowed all topics that it wants.
func (a *API) mayBeat(c *call, request *kmsg.ConsumerGroupHeartbeatRequest) error {
	switch {
	case !a.consumerGroups():
		return kerr.UnsupportedVersion
	case !a.allowed(c, auth.Read, auth.Group(request.Group)):
		return kerr.GroupAuthorizationFailed
	}
	for _, topic := range request.SubscribedTopicNames {
		if !a.allowed(c, auth.Describe, auth.Topic(topic)) {
			return kerr.TopicAuthorizationFailed
		}
	}
	return nil
}

func (a *API) heartbeatOf(c *call, request *kmsg.ConsumerGroupHeartbeatRequest) *group.ConsumerHeartbeat {
	r := &group.ConsumerHeartbeat{
		Group: request.Group, MemberID: request.MemberID, Epoch: request.MemberEpoch, InstanceID: request.InstanceID,
		RackID: request.RackID, ClientID: orEmpty(c.request.Header.ClientID), ClientHost: c.clientHost(),
		RebalanceTimeoutMs: request.RebalanceTimeoutMillis, Topics: request.SubscribedTopicNames,
		Regex: request.SubscribedTopicRegex, Assignor: request.ServerAssignor,
		NeedsMemberID: request.Version >= ownIDsInHeartbeat,
		Visible:       func(topic string) bool { return a.allowed(c, auth.Describe, auth.Topic(topic)) },
	}
	if request.Topics != nil {
		r.Owned = []group.OwnedPartitions{}
	}
	for _, t := range request.Topics {
		r.Owned = append(r.Owned, group.OwnedPartitions{TopicID: t.TopicID, Partitions: t.Partitions})
	}
	return r
}
