package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/protocol"
)

// ApiVersions (18).
//
// v1: throttle time. v3: flexible, client software name and version (KIP-511), features (KIP-584). v4: features
// with minimum 0. A version that is not known is answered by the server, in the form of v0.

func (a *API) apiVersions(c *call, request *kmsg.ApiVersionsRequest) kmsg.Response {
	response := a.table.ApiVersions(request.Version, a.Features())
	if request.Version < 3 {
		return response
	}
	if !protocol.ValidSoftware(request.ClientSoftwareName) || !protocol.ValidSoftware(request.ClientSoftwareVersion) {
		refused := answerTo[*kmsg.ApiVersionsResponse](request)
		refused.ErrorCode = a.failed(c, kerr.InvalidRequest)
		return refused
	}
	c.request.Conn.SetSoftware(protocol.Software{Name: request.ClientSoftwareName,
		Version: request.ClientSoftwareVersion})
	return response
}
