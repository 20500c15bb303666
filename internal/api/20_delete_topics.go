package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// DeleteTopics (20).
//
// v1: throttle time. v4: flexible. v5: error messages (KIP-599). v6: topics by id (KIP-516).

func (a *API) deleteTopics(c *call, request *kmsg.DeleteTopicsRequest) kmsg.Response {
	response := answerTo[*kmsg.DeleteTopicsResponse](request)
	remove := controller.DeleteTopics{}
	refuse := func(name *string, id [16]byte, err error) {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID, out.ErrorCode, out.ErrorMessage = name, id, a.failed(c, err), errorText(err)
		response.Topics = append(response.Topics, out)
	}
	image := a.Metadata.Image()
	for _, t := range askedDeletions(request) {
		name := t.Topic
		if topic := image.TopicByID(t.TopicID); name == nil && topic != nil {
			name = &topic.Name
		}
		switch {
		case t.Topic != nil && t.TopicID != [16]byte{}:
			refuse(t.Topic, t.TopicID, wireError(kerr.InvalidRequest, "You may not specify both topic name and topic id."))
		case t.Topic == nil && t.TopicID == [16]byte{}:
			refuse(nil, t.TopicID, wireError(kerr.InvalidRequest, "Neither topic name nor id were specified."))
		case name != nil && !a.allowed(c, auth.Delete, auth.Topic(*name)):
			refuse(t.Topic, t.TopicID, kerr.TopicAuthorizationFailed)
		case t.Topic != nil:
			remove.Names = append(remove.Names, *t.Topic)
		default:
			remove.IDs = append(remove.IDs, metadata.UUID(t.TopicID))
		}
	}
	if len(remove.Names)+len(remove.IDs) == 0 {
		return response
	}
	result, err := quorum.Ask[controller.DeleteTopicsResult](c.ctx, a.Metadata, remove,
		c.caller.Principal)
	if err != nil {
		for _, t := range askedDeletions(request) {
			refuse(t.Topic, t.TopicID, err)
		}
		return response
	}
	for _, t := range result.Topics {
		response.Topics = append(response.Topics, a.deletedTopic(c, t))
	}
	return response
}

// askedDeletions is the request in the form of v6, whatever its version.
func askedDeletions(request *kmsg.DeleteTopicsRequest) []kmsg.DeleteTopicsRequestTopic {
	if request.Version >= 6 {
		return request.Topics
	}
	topics := make([]kmsg.DeleteTopicsRequestTopic, len(request.TopicNames))
	for i := range request.TopicNames {
		topics[i].Topic = &request.TopicNames[i]
	}
	return topics
}

func (a *API) deletedTopic(c *call, t controller.DeletedTopic) kmsg.DeleteTopicsResponseTopic {
	out := kmsg.NewDeleteTopicsResponseTopic()
	out.TopicID = t.ID
	if t.Name != "" || t.ID == metadata.ZeroUUID {
		out.Topic = &t.Name
	}
	if t.Err != nil {
		out.ErrorCode, out.ErrorMessage = a.failed(c, t.Err), errorText(t.Err)
	}
	return out
}
