package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/quorum"
)

// CreatePartitions (37).
//
// v1: throttling. v2: flexible. v3: THROTTLING_QUOTA_EXCEEDED (KIP-599).

func (a *API) createPartitions(c *call, request *kmsg.CreatePartitionsRequest) kmsg.Response {
	response := answerTo[*kmsg.CreatePartitionsResponse](request)
	more := controller.CreatePartitions{ValidateOnly: request.ValidateOnly}
	add := func(topic string, err error) {
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = topic
		if err != nil {
			out.ErrorCode, out.ErrorMessage = a.failed(c, err), errorText(err)
		}
		response.Topics = append(response.Topics, out)
	}
	for _, t := range request.Topics {
		if !a.allowed(c, auth.Alter, auth.Topic(t.Topic)) {
			add(t.Topic, kerr.TopicAuthorizationFailed)
			continue
		}
		more.Topics = append(more.Topics, morePartitions(t))
	}
	result, err := quorum.Ask[controller.CreatePartitionsResult](c.ctx, a.Metadata, more,
		c.caller.Principal)
	if err != nil {
		for _, t := range more.Topics {
			add(t.Topic, err)
		}
		return response
	}
	for _, t := range result.Topics {
		if t.Err != nil {
			add(t.Topic, t.Err)
		} else {
			add(t.Topic, nil)
		}
	}
	return response
}

func morePartitions(t kmsg.CreatePartitionsRequestTopic) controller.MorePartitions {
	m := controller.MorePartitions{Topic: t.Topic, Count: t.Count}
	for _, assigned := range t.Assignment {
		m.Assignments = append(m.Assignments, assigned.Replicas)
	}
	return m
}
