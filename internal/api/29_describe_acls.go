package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeAcls (29): there is no authorizer, and so there are no ACLs. Those that a metadata log holds stay there.
//
// v1: kinds of patterns (KIP-290). v2: flexible. v3: user principals of delegation tokens (KIP-373).

func (a *API) describeACLs(c *call, request *kmsg.DescribeACLsRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeACLsResponse](request)
	err := wireError(kerr.SecurityDisabled, "No Authorizer is configured on the broker")
	response.ErrorCode, response.ErrorMessage = a.failed(c, err), errorText(err)
	return response
}
