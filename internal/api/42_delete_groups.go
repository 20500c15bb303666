package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
)

// DeleteGroups (42).
//
// v1: throttle time. v2: flexible.

func (a *API) deleteGroups(c *call, request *kmsg.DeleteGroupsRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.DeleteGroupsResponse](request)
	var ids []string
	for _, id := range request.Groups {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	put := gather(len(ids), func(all []kmsg.DeleteGroupsResponseGroup) {
		response.Groups = all
		done(response)
	})
	for i, id := range ids {
		set := func(err error) {
			out := kmsg.NewDeleteGroupsResponseGroup()
			out.Group, out.ErrorCode = id, a.failed(c, err)
			put(i, out)
		}
		if !a.allowed(c, auth.Delete, auth.Group(id)) {
			set(kerr.GroupAuthorizationFailed)
			continue
		}
		a.Groups.Delete(id, set)
	}
}
