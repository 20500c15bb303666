package config

import (
	"slices"
	"strings"
)

// AuthorizerKey names the class that decides who may do what.
const AuthorizerKey = "authorizer.class.name"

// unbuiltKeys and unbuiltPrefixes are the keys of what is not built, though Kafka does what they say.
var (
	unbuiltKeys = []string{
		AuthorizerKey, "alter.config.policy.class.name", "client.quota.callback.class", "connections.max.reauth.ms",
		"create.topic.policy.class.name", "kafka.metrics.reporters", "metric.reporters", "principal.builder.class",
		"replica.selector.class", "security.providers",
	}
	unbuiltPrefixes = []string{"delegation.token.", "remote.", "sasl.", "ssl."}
)

// WithoutEffect returns the static keys, sorted, that ask for something that is not built: those that are set to
// something else than Kafka's default.
func (n *Node) WithoutEffect() []string {
	var names []string
	for name, text := range n.static {
		base := name
		if of, ok := listenerBase(name); ok {
			base = of
		}
		unbuilt := slices.Contains(unbuiltKeys, base) ||
			slices.ContainsFunc(unbuiltPrefixes, func(p string) bool { return strings.HasPrefix(base, p) })
		def := brokerDefinition(name)
		if unbuilt && def != nil && (def.Null || strings.TrimSpace(text) != def.Default) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
