package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/quorum"
)

// AlterPartitionReassignments (45).
//
// v0: KIP-455. v1: whether the number of replicas may change (KIP-860).

func (a *API) alterPartitionReassignments(c *call, request *kmsg.AlterPartitionAssignmentsRequest) kmsg.Response {
	response := answerTo[*kmsg.AlterPartitionAssignmentsResponse](request)
	response.AllowReplicationFactorChange = request.Version == 0 || request.AllowReplicationFactorChange
	alter := controller.AlterReassignments{KeepFactor: !response.AllowReplicationFactorChange}
	for _, t := range request.Topics {
		topic := controller.TopicReassignment{Topic: t.Topic}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions,
				controller.NewReplicas{Partition: p.Partition, Replicas: p.Replicas})
		}
		alter.Topics = append(alter.Topics, topic)
	}
	if len(request.Topics) == 0 { // Kafka: an answer that nobody filled in
		response.ErrorMessage, response.AllowReplicationFactorChange = kmsg.StringPtr(""), true
		return response
	}
	err := error(kerr.ClusterAuthorizationFailed)
	var result controller.PartitionResults
	if a.allowed(c, auth.Alter, auth.Cluster) {
		result, err = quorum.Ask[controller.PartitionResults](c.ctx, a.Metadata, alter, c.caller.Principal)
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = a.failed(c, err), errorText(err)
	}
	for _, t := range result.Topics {
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			one := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			one.Partition = p.Partition
			one.ErrorCode, one.ErrorMessage = a.outcome(c, p.Err, nil)
			out.Partitions = append(out.Partitions, one)
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}
