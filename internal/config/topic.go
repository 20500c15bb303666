package config

import (
	"maps"
	"slices"

	"tidemark/internal/commitlog"
	"tidemark/record"
)

const (
	msPerMinute = 60 * 1000
	msPerHour   = 60 * msPerMinute
)

// The times of the log that a broker may have in several units, in ms. The finest unit that is set counts.

func (n *Node) rollMs() int64 {
	if v := n.values["log.roll.ms"]; !v.null {
		return v.i
	}
	return n.long("log.roll.hours") * msPerHour
}

func (n *Node) jitterMs() int64 {
	if v := n.values["log.roll.jitter.ms"]; !v.null {
		return v.i
	}
	return n.long("log.roll.jitter.hours") * msPerHour
}

func (n *Node) flushMs() int64 {
	if v := n.values["log.flush.interval.ms"]; !v.null {
		return v.i
	}
	return n.long("log.flush.scheduler.interval.ms")
}

// retentionMs is -1 for every negative setting.
func (n *Node) retentionMs() int64 {
	ms := n.long("log.retention.hours") * msPerHour
	if v := n.values["log.retention.minutes"]; !v.null {
		ms = v.i * msPerMinute
	}
	if v := n.values["log.retention.ms"]; !v.null {
		ms = v.i
	}
	return max(ms, -1)
}

// logDefaults returns the values of topic keys that the broker decides; other topic keys have Kafka's defaults.
func (n *Node) logDefaults() map[string]value {
	values := make(map[string]value, topicDefinitions.Len())
	for _, def := range topicDefinitions.ordered {
		v, _ := def.value(nil) // defaults parse; a test holds it
		if synonym, ok := topicSynonyms[def.Name]; ok {
			v = n.values[synonym]
		}
		values[def.Name] = v
	}
	for name, ms := range map[string]int64{
		"segment.ms": n.rollMs(), "segment.jitter.ms": n.jitterMs(), "flush.ms": n.flushMs(),
		"retention.ms": n.retentionMs(),
	} {
		values[name] = value{typ: Long, i: ms}
	}
	return values
}

// topicValues returns the values of all topic keys under overrides. Unknown overrides are ignored. The defaults of the
// broker are checked like overrides, in the order of the definitions: the first bad value is the error.
func (n *Node) topicValues(overrides map[string]string) (map[string]value, error) {
	values := maps.Clone(n.topicDefaults)
	for _, def := range topicDefinitions.ordered {
		v := values[def.Name]
		if text, set := overrides[def.Name]; set {
			var err error
			if v, err = def.parse(text); err != nil {
				return nil, err
			}
			values[def.Name] = v
		}
		if def.check == nil {
			continue
		}
		if err := def.check(def.Name, v); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Topic returns the settings of the logs of a topic whose own configs are overrides; unknown ones are ignored.
// The error is an [*Error] that names the first bad value.
func (n *Node) Topic(overrides map[string]string) (commitlog.Config, error) {
	values, err := n.topicValues(overrides)
	if err != nil {
		return commitlog.Config{}, err
	}
	long := func(name string) int64 { return values[name].i }
	int32of := func(name string) int32 { return int32(values[name].i) }
	c := commitlog.Config{
		CleanupPolicy:               cleanupPolicy(values["cleanup.policy"].list),
		CompressionGzipLevel:        int(long("compression.gzip.level")),
		CompressionLz4Level:         int(long("compression.lz4.level")),
		CompressionType:             compressionType(values["compression.type"].s),
		CompressionZstdLevel:        int(long("compression.zstd.level")),
		DeleteRetentionMs:           long("delete.retention.ms"),
		FileDeleteDelayMs:           long("file.delete.delay.ms"),
		FlushMessages:               long("flush.messages"),
		FlushMs:                     long("flush.ms"),
		IndexIntervalBytes:          int32of("index.interval.bytes"),
		LocalRetentionBytes:         long("local.retention.bytes"),
		LocalRetentionMs:            long("local.retention.ms"),
		MaxCompactionLagMs:          long("max.compaction.lag.ms"),
		MaxMessageBytes:             int32of("max.message.bytes"),
		MessageTimestampAfterMaxMs:  long("message.timestamp.after.max.ms"),
		MessageTimestampBeforeMaxMs: long("message.timestamp.before.max.ms"),
		MessageTimestampType:        timestampType(values["message.timestamp.type"].s),
		MinCleanableDirtyRatio:      values["min.cleanable.dirty.ratio"].f,
		MinCompactionLagMs:          long("min.compaction.lag.ms"),
		MinInsyncReplicas:           int32of("min.insync.replicas"),
		Preallocate:                 values["preallocate"].b,
		RetentionBytes:              long("retention.bytes"),
		RetentionMs:                 long("retention.ms"),
		SegmentBytes:                int32of("segment.bytes"),
		SegmentIndexBytes:           int32of("segment.index.bytes"),
		SegmentJitterMs:             long("segment.jitter.ms"),
		SegmentMs:                   long("segment.ms"),
		UncleanLeaderElectionEnable: values["unclean.leader.election.enable"].b,
	}
	if v := values["internal.segment.bytes"]; !v.null {
		c.SegmentBytes = int32(v.i)
	}
	return c, nil
}

func cleanupPolicy(names []string) commitlog.CleanupPolicy {
	var p commitlog.CleanupPolicy
	if slices.Contains(names, "delete") {
		p |= commitlog.CleanupDelete
	}
	if slices.Contains(names, "compact") {
		p |= commitlog.CleanupCompact
	}
	return p
}

// compressionTypes is the check of compression.type.
var compressionTypes = oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

func compressionType(name string) commitlog.CompressionType {
	switch name {
	case "uncompressed":
		return commitlog.CompressionUncompressed
	case "gzip":
		return commitlog.CompressionGzip
	case "snappy":
		return commitlog.CompressionSnappy
	case "lz4":
		return commitlog.CompressionLZ4
	case "zstd":
		return commitlog.CompressionZstd
	default:
		return commitlog.CompressionProducer
	}
}

func timestampType(name string) record.TimestampType {
	if name == "LogAppendTime" {
		return record.LogAppendTime
	}
	return record.CreateTime
}
