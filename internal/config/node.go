package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Node is the settings of one broker. It never changes.
type Node struct {
	static         map[string]string // as given, with node.id and broker.id filled in from each other
	dynamicDefault map[string]string // of the cluster
	dynamicBroker  map[string]string // of this broker
	effective      map[string]string // all three merged
	values         map[string]value  // of every defined key, defaults included
	topicDefaults  map[string]value  // what topics without overrides get
	broker         *Broker
}

// NewNode checks the static settings of a broker, as read from server.properties. Unknown keys are allowed, see
// [Node.Unknown]. The error is an [*Error] that names the first bad key.
func NewNode(static map[string]string) (*Node, error) {
	n := &Node{static: fillNodeID(static)}
	n.effective = n.static
	if err := n.resolve(); err != nil {
		return nil, err
	}
	return n, nil
}

// fillNodeID copies props; the old and the new name of the node's number stand for each other.
func fillNodeID(props map[string]string) map[string]string {
	filled := maps.Clone(props)
	if filled == nil {
		filled = make(map[string]string)
	}
	nodeID, hasNode := filled["node.id"]
	brokerID, hasBroker := filled["broker.id"]
	switch {
	case hasNode && !hasBroker:
		filled["broker.id"] = nodeID
	case hasBroker && !hasNode:
		filled["node.id"] = brokerID
	}
	return filled
}

// resolve parses n.effective and derives the rest of n from it.
func (n *Node) resolve() error {
	var err error
	if n.values, err = parseAll(brokerDefinitions, n.effective); err != nil {
		return err
	}
	own, err := parseAll(ownDefinitions, n.effective)
	if err != nil {
		return err
	}
	maps.Copy(n.values, own)
	if n.broker, err = newBroker(n); err != nil {
		return err
	}
	if err = n.checkRules(); err != nil {
		return err
	}
	n.topicDefaults = n.logDefaults()
	return nil
}

// parseAll returns the value of every definition, from props or by default. The first bad one is the error.
func parseAll(d *Definitions, props map[string]string) (map[string]value, error) {
	values := make(map[string]value, d.Len())
	for _, def := range d.ordered {
		v, err := def.value(props)
		if err != nil {
			return nil, err
		}
		values[def.Name] = v
	}
	return values, nil
}

func (d *Definition) value(props map[string]string) (value, error) {
	text, set := props[d.Name]
	if !set {
		switch {
		case d.Required:
			return value{}, invalidConfig("Missing required configuration %q which has no default value.", d.Name)
		case d.Null:
			return value{typ: d.Type, null: true}, nil
		}
		text = d.Default
	}
	v, err := d.parse(text)
	if err == nil && d.check != nil && set {
		err = d.check(d.Name, v)
	}
	return v, err
}

// Unknown returns the static keys that neither Kafka nor Tidemark knows, sorted. Keys with the prefix of a listener and
// the settings of plugins are known.
func (n *Node) Unknown() []string {
	var unknown []string
	for name := range n.static {
		if brokerDefinition(name) == nil && !n.isPluginKey(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

func (n *Node) isPluginKey(name string) bool {
	return strings.HasPrefix(name, "config.providers.") ||
		strings.HasPrefix(name, n.values["remote.log.storage.manager.impl.prefix"].s) ||
		strings.HasPrefix(name, n.values["remote.log.metadata.manager.impl.prefix"].s)
}

// WithDynamic returns n with other dynamic configs in place of its own: clusterDefault of the BROKER resource "",
// broker of the one named as this node. What cannot be used is left out and returned as errors, for the log;
// when the whole does not fit together, the settings stay those of n.
func (n *Node) WithDynamic(clusterDefault, broker map[string]string) (*Node, []error) {
	next := *n
	var refused, more []error
	next.dynamicDefault, refused = usable(clusterDefault, false)
	next.dynamicBroker, more = usable(broker, true)
	refused = append(refused, more...)
	next.effective = override(override(n.static, next.dynamicDefault), next.dynamicBroker)
	if err := next.resolve(); err != nil {
		refused = append(refused, fmt.Errorf("apply dynamic broker configs: %w", err))
		kept := *n
		kept.dynamicDefault, kept.dynamicBroker = next.dynamicDefault, next.dynamicBroker
		return &kept, refused
	}
	return &next, refused
}

// override returns base with the values of over. A unit of time in over replaces all other units of the same time.
func override(base, over map[string]string) map[string]string {
	merged := maps.Clone(base)
	for name, v := range over {
		for _, same := range unitSynonyms(name) {
			delete(merged, same)
		}
		merged[name] = v
	}
	return merged
}

// usable returns the dynamic configs that a broker applies, and why it does not apply the others.
func usable(props map[string]string, perBroker bool) (map[string]string, []error) {
	used := make(map[string]string, len(props))
	var refused []error
	for _, name := range slices.Sorted(maps.Keys(props)) {
		one := map[string]string{name: props[name]}
		if err := checkDynamic(one, perBroker); err != nil {
			refused = append(refused, fmt.Errorf("dynamic broker config %s ignored: %w", name, err))
			continue
		}
		used[name] = props[name]
	}
	return used, refused
}
