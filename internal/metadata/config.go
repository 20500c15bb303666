package metadata

import (
	"cmp"
	"iter"
	"strings"
)

// ResourceType says what a configuration is for.
type ResourceType int8

// Resource types of configurations.
const (
	ResourceUnknown       ResourceType = 0
	ResourceTopic         ResourceType = 2
	ResourceBroker        ResourceType = 4 // name = id, or "" for all brokers
	ResourceBrokerLogger  ResourceType = 8 // never stored
	ResourceClientMetrics ResourceType = 16
	ResourceGroup         ResourceType = 32
)

// String is Kafka's name of the type.
func (t ResourceType) String() string {
	switch t {
	case ResourceTopic:
		return "TOPIC"
	case ResourceBroker:
		return "BROKER"
	case ResourceBrokerLogger:
		return "BROKER_LOGGER"
	case ResourceClientMetrics:
		return "CLIENT_METRICS"
	case ResourceGroup:
		return "GROUP"
	default:
		return "UNKNOWN"
	}
}

// ConfigResource names what a configuration is for.
type ConfigResource struct {
	Type ResourceType
	Name string
}

// Compare orders resources by type and name.
func (r ConfigResource) Compare(o ConfigResource) int {
	return cmp.Or(cmp.Compare(r.Type, o.Type), strings.Compare(r.Name, o.Name))
}

// TopicConfigs is the resource of a topic's configuration.
func TopicConfigs(topic string) ConfigResource { return ConfigResource{ResourceTopic, topic} }

// ClusterConfigs is the resource of the configuration that all brokers share.
var ClusterConfigs = ConfigResource{Type: ResourceBroker}

// Config is what is stored for one resource, without any default; read only.
// The zero value is empty.
type Config struct {
	entries tree[string, string]
}

// Get returns the value of a key.
func (c Config) Get(key string) (string, bool) { return c.entries.get(key) }

// Len is the number of keys.
func (c Config) Len() int { return c.entries.len() }

// All yields keys and values, by key.
func (c Config) All() iter.Seq2[string, string] { return c.entries.all() }

// Map returns a copy, never nil.
func (c Config) Map() map[string]string {
	m := make(map[string]string, c.Len())
	for k, v := range c.All() {
		m[k] = v
	}
	return m
}

func (c Config) with(key string, value *string) Config {
	if c.entries.compare == nil {
		c.entries = newTree[string, string](strings.Compare)
	}
	if value == nil {
		c.entries = c.entries.delete(key)
	} else {
		c.entries = c.entries.set(key, *value)
	}
	return c
}
