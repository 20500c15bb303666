package config

import "slices"

var (
	topicDefinitions  = define(topicKeys)
	brokerDefinitions = markDynamic(define(remoteKeys, serverKeys, nodeKeys, socketKeys, replicationKeys, coordinatorKeys,
		cleanerKeys, logKeys, shareKeys, transactionKeys, quorumKeys, metricKeys, sslKeys, saslKeys, oauthKeys, tokenKeys))
	dynamicBrokerDefinitions = define(replicationQuotaKeys, dynamicKeys(brokerDefinitions))
	groupDefinitions         = define(groupKeys)
	clientMetricsDefinitions = define(clientMetricsKeys)
	ownDefinitions           = define(ownKeys)
)

// Topics returns the definitions of topic configs.
func Topics() *Definitions { return topicDefinitions }

// Brokers returns the definitions of Kafka's broker configs that server.properties may hold.
func Brokers() *Definitions { return brokerDefinitions }

// Groups returns the definitions of group configs.
func Groups() *Definitions { return groupDefinitions }

// ClientMetrics returns the definitions of the configs of client metrics subscriptions.
func ClientMetrics() *Definitions { return clientMetricsDefinitions }

// Own returns the definitions of Tidemark's own keys, all read-only.
func Own() *Definitions { return ownDefinitions }

// perBrokerKeys and clusterWideKeys are the broker keys that can be changed while the broker runs.
var perBrokerKeys = []string{
	"cordoned.log.dirs", "listener.security.protocol.map", "listeners", "principal.builder.class",
	"sasl.enabled.mechanisms", "sasl.jaas.config", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
	"sasl.kerberos.principal.to.local.rules", "sasl.kerberos.service.name", "sasl.kerberos.ticket.renew.jitter",
	"sasl.kerberos.ticket.renew.window.factor", "sasl.login.refresh.buffer.seconds",
	"sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
	"sasl.mechanism.inter.broker.protocol", "ssl.cipher.suites", "ssl.client.auth", "ssl.enabled.protocols",
	"ssl.endpoint.identification.algorithm", "ssl.engine.factory.class", "ssl.key.password",
	"ssl.keymanager.algorithm", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
	"ssl.keystore.password", "ssl.keystore.type", "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation",
	"ssl.trustmanager.algorithm", "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
	"ssl.truststore.type",
}

var clusterWideKeys = []string{
	"background.threads", "compression.gzip.level", "compression.lz4.level", "compression.type",
	"compression.zstd.level", "config.providers", "follower.fetch.last.tiered.offset.enable",
	"group.consumer.assignment.interval.ms", "group.coordinator.cached.buffer.max.bytes",
	"group.share.assignment.interval.ms", "group.streams.assignment.interval.ms", "log.cleaner.backoff.ms",
	"log.cleaner.dedupe.buffer.size", "log.cleaner.delete.retention.ms", "log.cleaner.io.buffer.load.factor",
	"log.cleaner.io.buffer.size", "log.cleaner.io.max.bytes.per.second", "log.cleaner.max.compaction.lag.ms",
	"log.cleaner.min.cleanable.ratio", "log.cleaner.min.compaction.lag.ms", "log.cleaner.threads",
	"log.cleanup.policy", "log.flush.interval.messages", "log.flush.interval.ms", "log.index.interval.bytes",
	"log.index.size.max.bytes", "log.local.retention.bytes", "log.local.retention.ms",
	"log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms", "log.message.timestamp.type",
	"log.preallocate", "log.retention.bytes", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms",
	"log.segment.bytes", "log.segment.delete.delay.ms", "max.connection.creation.rate", "max.connections",
	"max.connections.per.ip", "max.connections.per.ip.overrides", "message.max.bytes", "metric.reporters",
	"min.insync.replicas", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
	"num.replica.fetchers", "producer.id.expiration.ms", "remote.fetch.max.wait.ms",
	"remote.list.offsets.request.timeout.ms", "remote.log.index.file.cache.total.size.bytes",
	"remote.log.manager.copier.thread.pool.size", "remote.log.manager.copy.max.bytes.per.second",
	"remote.log.manager.expiration.thread.pool.size", "remote.log.manager.fetch.max.bytes.per.second",
	"remote.log.manager.follower.thread.pool.size", "remote.log.reader.threads",
	"share.coordinator.cached.buffer.max.bytes", "transaction.partition.verification.enable",
	"unclean.leader.election.enable",
}

