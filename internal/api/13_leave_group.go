package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// LeaveGroup (13).
//
// v1: throttle time. v3: several members, static ones by their instance (KIP-345). v4: flexible. v5: reason
// (KIP-800).

const membersInLeave = 3

func (a *API) leaveGroup(c *call, request *kmsg.LeaveGroupRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.LeaveGroupResponse](request)
	if !a.allowed(c, auth.Read, auth.Group(request.Group)) {
		response.ErrorCode = a.failed(c, kerr.GroupAuthorizationFailed)
		done(response)
		return
	}
	members := leaving(request)
	a.Groups.Leave(request.Group, members, func(each []error, err error) {
		if errors.Is(err, group.ErrUnknownMember) {
			each, err = repeatedError(err, len(members)), nil
		}
		a.fillLeft(c, response, members, each, err)
		done(response)
	})
}

// leaving are the members that a request names, whatever its version.
func leaving(request *kmsg.LeaveGroupRequest) []group.Leaving {
	if request.Version < membersInLeave {
		return []group.Leaving{{MemberID: request.MemberID}}
	}
	out := make([]group.Leaving, len(request.Members))
	for i, m := range request.Members {
		out[i] = group.Leaving{MemberID: m.MemberID, InstanceID: m.InstanceID, Reason: orEmpty(m.Reason)}
	}
	return out
}

func (a *API) fillLeft(c *call, response *kmsg.LeaveGroupResponse, members []group.Leaving, each []error, err error) {
	if err != nil {
		response.ErrorCode = a.failed(c, err)
		return
	}
	if response.Version < membersInLeave {
		response.ErrorCode = a.failed(c, each[0])
		return
	}
	for i, m := range members {
		out := kmsg.NewLeaveGroupResponseMember()
		out.MemberID, out.InstanceID, out.ErrorCode = m.MemberID, m.InstanceID, a.failed(c, each[i])
		response.Members = append(response.Members, out)
	}
}

func repeatedError(err error, n int) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}
