package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// SyncGroup (14).
//
// v1: throttle time. v3: static members (KIP-345). v4: flexible. v5: protocol type and protocol (KIP-559).

const protocolInSync = 5

func (a *API) syncGroup(c *call, request *kmsg.SyncGroupRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.SyncGroupResponse](request)
	answer := func(r group.SyncResponse) {
		response.ErrorCode = a.failed(c, r.Err)
		response.ProtocolType, response.Protocol = r.ProtocolType, r.Protocol
		response.MemberAssignment = r.Assignment
		done(response)
	}
	switch {
	case request.Version >= protocolInSync && (request.ProtocolType == nil || request.Protocol == nil):
		answer(group.SyncResponse{Err: group.ErrInconsistentProtocol})
		return
	case !a.allowed(c, auth.Read, auth.Group(request.Group)):
		answer(group.SyncResponse{Err: kerr.GroupAuthorizationFailed})
		return
	}
	sync := &group.SyncRequest{Group: request.Group, MemberID: request.MemberID, InstanceID: request.InstanceID,
		Generation: request.Generation, ProtocolType: request.ProtocolType, Protocol: request.Protocol}
	for _, assigned := range request.GroupAssignment {
		sync.Assignments = append(sync.Assignments, group.Assignment{MemberID: assigned.MemberID,
			Bytes: slices.Clone(assigned.MemberAssignment)})
	}
	a.Groups.Sync(sync, answer)
}
