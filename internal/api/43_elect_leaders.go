package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/quorum"
)

// ElectLeaders (43).
//
// v0: KIP-183, preferred leaders only. v1: the kind of election and an error code for all (KIP-460). v2: flexible.

func (a *API) electLeaders(c *call, request *kmsg.ElectLeadersRequest) kmsg.Response {
	response := answerTo[*kmsg.ElectLeadersResponse](request)
	elect := controller.ElectLeaders{Type: request.ElectionType, All: request.Topics == nil}
	for _, t := range request.Topics {
		elect.Topics = append(elect.Topics, controller.PartitionsOf{Topic: t.Topic, Partitions: t.Partitions})
	}
	err := error(kerr.ClusterAuthorizationFailed)
	var result controller.PartitionResults
	if a.allowed(c, auth.Alter, auth.Cluster) {
		result, err = quorum.Ask[controller.PartitionResults](c.ctx, a.Metadata, elect, c.caller.Principal)
	}
	if err != nil {
		response.ErrorCode = a.failed(c, err)
		result = allRefused(elect.Topics)
	}
	for _, t := range result.Topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			one := kmsg.NewElectLeadersResponseTopicPartition()
			one.Partition = p.Partition
			one.ErrorCode, one.ErrorMessage = a.outcome(c, p.Err, err)
			out.Partitions = append(out.Partitions, one)
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}

// allRefused is a result with every partition asked for.
func allRefused(topics []controller.PartitionsOf) (r controller.PartitionResults) {
	for _, t := range topics {
		out := controller.TopicPartitionsResult{Topic: t.Topic}
		for _, id := range t.Partitions {
			out.Partitions = append(out.Partitions, controller.PartitionResult{Partition: id})
		}
		r.Topics = append(r.Topics, out)
	}
	return r
}

// outcome is the code and text of one item: its own refusal, or the one of all.
func (a *API) outcome(c *call, own *controller.Error, all error) (int16, *string) {
	switch {
	case own != nil:
		return a.failed(c, own), errorText(own)
	case all != nil:
		return a.failed(c, all), errorText(all)
	}
	return none, nil
}