// listenerSecurityKeys can be changed only with the prefix of a listener.
var listenerSecurityKeys = []string{
	"ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
	"ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location",
	"ssl.truststore.password", "ssl.truststore.type",
}

// clusterWideListenerKeys may be set as the default of all brokers even with the prefix of a listener.
var clusterWideListenerKeys = []string{"max.connection.creation.rate", "max.connections", "num.network.threads"}

// listenerMechanismKeys may follow the prefix of a listener and of a SASL mechanism.
var listenerMechanismKeys = []string{
	"connections.max.reauth.ms", "sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
	"sasl.server.callback.handler.class",
}

func markDynamic(d *Definitions) *Definitions {
	for _, name := range perBrokerKeys {
		d.byName[name].Update = PerBroker
	}
	for _, name := range clusterWideKeys {
		d.byName[name].Update = ClusterWide
	}
	return d
}

func dynamicKeys(d *Definitions) []Definition {
	var dynamic []Definition
	for _, def := range d.ordered {
		if def.Update != ReadOnly {
			dynamic = append(dynamic, *def)
		}
	}
	return dynamic
}

// topicSynonyms gives for a topic key the broker key that is its default. Times that a broker can have in several units
// are under their ms key.
var topicSynonyms = map[string]string{
	"cleanup.policy":                  "log.cleanup.policy",
	"compression.gzip.level":          "compression.gzip.level",
	"compression.lz4.level":           "compression.lz4.level",
	"compression.type":                "compression.type",
	"compression.zstd.level":          "compression.zstd.level",
	"delete.retention.ms":             "log.cleaner.delete.retention.ms",
	"file.delete.delay.ms":            "log.segment.delete.delay.ms",
	"flush.messages":                  "log.flush.interval.messages",
	"flush.ms":                        "log.flush.interval.ms",
	"index.interval.bytes":            "log.index.interval.bytes",
	"local.retention.bytes":           "log.local.retention.bytes",
	"local.retention.ms":              "log.local.retention.ms",
	"max.compaction.lag.ms":           "log.cleaner.max.compaction.lag.ms",
	"max.message.bytes":               "message.max.bytes",
	"message.timestamp.after.max.ms":  "log.message.timestamp.after.max.ms",
	"message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
	"message.timestamp.type":          "log.message.timestamp.type",
	"min.cleanable.dirty.ratio":       "log.cleaner.min.cleanable.ratio",
	"min.compaction.lag.ms":           "log.cleaner.min.compaction.lag.ms",
	"min.insync.replicas":             "min.insync.replicas",
	"preallocate":                     "log.preallocate",
	"retention.bytes":                 "log.retention.bytes",
	"retention.ms":                    "log.retention.ms",
	"segment.bytes":                   "log.segment.bytes",
	"segment.index.bytes":             "log.index.size.max.bytes",
	"segment.jitter.ms":               "log.roll.jitter.ms",
	"segment.ms":                      "log.roll.ms",
	"unclean.leader.election.enable":  "unclean.leader.election.enable",
}

// IsTopicDefault reports whether a broker key, in whichever unit, is the default of a topic key.
func IsTopicDefault(name string) bool {
	for _, broker := range topicSynonyms {
		if name == broker || slices.Contains(unitSynonyms(broker), name) {
			return true
		}
	}
	return false
}

// groupsWithoutBroker are the group keys that no broker key is the default of.
var groupsWithoutBroker = []string{"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}

// groupSynonym returns the broker key that is the default of a group key, "" when there is none.
func groupSynonym(name string) string {
	if slices.Contains(groupsWithoutBroker, name) {
		return ""
	}
	return "group." + name
}
