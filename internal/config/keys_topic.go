package config

// topicKeys are the configs of topics, in the order in which Kafka checks them.
var topicKeys = []Definition{
	key("segment.bytes", Int, "1073741824", atLeast(1048576), Medium,
		"Size in bytes at which the active segment is closed and a new one started. Whole segments are what "+
			"retention and compaction remove."),
	key("segment.ms", Long, "604800000", atLeast(1), Medium,
		"Age in ms at which the active segment is closed even when it is small, so that retention and "+
			"compaction can reach its records."),
	key("segment.jitter.ms", Long, "0", atLeast(0), Medium,
		"Up to this many ms, chosen at random for each segment, are taken off segment.ms, so that many "+
			"partitions do not roll at once."),
	key("segment.index.bytes", Int, "10485760", atLeast(4), Medium,
		"Size in bytes to which the index files of the active segment are preallocated; a full index closes "+
			"the segment. Cut to size when closed."),
	key("flush.messages", Long, "9223372036854775807", atLeast(1), Medium,
		"Force data to disk after this many records of a partition. Usually left to replication and the "+
			"operating system."),
	key("flush.ms", Long, "9223372036854775807", atLeast(0), Medium,
		"Force data to disk when the oldest unflushed record has waited this many ms; checked every "+
			"log.flush.scheduler.interval.ms of the broker."),
	key("retention.bytes", Long, "-1", nil, Medium,
		"With the delete policy: the oldest segments go while a partition holds more than this many bytes "+
			"without them. Per partition; -1 is no limit."),
	key("retention.ms", Long, "604800000", atLeast(-1), Medium,
		"With the delete policy: a segment goes when its newest record is older than this many ms. -1 is no "+
			"limit."),
	key("max.message.bytes", Int, "1048588", atLeast(0), Medium,
		"Largest record batch in bytes, as stored (compressed, with its header), that is accepted."),
	key("index.interval.bytes", Int, "4096", atLeast(0), Medium,
		"An entry is added to the offset index, and to the time index when the largest timestamp has grown, "+
			"after this many bytes of log. Smaller values make look-ups scan less and the indexes bigger."),
	key("delete.retention.ms", Long, "86400000", atLeast(0), Medium,
		"How long in ms compaction keeps a tombstone, so that a reader who started at the beginning still "+
			"sees the deletion."),
	key("min.compaction.lag.ms", Long, "0", atLeast(0), Medium,
		"Records younger than this many ms are not compacted."),
	key("max.compaction.lag.ms", Long, "9223372036854775807", atLeast(1), Medium,
		"A log with records that have waited this many ms is compacted whatever its dirty ratio."),
	key("file.delete.delay.ms", Long, "60000", atLeast(0), Medium,
		"How long in ms a removed segment stays on disk under the suffix .deleted."),
	key("min.cleanable.dirty.ratio", Double, "0.5", between(0, 1), Medium,
		"A log is compacted when at least this part of it was written since the last compaction. Smaller "+
			"values save space and cost more work."),
	key("cleanup.policy", List, "delete", list(listOptions{allowed: []string{"compact", "delete"}}), Medium,
		"What happens to old segments: delete removes them by age and size, compact keeps the last record of "+
			"each key; both or none may be given. With none everything is kept."),
	key("unclean.leader.election.enable", Boolean, "false", nil, Medium,
		"Whether a replica that is not in sync may lead when no other is left; records can be lost. false "+
			"waits for a safe one."),
	key("min.insync.replicas", Int, "1", atLeast(1), Medium,
		"A producer with acks=all is refused while fewer replicas than this, the leader included, are in "+
			"sync."),
	key("compression.type", String, "producer", compressionTypes, Medium,
		"Codec in which batches are stored: gzip, snappy, lz4, zstd, uncompressed, or producer to keep what "+
			"the producer chose."),
	key("compression.gzip.level", Int, "-1", gzipLevel, Medium,
		"Level used when the broker itself compresses with gzip: 1 (fast) to 9 (small), -1 for the codec's "+
			"default."),
	key("compression.lz4.level", Int, "9", between(1, 17), Medium,
		"Level used when the broker itself compresses with lz4: 1 to 17."),
	key("compression.zstd.level", Int, "3", between(-131072, 22), Medium,
		"Level used when the broker itself compresses with zstd: -131072 to 22."),
	key("preallocate", Boolean, "false", nil, Medium,
		"Whether a new segment file is given its full size at once."),
	key("message.timestamp.type", String, "CreateTime", oneOf("CreateTime", "LogAppendTime"), Medium,
		"CreateTime keeps the producer's timestamps, LogAppendTime replaces them with the broker's clock."),
	key("message.timestamp.before.max.ms", Long, "9223372036854775807", atLeast(0), Medium,
		"With CreateTime: a record whose timestamp is more than this many ms before the broker's clock is "+
			"refused."),
	key("message.timestamp.after.max.ms", Long, "3600000", atLeast(0), Medium,
		"With CreateTime: a record whose timestamp is more than this many ms after the broker's clock is "+
			"refused."),
	key("leader.replication.throttled.replicas", List, "", throttledReplicas, Medium,
		"Replicas whose replication is slowed down at the leader, as PARTITION:BROKER,…; * for all of the "+
			"topic."),
	key("follower.replication.throttled.replicas", List, "", throttledReplicas, Medium,
		"Replicas whose replication is slowed down at the follower, as PARTITION:BROKER,…; * for all of the "+
			"topic."),
	key("remote.storage.enable", Boolean, "false", nil, Medium,
		"Whether closed segments are copied to remote storage. Turning it off needs "+
			"remote.log.delete.on.disable=true."),
	key("local.retention.ms", Long, "-2", atLeast(-2), Medium,
		"With remote storage: how long in ms closed segments also stay on local disk. -2 means as long as "+
			"retention.ms."),
	key("local.retention.bytes", Long, "-2", atLeast(-2), Medium,
		"With remote storage: how many bytes of a partition also stay on local disk. -2 means as much as "+
			"retention.bytes."),
	key("remote.log.copy.disable", Boolean, "false", nil, Medium,
		"Stops copying to remote storage; what is there stays readable and is kept by retention.ms and "+
			"retention.bytes."),
	key("remote.log.delete.on.disable", Boolean, "false", nil, Medium,
		"Whether the remote data of a topic are deleted when its remote storage is turned off."),
	nullKey("internal.segment.bytes", Int, nil, Medium,
		"For tests: like segment.bytes, without a lower bound.").internal(),
}
