// Package config knows every configuration key of Kafka 4.3.1: of topics, brokers, consumer groups and client metrics
// subscriptions. It reads server.properties, checks values with Kafka's own error texts, resolves what a topic or a
// broker really runs under, and produces the entries of a DescribeConfigs answer.
//
// It owns no file and no message. A [Node] is one broker's settings: the static ones it was started with, below the
// dynamic ones of the cluster and of the broker. A Node never changes; [Node.WithDynamic] returns another one.
// All functions may be called concurrently.
//
// Sources: Kafka 4.3.1 ConfigDef, LogConfig, KafkaConfig, DynamicBrokerConfig, GroupConfig, ClientMetricsConfigs,
// ConfigHelper; KIP-226 (dynamic broker configs), KIP-339 (incremental changes), KIP-569 (types and documentation).
package config
