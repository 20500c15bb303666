package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateAcls (30), refused without an authorizer.
//
// v1: kinds of patterns (KIP-290). v2: flexible. v3: user principals of delegation tokens (KIP-373).

// errNoAuthorizer refuses changes of ACLs.
var errNoAuthorizer = wireError(kerr.SecurityDisabled, "No Authorizer is configured.")

func (a *API) createACLs(c *call, request *kmsg.CreateACLsRequest) kmsg.Response {
	response := answerTo[*kmsg.CreateACLsResponse](request)
	for range request.Creations {
		out := kmsg.NewCreateACLsResponseResult()
		out.ErrorCode, out.ErrorMessage = a.failed(c, errNoAuthorizer), errorText(errNoAuthorizer)
		response.Results = append(response.Results, out)
	}
	return response
}
