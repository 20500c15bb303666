package config

// groupKeys are the configs of consumer, share and streams groups.
var groupKeys = []Definition{
	key("consumer.session.timeout.ms", Int, "45000", atLeast(1), Medium,
		"A member of the group without a heartbeat for this many ms is removed (consumer groups)."),
	key("consumer.heartbeat.interval.ms", Int, "5000", atLeast(1), Medium,
		"Pause in ms between heartbeats that members are told (consumer groups)."),
	key("consumer.assignment.interval.ms", Int, "1000", atLeast(0), Medium,
		"Least time in ms between two assignments (consumer groups)."),
	key("share.session.timeout.ms", Int, "45000", atLeast(1), Medium,
		"A member of the group without a heartbeat for this many ms is removed (share groups)."),
	key("share.heartbeat.interval.ms", Int, "5000", atLeast(1), Medium,
		"Pause in ms between heartbeats that members are told (share groups)."),
	key("share.record.lock.duration.ms", Int, "30000", atLeast(1000), Medium,
		"How long in ms a member holds a record (share groups)."),
	key("share.delivery.count.limit", Int, "5", atLeast(2), Medium,
		"How often a record may be handed out (share groups)."),
	key("share.partition.max.record.locks", Int, "2000", atLeast(100), Medium,
		"Records of a partition that may be held at once (share groups)."),
	key("share.auto.offset.reset", String, "latest", offsetReset, Medium,
		"Where a group without a start offset begins: earliest, latest, or by_duration: and an ISO-8601 "+
			"duration before now (share groups)."),
	key("share.isolation.level", String, "read_uncommitted", oneOf("read_committed", "read_uncommitted"), Medium,
		"Whether records of open and aborted transactions are handed out: read_uncommitted or read_committed "+
			"(share groups)."),
	key("share.renew.acknowledge.enable", Boolean, "true", nil, Medium,
		"Whether a member may prolong its hold of a record (share groups)."),
	key("share.assignment.interval.ms", Int, "1000", atLeast(0), Medium,
		"Least time in ms between two assignments (share groups)."),
	key("streams.session.timeout.ms", Int, "45000", atLeast(1), Medium,
		"A member of the group without a heartbeat for this many ms is removed (streams groups)."),
	key("streams.heartbeat.interval.ms", Int, "5000", atLeast(1), Medium,
		"Pause in ms between heartbeats that members are told (streams groups)."),
	key("streams.num.standby.replicas", Int, "0", atLeast(0), Medium,
		"Standby replicas of each stateful task (streams groups)."),
	key("streams.initial.rebalance.delay.ms", Int, "3000", atLeast(0), Medium,
		"How long in ms a new group waits for more members before its first assignment (streams groups)."),
	key("streams.assignment.interval.ms", Int, "1000", atLeast(0), Medium,
		"Least time in ms between two assignments (streams groups)."),
}

// clientMetricsKeys are the configs of client metrics subscriptions.
var clientMetricsKeys = []Definition{
	key("metrics", List, "", anyList, Medium,
		"Prefixes of the metric names that clients send; * for all."),
	key("interval.ms", Int, "300000", nil, Medium,
		"Pause in ms between two pushes of a client, 100 to 3600000."),
	key("match", List, "", anyList, Medium,
		"Which clients the subscription is for, as SELECTOR=PATTERN,…; all that are given must fit."),
}
