package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
)

// Heartbeat (12).
//
// v1: throttle time. v3: static members (KIP-345). v4: flexible.

func (a *API) heartbeat(c *call, request *kmsg.HeartbeatRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.HeartbeatResponse](request)
	answer := func(err error) {
		response.ErrorCode = a.failed(c, err)
		done(response)
	}
	if !a.allowed(c, auth.Read, auth.Group(request.Group)) {
		answer(kerr.GroupAuthorizationFailed)
		return
	}
	a.Groups.Heartbeat(request.Group, request.MemberID, request.InstanceID, request.Generation, answer)
}
