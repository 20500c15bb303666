package api

import "github.com/twmb/franz-go/pkg/kmsg"

// DeleteAcls (31), refused without an authorizer.
//
// v1: kinds of patterns (KIP-290). v2: flexible. v3: user principals of delegation tokens (KIP-373).

func (a *API) deleteACLs(c *call, request *kmsg.DeleteACLsRequest) kmsg.Response {
	response := answerTo[*kmsg.DeleteACLsResponse](request)
	for range request.Filters {
		out := kmsg.NewDeleteACLsResponseResult()
		out.ErrorCode, out.ErrorMessage = a.failed(c, errNoAuthorizer), errorText(errNoAuthorizer)
		response.Results = append(response.Results, out)
	}
	return response
}
