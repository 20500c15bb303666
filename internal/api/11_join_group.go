package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// JoinGroup (11).
//
// v1: rebalance timeout (KIP-62). v2: throttle time. v4: MEMBER_ID_REQUIRED (KIP-394). v5: static members (KIP-345).
// v6: flexible. v7: protocol type, protocol may be null (KIP-559). v8: reason (KIP-800). v9: SkipAssignment
// (KIP-814).

const (
	rebalanceTimeoutInJoin = 1
	memberIDInJoin         = 4
	nullProtocolInJoin     = 7
	skipAssignmentInJoin   = 9
)

func (a *API) joinGroup(c *call, request *kmsg.JoinGroupRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.JoinGroupResponse](request)
	answer := func(r group.JoinResponse) {
		a.fillJoined(c, response, r)
		done(response)
	}
	if !a.allowed(c, auth.Read, auth.Group(request.Group)) {
		answer(group.JoinResponse{Err: kerr.GroupAuthorizationFailed, Generation: group.NoGeneration})
		return
	}
	join := &group.JoinRequest{Group: request.Group, MemberID: request.MemberID, InstanceID: request.InstanceID,
		ClientID: c.caller.ClientID, ClientHost: c.clientHost(), SessionTimeoutMs: request.SessionTimeoutMillis,
		RebalanceTimeoutMs: request.RebalanceTimeoutMillis, ProtocolType: request.ProtocolType,
		Reason: orEmpty(request.Reason), NeedsMemberID: request.Version >= memberIDInJoin,
		CanSkipAssignment: request.Version >= skipAssignmentInJoin}
	if request.Version < rebalanceTimeoutInJoin {
		join.RebalanceTimeoutMs = request.SessionTimeoutMillis
	}
	for _, p := range request.Protocols {
		join.Protocols = append(join.Protocols, group.Protocol{Name: p.Name, Metadata: slices.Clone(p.Metadata)})
	}
	a.Groups.Join(join, answer)
}

func (a *API) fillJoined(c *call, response *kmsg.JoinGroupResponse, r group.JoinResponse) {
	response.ErrorCode, response.Generation = a.failed(c, r.Err), r.Generation
	response.ProtocolType, response.Protocol = r.ProtocolType, r.Protocol
	response.LeaderID, response.MemberID, response.SkipAssignment = r.Leader, r.MemberID, r.SkipAssignment
	if response.Protocol == nil && response.Version < nullProtocolInJoin {
		response.Protocol = kmsg.StringPtr("")
	}
	for _, m := range r.Members {
		out := kmsg.NewJoinGroupResponseMember()
		out.MemberID, out.InstanceID, out.ProtocolMetadata = m.ID, m.InstanceID, m.Metadata
		response.Members = append(response.Members, out)
	}
}
