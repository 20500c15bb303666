package api

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/metadata"
)

// ListConfigResources (74): what has configs, or can have them.
//
// v0: client metrics subscriptions (KIP-714). v1: all kinds (KIP-1142).

func (a *API) listConfigResources(c *call, request *kmsg.ListConfigResourcesRequest) kmsg.Response {
	response := answerTo[*kmsg.ListConfigResourcesResponse](request)
	kinds, err := resourceKinds(request)
	if !a.allowed(c, auth.DescribeConfigs, auth.Cluster) {
		err = kerr.ClusterAuthorizationFailed
	}
	if err != nil {
		response.ErrorCode = a.failed(c, err)
		return response
	}
	image := a.Metadata.Image()
	for _, kind := range []metadata.ResourceType{metadata.ResourceGroup, metadata.ResourceClientMetrics,
		metadata.ResourceBrokerLogger, metadata.ResourceBroker, metadata.ResourceTopic} {
		if !slices.Contains(kinds, int8(kind)) {
			continue
		}
		for _, name := range configured(image, kind) {
			response.ConfigResources = append(response.ConfigResources,
				kmsg.ListConfigResourcesResponseConfigResource{Name: name, Type: int8(kind)})
		}
	}
	return response
}

// resourceKinds are the kinds asked for, all that the version knows when none is named.
func resourceKinds(request *kmsg.ListConfigResourcesRequest) ([]int8, error) {
	known := []int8{int8(metadata.ResourceClientMetrics)}
	if request.Version >= 1 {
		known = append(known, int8(metadata.ResourceGroup), int8(metadata.ResourceBrokerLogger),
			int8(metadata.ResourceBroker), int8(metadata.ResourceTopic))
	}
	if len(request.ResourceTypes) == 0 {
		return known, nil
	}
	for _, kind := range request.ResourceTypes {
		if !slices.Contains(known, kind) {
			return nil, kerr.UnsupportedVersion
		}
	}
	return request.ResourceTypes, nil
}

// configured names the resources of a kind: brokers and topics that exist, others that have configs.
func configured(image *metadata.Image, kind metadata.ResourceType) (names []string) {
	switch kind {
	case metadata.ResourceBroker, metadata.ResourceBrokerLogger:
		for b := range image.Brokers() {
			if !b.Fenced {
				names = append(names, strconv.Itoa(int(b.ID)))
			}
		}
	case metadata.ResourceTopic:
		for t := range image.Topics() {
			names = append(names, t.Name)
		}
	default:
		for r, c := range image.ConfigResources() {
			if r.Type == kind && c.Len() > 0 {
				names = append(names, r.Name)
			}
		}
	}
	return names
}
