package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// AlterConfigs (33).
//
// v1: throttling. v2: flexible. The configs named replace all that the resource had (KIP-133); clients use
// IncrementalAlterConfigs instead.

func (a *API) alterConfigs(c *call, request *kmsg.AlterConfigsRequest) kmsg.Response {
	response := answerTo[*kmsg.AlterConfigsResponse](request)
	add := func(r metadata.ConfigResource, err error) {
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
		if err != nil {
			out.ErrorCode, out.ErrorMessage = a.failed(c, err), errorText(err)
		}
		response.Resources = append(response.Resources, out)
	}
	alter := controller.AlterConfigs{ValidateOnly: request.ValidateOnly}
	for _, r := range request.Resources {
		resource := metadata.ConfigResource{Type: metadata.ResourceType(r.ResourceType), Name: r.ResourceName}
		replace := controller.ReplaceConfigs{Resource: resource}
		for _, entry := range r.Configs {
			replace.Configs = append(replace.Configs, controller.ConfigEntry{Key: entry.Name, Value: entry.Value})
		}
		if err := a.checkAlter(c, resource, replacementChanges(replace)); err != nil {
			add(resource, err)
			continue
		}
		alter.Resources = append(alter.Resources, replace)
	}
	result, err := quorum.Ask[controller.AlterConfigsResult](c.ctx, a.Metadata, alter,
		c.caller.Principal)
	if err != nil {
		for _, r := range alter.Resources {
			add(r.Resource, err)
		}
		return response
	}
	for _, r := range result.Resources {
		add(r.Resource, asError(r.Err))
	}
	return response
}
