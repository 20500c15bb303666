package api

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
)

// alteration is the change of one resource's configs, and what came of it.
type alteration struct {
	resource metadata.ConfigResource
	ops      []controller.ConfigOp
	err      error // nil: accepted so far
	done     bool  // by this broker alone
}

// accepted are those that go to the controller, in order.
func accepted(all []alteration) []alteration {
	var out []alteration
	for _, x := range all {
		if x.err == nil && !x.done {
			out = append(out, x)
		}
	}
	return out
}

// takeOutcomes gives the accepted ones what the controller said, in the same order; err refuses them all.
func takeOutcomes(all []alteration, result controller.AlterConfigsResult, err error) {
	next := 0
	for i := range all {
		switch {
		case all[i].err != nil || all[i].done:
		case err != nil:
			all[i].err = err
		default:
			if refused := result.Resources[next].Err; refused != nil {
				all[i].err = refused
			}
			next++
		}
	}
}

// checkAlterations is what the broker checks before the controller sees a change; those of loggers are done here.
// whole: the configs replace all that the resource had.
//
// Kafka: ConfigAdminManager.preprocess.
func (a *API) checkAlterations(c *call, all []alteration, whole, validateOnly bool) {
	times := map[metadata.ConfigResource]int{}
	for _, x := range all {
		times[x.resource]++
	}
	for i := range all {
		x := &all[i]
		if times[x.resource] > 1 {
			x.err = wireError(kerr.InvalidRequest, "Each resource must appear at most once.")
			continue
		}
		switch x.err = checkKeys(x.ops); {
		case x.err != nil:
		case x.resource.Type == metadata.ResourceBrokerLogger && !whole:
			x.err, x.done = a.alterLoggers(c, x, validateOnly), true
		default:
			x.err = a.checkAlteration(c, x, whole)
		}
	}
}

// checkKeys refuses keys that come twice and values that are null.
func checkKeys(ops []controller.ConfigOp) error {
	seen := map[string]bool{}
	var nulls []string
	for _, op := range ops {
		if seen[op.Key] {
			return wireError(kerr.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[op.Key] = true
		if op.Value == nil && op.Op != controller.OpDelete {
			nulls = append(nulls, op.Key)
		}
	}
	if len(nulls) > 0 {
		return wireError(kerr.InvalidRequest, "Null value not supported for : "+strings.Join(nulls, ", "))
	}
	return nil
}

// checkAlteration checks that the caller may, and that a broker can take on the changed values while it runs.
func (a *API) checkAlteration(c *call, x *alteration, whole bool) error {
	switch r := x.resource; {
	case r.Type == metadata.ResourceBroker:
		return a.checkBrokerAlteration(c, x, whole)
	case r.Type == metadata.ResourceTopic && !a.allowed(c, auth.AlterConfigs, auth.Topic(r.Name)):
		return kerr.TopicAuthorizationFailed
	case r.Type == metadata.ResourceTopic:
	case r.Type != metadata.ResourceGroup && r.Type != metadata.ResourceClientMetrics:
		return wireError(kerr.InvalidRequest, fmt.Sprintf("Unknown resource type %d", r.Type))
	case !a.allowed(c, auth.AlterConfigs, auth.Cluster):
		return kerr.ClusterAuthorizationFailed
	}
	for _, op := range x.ops {
		if op.Op < controller.OpSet || op.Op > controller.OpSubtract {
			return kerr.UnknownServerError // Kafka: a null operation, which its controller trips over
		}
	}
	return nil
}

func (a *API) checkBrokerAlteration(c *call, x *alteration, whole bool) error {
	perBroker := x.resource.Name != ""
	if perBroker {
		const unexpected = "Unexpected broker id, expected %d, but received %s"
		if err := a.checkOwnID(x.resource.Name, "Node", unexpected); err != nil {
			return err
		}
	}
	if !a.allowed(c, auth.AlterConfigs, auth.Cluster) {
		return kerr.ClusterAuthorizationFailed
	}
	if whole {
		values := map[string]string{}
		for _, op := range x.ops {
			values[op.Key] = *op.Value
		}
		return a.Node().CheckBrokerConfigs(perBroker, values)
	}
	changes := make([]config.Change, len(x.ops))
	for i, op := range x.ops {
		changes[i] = config.Change{Name: op.Key, Op: config.Op(op.Op)}
		if op.Value != nil {
			changes[i].Value = *op.Value
		}
	}
	return a.Node().CheckBrokerChanges(perBroker, a.Metadata.Image().Config(x.resource).Map(), changes)
}
