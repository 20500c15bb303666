package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// ConsumerGroupDescribe (69).
//
// v1: whether a member speaks the classic protocol.

// The types of members.
const (
	classicMember  = 0
	consumerMember = 1
)

func (a *API) consumerGroupDescribe(c *call, request *kmsg.ConsumerGroupDescribeRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.ConsumerGroupDescribeResponse](request)
	put := gather(len(request.Groups), func(all []kmsg.ConsumerGroupDescribeResponseGroup) {
		response.Groups = all
		done(response)
	})
	for i, id := range request.Groups {
		set := func(d group.ConsumerDescription, err error) {
			put(i, a.describedConsumers(c, id, d, err, request.IncludeAuthorizedOperations))
		}
		switch {
		case !a.consumerGroups():
			set(group.ConsumerDescription{}, kerr.UnsupportedVersion)
		case !a.allowed(c, auth.Describe, auth.Group(id)):
			set(group.ConsumerDescription{}, kerr.GroupAuthorizationFailed)
		default:
			a.Groups.DescribeConsumers(id, set)
		}
	}
}

func (a *API) describedConsumers(c *call, id string, d group.ConsumerDescription, err error, operations bool,
) kmsg.ConsumerGroupDescribeResponseGroup {
	out := kmsg.NewConsumerGroupDescribeResponseGroup()
	out.Group = id
	if err == nil && !a.mayDescribe(c, d) {
		err = wireError(kerr.TopicAuthorizationFailed,
			"The group has described topic(s) that the client is not authorized to describe.")
	}
	if err != nil {
		out.ErrorCode, out.ErrorMessage = a.failed(c, err), ownText(err)
		return out
	}
	out.State, out.Epoch, out.AssignmentEpoch, out.AssignorName = d.State, d.Epoch, d.AssignmentEpoch, d.Assignor
	if operations {
		out.AuthorizedOperations = a.operations(c, groupOperations, auth.Group(id))
	}
	for _, m := range d.Members {
		one := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		one.MemberID, one.InstanceID, one.RackID, one.MemberEpoch = m.ID, m.InstanceID, m.RackID, m.Epoch
		one.ClientID, one.ClientHost, one.MemberType = m.ClientID, m.ClientHost, consumerMember
		if m.Classic {
			one.MemberType = classicMember
		}
		one.SubscribedTopics, one.SubscribedTopicRegex = m.Topics, m.Regex
		one.Assignment.TopicPartitions = describedPartitions(m.Assigned)
		one.TargetAssignment.TopicPartitions = describedPartitions(m.Target)
		out.Members = append(out.Members, one)
	}
	return out
}

// mayDescribe tells whether the caller may see all topics that members have or are to have.
func (a *API) mayDescribe(c *call, d group.ConsumerDescription) bool {
	for _, m := range d.Members {
		for _, all := range [][]group.DescribedPartitions{m.Assigned, m.Target} {
			for _, t := range all {
				if !a.allowed(c, auth.Describe, auth.Topic(t.Topic)) {
					return false
				}
			}
		}
	}
	return true
}

func describedPartitions(all []group.DescribedPartitions) []kmsg.AssignmentTopicPartition {
	var out []kmsg.AssignmentTopicPartition
	for _, t := range all {
		one := kmsg.NewAssignmentTopicPartition()
		one.TopicID, one.Topic, one.Partitions = t.TopicID, t.Topic, t.Partitions
		out = append(out, one)
	}
	return out
}
