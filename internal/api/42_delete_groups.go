package api

import (
	"slices"
	"sync"

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
	if len(ids) == 0 {
		done(response)
		return
	}
	response.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(ids))
	var mu sync.Mutex
	left := len(ids)
	for i, id := range ids {
		set := func(err error) {
			mu.Lock()
			out := kmsg.NewDeleteGroupsResponseGroup()
			out.Group, out.ErrorCode = id, a.failed(c, err)
			response.Groups[i] = out
			left--
			last := left == 0
			mu.Unlock()
			if last {
				done(response)
			}
		}
		if !a.allowed(c, auth.Delete, auth.Group(id)) {
			set(kerr.GroupAuthorizationFailed)
			continue
		}
		a.Groups.Delete(id, set)
	}
}
