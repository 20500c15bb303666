package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/metadata"
)

// ListPartitionReassignments (46): the partitions that are on their way to other replicas.
//
// v0: KIP-455.

func (a *API) listPartitionReassignments(c *call, request *kmsg.ListPartitionReassignmentsRequest) kmsg.Response {
	response := answerTo[*kmsg.ListPartitionReassignmentsResponse](request)
	if !a.allowed(c, auth.Describe, auth.Cluster) {
		response.ErrorCode = a.failed(c, kerr.ClusterAuthorizationFailed)
		response.ErrorMessage = errorText(kerr.ClusterAuthorizationFailed)
		return response
	}
	add := func(t *metadata.Topic, ids []int32) {
		out := kmsg.NewListPartitionReassignmentsResponseTopic()
		out.Topic = t.Name
		for _, id := range ids {
			p := t.Partition(id)
			if p == nil || len(p.AddingReplicas)+len(p.RemovingReplicas) == 0 {
				continue
			}
			out.Partitions = append(out.Partitions, kmsg.ListPartitionReassignmentsResponseTopicPartition{Partition: id,
				Replicas: p.Replicas, AddingReplicas: p.AddingReplicas, RemovingReplicas: p.RemovingReplicas})
		}
		if out.Partitions != nil {
			response.Topics = append(response.Topics, out)
		}
	}
	image := a.Metadata.Image()
	if request.Topics == nil {
		for t := range image.Topics() {
			var ids []int32
			for id := range t.Partitions() {
				ids = append(ids, id)
			}
			add(t, ids)
		}
	}
	for _, asked := range request.Topics {
		if t := image.Topic(asked.Topic); t != nil {
			add(t, asked.Partitions)
		}
	}
	return response
}
