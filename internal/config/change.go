package config

import (
	"slices"
	"strings"
)

// ResourceType is the kind of thing that has configs; the numbers are Kafka's.
type ResourceType int8

// The kinds of resources.
const (
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	BrokerLoggerResource  ResourceType = 8
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

// String returns Kafka's name of the kind, UNKNOWN for one that does not exist.
func (t ResourceType) String() string {
	switch t {
	case TopicResource:
		return "TOPIC"
	case BrokerResource:
		return "BROKER"
	case BrokerLoggerResource:
		return "BROKER_LOGGER"
	case ClientMetricsResource:
		return "CLIENT_METRICS"
	case GroupResource:
		return "GROUP"
	default:
		return "UNKNOWN"
	}
}

// list returns the definition of a list key, nil when the key is none.
// Kafka: the controller knows no types of the keys of client metrics.
func (t ResourceType) list(name string) *Definition {
	var def *Definition
	switch t {
	case TopicResource:
		def = topicDefinitions.Lookup(name)
	case BrokerResource:
		def = brokerDefinitions.Lookup(name)
	}
	if def == nil || def.Type != List {
		return nil
	}
	return def
}

// Op is what an IncrementalAlterConfigs request does to one key; the numbers are Kafka's.
type Op int8

// The operations.
const (
	Set Op = iota
	Delete
	Append   // adds elements to a list, each once
	Subtract // removes elements from a list
)

// String returns Kafka's name of the operation.
func (o Op) String() string {
	names := [...]string{"SET", "DELETE", "APPEND", "SUBTRACT"}
	if o < 0 || int(o) >= len(names) {
		return "UNKNOWN"
	}
	return names[o]
}

// Change is one operation on one key. Value is ignored by Delete.
type Change struct {
	Name  string
	Op    Op
	Value string
}

// Apply returns what a change makes of one key of a resource with the configs current; present is false when the key
// is then without a value of its own. A list without one starts from its default.
// The error is an [*Error]: the key is no list, or the operation does not exist.
func Apply(t ResourceType, current map[string]string, c Change) (text string, present bool, err error) {
	text, present = current[c.Name]
	switch c.Op {
	case Set:
		return c.Value, true, nil
	case Delete:
		return "", false, nil
	case Append, Subtract:
		def := t.list(c.Name)
		if def == nil {
			return "", false, invalidConfig("Can't %s to key %s because its type is not LIST.", c.Op, c.Name)
		}
		if !present {
			text = def.Default
		}
		elements := slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
		return strings.Join(changeList(elements, c), ","), true, nil
	default:
		return "", false, invalidRequest("Unknown operations type %d", c.Op)
	}
}

func changeList(elements []string, c Change) []string {
	for _, e := range splitJava(c.Value) {
		i := slices.Index(elements, e)
		switch {
		case c.Op == Append && i < 0:
			elements = append(elements, e)
		case c.Op == Subtract && i >= 0:
			elements = slices.Delete(elements, i, i+1)
		}
	}
	return elements
}

// splitJava splits at commas and drops empty elements at the end, as String.split does; the empty text is one element.
func splitJava(text string) []string {
	if text == "" {
		return []string{""}
	}
	elements := strings.Split(text, ",")
	for len(elements) > 0 && elements[len(elements)-1] == "" {
		elements = elements[:len(elements)-1]
	}
	return elements
}

// applyToBroker applies a change as a broker does before it asks the controller; its texts differ from those of Apply.
func applyToBroker(props map[string]string, c Change) error {
	switch c.Op {
	case Set:
		props[c.Name] = c.Value
	case Delete:
		delete(props, c.Name)
	case Append, Subtract:
		def := brokerDefinitions.Lookup(c.Name)
		if def == nil {
			return invalidConfig("Unknown config name: %s", c.Name)
		}
		if def.Type != List {
			return invalidConfig("Config value %s is not allowed for config key: %s", strings.ToLower(c.Op.String()), c.Name)
		}
		text, ok := props[c.Name]
		if !ok {
			text = def.Default
		}
		elements := splitJava(text)
		if c.Op == Append && text == "" {
			elements = nil
		}
		props[c.Name] = strings.Join(changeList(elements, c), ",")
	default:
		return invalidRequest("Unknown operations type %d", c.Op)
	}
	return nil
}

// Resource is a thing that has configs. The BROKER named "" stands for all brokers.
type Resource struct {
	Type ResourceType
	Name string
}
