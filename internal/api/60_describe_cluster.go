package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
)

// DescribeCluster (60).
//
// v0: KIP-700. v1: endpoint type (KIP-919). v2: fenced brokers (KIP-1073).

// The kinds of endpoint that a client may ask for.
const (
	brokerEndpoints     = 1
	controllerEndpoints = 2
)

func (a *API) describeCluster(c *call, request *kmsg.DescribeClusterRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeClusterResponse](request)
	response.ControllerID, response.ClusterAuthorizedOperations = -1, notAsked
	response.EndpointType = brokerEndpoints
	if request.Version >= 1 && request.EndpointType != brokerEndpoints {
		refused, text := kerr.UnsupportedEndpointType, fmt.Sprintf("Unsupported endpoint type %d", request.EndpointType)
		if request.EndpointType == controllerEndpoints {
			refused = kerr.MismatchedEndpointType
			text = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
		}
		response.ErrorCode, response.ErrorMessage = a.failed(c, refused), &text
		return response
	}
	if request.IncludeClusterAuthorizedOperations {
		response.ClusterAuthorizedOperations = a.operations(c, clusterOperations, auth.Cluster)
	}
	response.ClusterID = a.ClusterID
	for b := range a.Metadata.Image().Brokers() {
		endpoint, ok := b.Endpoint(c.caller.Listener)
		if !ok || b.Fenced && !request.IncludeFencedBrokers {
			continue
		}
		out := kmsg.NewDescribeClusterResponseBroker()
		out.NodeID, out.Host, out.Port, out.Rack, out.IsFenced = b.ID, endpoint.Host, int32(endpoint.Port), b.Rack, b.Fenced
		response.Brokers = append(response.Brokers, out)
		if !b.Fenced {
			response.ControllerID = b.ID
		}
	}
	return response
}
