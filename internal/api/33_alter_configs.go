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
	all := make([]alteration, len(request.Resources))
	for i, r := range request.Resources {
		all[i].resource = metadata.ConfigResource{Type: metadata.ResourceType(r.ResourceType), Name: r.ResourceName}
		for _, entry := range r.Configs {
			all[i].ops = append(all[i].ops, controller.ConfigOp{Key: entry.Name, Op: controller.OpSet, Value: entry.Value})
		}
	}
	a.checkAlterations(c, all, true, request.ValidateOnly)
	alter := controller.AlterConfigs{ValidateOnly: request.ValidateOnly}
	for _, x := range accepted(all) {
		replace := controller.ReplaceConfigs{Resource: x.resource}
		for _, op := range x.ops {
			replace.Configs = append(replace.Configs, controller.ConfigEntry{Key: op.Key, Value: op.Value})
		}
		alter.Resources = append(alter.Resources, replace)
	}
	if len(alter.Resources) > 0 {
		result, err := quorum.Ask[controller.AlterConfigsResult](c.ctx, a.Metadata, alter, c.caller.Principal)
		takeOutcomes(all, result, err)
	}
	response := answerTo[*kmsg.AlterConfigsResponse](request)
	for _, x := range all {
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = kmsg.ConfigResourceType(x.resource.Type), x.resource.Name
		if x.err != nil {
			out.ErrorCode, out.ErrorMessage = a.failed(c, x.err), errorText(x.err)
		}
		response.Resources = append(response.Resources, out)
	}
	return response
}
