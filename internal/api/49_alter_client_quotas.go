package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// AlterClientQuotas (49).
//
// v0: KIP-546. v1: flexible.

func (a *API) alterClientQuotas(c *call, request *kmsg.AlterClientQuotasRequest) kmsg.Response {
	response := answerTo[*kmsg.AlterClientQuotasResponse](request)
	alter := controller.AlterClientQuotas{ValidateOnly: request.ValidateOnly}
	for _, e := range request.Entries {
		alter.Alterations = append(alter.Alterations, a.quotaAlteration(c, e))
	}
	err := error(kerr.ClusterAuthorizationFailed)
	var result controller.AlterClientQuotasResult
	if a.allowed(c, auth.AlterConfigs, auth.Cluster) {
		result, err = quorum.Ask[controller.AlterClientQuotasResult](c.ctx, a.Metadata, alter, c.caller.Principal)
	}
	if err != nil {
		for _, x := range alter.Alterations {
			result.Entities = append(result.Entities, controller.AlteredQuota{Entity: x.Entity})
		}
	} else {
		a.warnUnenforced(result, request.ValidateOnly)
	}
	for _, e := range result.Entities {
		out := kmsg.NewAlterClientQuotasResponseEntry()
		for _, part := range e.Entity {
			out.Entity = append(out.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part.Type, Name: part.Name})
		}
		out.ErrorCode, out.ErrorMessage = a.outcome(c, e.Err, err)
		response.Entries = append(response.Entries, out)
	}
	return response
}

func (a *API) quotaAlteration(c *call, e kmsg.AlterClientQuotasRequestEntry) controller.QuotaAlteration {
	var x controller.QuotaAlteration
	for _, part := range e.Entity {
		x.Entity = append(x.Entity, metadata.QuotaEntity{Type: part.Type, Name: part.Name})
		if part.Type == "ip" && part.Name != nil && *part.Name != "" {
			x.NoSuchHost = a.LookupHost != nil && a.LookupHost(c.ctx, *part.Name) != nil
		}
	}
	for _, op := range e.Ops {
		x.Ops = append(x.Ops, controller.QuotaOp{Key: op.Key, Value: op.Value, Remove: op.Remove})
	}
	return x
}

// warnUnenforced says that quotas of users and clients have no effect yet.
func (a *API) warnUnenforced(r controller.AlterClientQuotasResult, validateOnly bool) {
	for _, e := range r.Entities {
		if e.Err == nil && !validateOnly && e.Entity[0].Type != "ip" {
			a.Logger.Warn("a quota was stored and has no effect: throttling is not built", "entities", len(r.Entities))
			return
		}
	}
}
