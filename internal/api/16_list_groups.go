package api

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// ListGroups (16).
//
// v1: throttle time. v3: flexible. v4: states, to tell and to filter by (KIP-518). v5: types, likewise (KIP-848).

func (a *API) listGroups(c *call, request *kmsg.ListGroupsRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.ListGroupsResponse](request)
	all := a.allowed(c, auth.Describe, auth.Cluster)
	filter := group.Filter{States: request.StatesFilter, Kinds: request.TypesFilter}
	a.Groups.List(filter, func(listed []group.Listed, err error) {
		response.ErrorCode = a.failed(c, err)
		slices.SortFunc(listed, func(a, b group.Listed) int { return cmp.Compare(a.ID, b.ID) })
		for _, l := range listed {
			if !all && !a.allowed(c, auth.Describe, auth.Group(l.ID)) {
				continue
			}
			out := kmsg.NewListGroupsResponseGroup()
			out.Group, out.ProtocolType, out.GroupState, out.GroupType = l.ID, l.ProtocolType, l.State, l.Kind
			response.Groups = append(response.Groups, out)
		}
		done(response)
	})
}
