package config

// metricKeys configure metrics and the windows of quotas.
var metricKeys = []Definition{
	key("metrics.num.samples", Int, "2", atLeast(1), Low,
		"Samples over which a metric is computed."),
	key("metrics.sample.window.ms", Long, "30000", atLeast(1), Low,
		"Length in ms of a metric sample."),
	key("metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", anyList, Low,
		"Java classes that publish metrics."),
	key("metrics.recording.level", String, "INFO", nil, Low,
		"Finest level of metrics that are recorded: INFO, DEBUG, TRACE."),
	key("kafka.metrics.reporters", List, "", anyList, Low,
		"Java classes that publish the older kind of metrics."),
	key("kafka.metrics.polling.interval.secs", Int, "10", atLeast(1), Low,
		"Pause in s between readings by kafka.metrics.reporters."),
	key("telemetry.max.bytes", Int, "1048576", atLeast(1), Low,
		"Largest batch of client metrics in bytes that is accepted."),
	key("quota.window.num", Int, "11", atLeast(1), Low,
		"Number of time windows over which client quotas are measured."),
	key("replication.quota.window.num", Int, "11", atLeast(1), Low,
		"Number of time windows over which replication quotas are measured."),
	key("alter.log.dirs.replication.quota.window.num", Int, "11", atLeast(1), Low,
		"Number of time windows over which moves between log directories are measured."),
	key("controller.quota.window.num", Int, "11", atLeast(1), Low,
		"Number of time windows over which quotas of topic changes are measured."),
	key("quota.window.size.seconds", Int, "1", atLeast(1), Low,
		"Length in s of a time window of client quotas."),
	key("replication.quota.window.size.seconds", Int, "1", atLeast(1), Low,
		"Length in s of a time window of replication quotas."),
	key("alter.log.dirs.replication.quota.window.size.seconds", Int, "1", atLeast(1), Low,
		"Length in s of a time window of moves between log directories."),
	key("controller.quota.window.size.seconds", Int, "1", atLeast(1), Low,
		"Length in s of a time window of quotas of topic changes."),
	nullKey("client.quota.callback.class", Class, nil, Low,
		"Java class that decides the quotas of clients."),
}

// replicationQuotaKeys exist as dynamic configs only.
var replicationQuotaKeys = []Definition{
	key("leader.replication.throttled.rate", Long, "9223372036854775807", atLeast(0), Medium,
		"Limit in bytes per second of what leaders of this broker send to throttled replicas."),
	key("follower.replication.throttled.rate", Long, "9223372036854775807", atLeast(0), Medium,
		"Limit in bytes per second of what throttled followers of this broker receive."),
	key("replica.alter.log.dirs.io.max.bytes.per.second", Long, "9223372036854775807", atLeast(0), Medium,
		"Limit in bytes per second of moves between the log directories of this broker."),
}
