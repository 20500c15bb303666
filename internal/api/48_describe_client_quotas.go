package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/metadata"
)

// DescribeClientQuotas (48). Those of users and clients are stored and told; nothing is throttled by them.
//
// v0: KIP-546. v1: flexible.

func (a *API) describeClientQuotas(c *call, request *kmsg.DescribeClientQuotasRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeClientQuotasResponse](request)
	filter, err := newQuotaFilter(request)
	if !a.allowed(c, auth.DescribeConfigs, auth.Cluster) {
		err = kerr.ClusterAuthorizationFailed
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = a.failed(c, err), errorText(err)
		return response
	}
	response.ErrorMessage = kmsg.StringPtr("")
	response.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	for q := range a.Metadata.Image().ClientQuotas() {
		if filter.matches(q.Entity) {
			response.Entries = append(response.Entries, quotaEntry(q))
		}
	}
	return response
}

func quotaEntry(q *metadata.ClientQuota) kmsg.DescribeClientQuotasResponseEntry {
	out := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, e := range q.Entity {
		out.Entity = append(out.Entity, kmsg.DescribeClientQuotasResponseEntryEntity{Type: e.Type, Name: e.Name})
	}
	for key, value := range q.Values() {
		out.Values = append(out.Values, kmsg.DescribeClientQuotasResponseEntryValue{Key: key, Value: value})
	}
	return out
}

// quotaFilter says which entities are asked for.
type quotaFilter struct {
	exact  map[string]*string // by type; nil: the default of the type
	any    map[string]bool    // types of which any name matches
	strict bool               // an entity has no other types
}

func newQuotaFilter(request *kmsg.DescribeClientQuotasRequest) (quotaFilter, error) {
	f := quotaFilter{exact: map[string]*string{}, any: map[string]bool{}, strict: request.Strict}
	for _, p := range request.Components {
		if err := f.add(p); err != nil {
			return f, err
		}
	}
	if f.has("ip") && (f.has("user") || f.has("client-id")) {
		return f, wireError(kerr.InvalidRequest, "Invalid entity filter component combination. IP filter component "+
			"should not be used with user or clientId filter component.")
	}
	return f, nil
}

func (f quotaFilter) has(kind string) bool {
	_, exact := f.exact[kind]
	return exact || f.any[kind]
}

func (f quotaFilter) add(p kmsg.DescribeClientQuotasRequestComponent) error {
	kind := p.EntityType
	switch {
	case kind == "":
		return wireError(kerr.InvalidRequest, "Invalid empty entity type.")
	case f.has(kind):
		return wireError(kerr.InvalidRequest, "Entity type "+kind+" cannot appear more than once in the filter.")
	case kind != "ip" && kind != "user" && kind != "client-id":
		return wireError(kerr.UnsupportedVersion, "Unsupported entity type "+kind)
	}
	switch p.MatchType {
	case kmsg.QuotasMatchTypeExact:
		if p.Match == nil {
			return wireError(kerr.InvalidRequest, "Request specified MATCH_TYPE_EXACT, but set match string to null.")
		}
		f.exact[kind] = p.Match
	case kmsg.QuotasMatchTypeDefault:
		if p.Match != nil {
			return wireError(kerr.InvalidRequest,
				"Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
		}
		f.exact[kind] = nil
	case kmsg.QuotasMatchTypeAny:
		if p.Match != nil {
			return wireError(kerr.InvalidRequest,
				"Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
		}
		f.any[kind] = true
	default:
		return wireError(kerr.InvalidRequest, fmt.Sprintf("Unknown match type %d", int8(p.MatchType)))
	}
	return nil
}

func (f quotaFilter) matches(entity []metadata.QuotaEntity) bool {
	if f.strict && len(entity) != len(f.exact)+len(f.any) {
		return false
	}
	found := 0
	for _, e := range entity {
		want, exact := f.exact[e.Type]
		switch {
		case f.any[e.Type]:
			found++
		case !exact:
		case want == nil && e.Name == nil, want != nil && e.Name != nil && *want == *e.Name:
			found++
		default:
			return false
		}
	}
	return found == len(f.exact)+len(f.any)
}
