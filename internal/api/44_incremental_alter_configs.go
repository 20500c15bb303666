package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// IncrementalAlterConfigs (44).
//
// v0: KIP-339. v1: flexible.

func (a *API) incrementalAlterConfigs(c *call, request *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	response := answerTo[*kmsg.IncrementalAlterConfigsResponse](request)
	add := func(r metadata.ConfigResource, err error) {
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
		if err != nil {
			out.ErrorCode, out.ErrorMessage = a.failed(c, err), errorText(err)
		}
		response.Resources = append(response.Resources, out)
	}
	alter := controller.IncrementalAlterConfigs{ValidateOnly: request.ValidateOnly}
	for _, r := range request.Resources {
		resource := metadata.ConfigResource{Type: metadata.ResourceType(r.ResourceType), Name: r.ResourceName}
		change, err := alterResource(resource, r.Configs)
		if err == nil {
			err = a.checkAlter(c, resource, incrementalChanges(change))
		}
		if err != nil {
			add(resource, err)
			continue
		}
		alter.Resources = append(alter.Resources, change)
	}
	result, err := quorum.Ask[controller.AlterConfigsResult](c.ctx, a.Metadata, alter,
		c.caller.Principal)
	if err != nil {
		for _, r := range alter.Resources {
			add(r.Resource, err)
		}
		return response
	}
	for _, r := range result.Resources {
		add(r.Resource, asError(r.Err))
	}
	return response
}

// alterResource is the controller's form of the changes of one resource; a key may be changed once.
func alterResource(r metadata.ConfigResource, configs []kmsg.IncrementalAlterConfigsRequestResourceConfig,
) (controller.AlterResource, error) {
	out := controller.AlterResource{Resource: r}
	seen := map[string]bool{}
	for _, entry := range configs {
		if seen[entry.Name] {
			return out, wireError(kerr.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[entry.Name] = true
		out.Ops = append(out.Ops, controller.ConfigOp{Key: entry.Name, Op: controller.OpType(entry.Op),
			Value: entry.Value})
	}
	return out, nil
}

// asError keeps a nil *controller.Error from becoming an error that is not nil.
func asError(err *controller.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// checkAlter is what the broker checks before the controller sees a change: that the caller may, and that a broker
// can take on the changed values while it runs.
func (a *API) checkAlter(c *call, r metadata.ConfigResource, changes []config.Change) error {
	switch r.Type {
	case metadata.ResourceTopic:
		if !a.allowed(c, auth.AlterConfigs, auth.Topic(r.Name)) {
			return kerr.TopicAuthorizationFailed
		}
		return nil
	case metadata.ResourceBroker, metadata.ResourceGroup, metadata.ResourceClientMetrics:
	default:
		return wireError(kerr.InvalidRequest, fmt.Sprintf("Unexpected resource type %d", r.Type))
	}
	if !a.allowed(c, auth.AlterConfigs, auth.Cluster) {
		return kerr.ClusterAuthorizationFailed
	}
	if r.Type != metadata.ResourceBroker {
		return nil
	}
	if r.Name != "" {
		if err := a.checkOwnID(r.Name); err != nil {
			return err
		}
	}
	current := a.Metadata.Image().Config(r).Map()
	return a.Node().CheckBrokerChanges(r.Name != "", current, changes)
}

func incrementalChanges(r controller.AlterResource) []config.Change {
	changes := make([]config.Change, len(r.Ops))
	for i, op := range r.Ops {
		changes[i] = config.Change{Name: op.Key, Op: config.Op(op.Op)}
		if op.Value != nil {
			changes[i].Value = *op.Value
		}
	}
	return changes
}

func replacementChanges(r controller.ReplaceConfigs) []config.Change {
	changes := make([]config.Change, 0, len(r.Configs))
	for _, entry := range r.Configs {
		if entry.Value != nil {
			changes = append(changes, config.Change{Name: entry.Key, Op: config.Set, Value: *entry.Value})
		}
	}
	return changes
}
