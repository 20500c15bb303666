package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// IncrementalAlterConfigs (44).
//
// v0: KIP-339. v1: flexible.

func (a *API) incrementalAlterConfigs(c *call, request *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	all := make([]alteration, len(request.Resources))
	for i, r := range request.Resources {
		all[i].resource = metadata.ConfigResource{Type: metadata.ResourceType(r.ResourceType), Name: r.ResourceName}
		for _, entry := range r.Configs {
			all[i].ops = append(all[i].ops, controller.ConfigOp{Key: entry.Name, Op: controller.OpType(entry.Op),
				Value: entry.Value})
		}
	}
	a.checkAlterations(c, all, false, request.ValidateOnly)
	alter := controller.IncrementalAlterConfigs{ValidateOnly: request.ValidateOnly}
	for _, x := range accepted(all) {
		alter.Resources = append(alter.Resources, controller.AlterResource{Resource: x.resource, Ops: x.ops})
	}
	if len(alter.Resources) > 0 {
		result, err := quorum.Ask[controller.AlterConfigsResult](c.ctx, a.Metadata, alter, c.caller.Principal)
		takeOutcomes(all, result, err)
	}
	response := answerTo[*kmsg.IncrementalAlterConfigsResponse](request)
	for _, x := range all {
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = kmsg.ConfigResourceType(x.resource.Type), x.resource.Name
		if x.err != nil {
			out.ErrorCode, out.ErrorMessage = a.failed(c, x.err), errorText(x.err)
		}
		response.Resources = append(response.Resources, out)
	}
	return response
}
