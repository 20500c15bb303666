package commitlog

import (
	"math"

	"tidemark/record"
)

// CleanupPolicy is the value of cleanup.policy: a set of [CleanupDelete] and [CleanupCompact], possibly empty.
type CleanupPolicy uint8

// The members of a [CleanupPolicy].
const (
	CleanupDelete CleanupPolicy = 1 << iota
	CleanupCompact
)

// Delete reports whether old segments go by time and size.
func (p CleanupPolicy) Delete() bool { return p&CleanupDelete != 0 }

// Compact reports whether only the last record of each key is kept.
func (p CleanupPolicy) Compact() bool { return p&CleanupCompact != 0 }

// CompressionType is the value of compression.type: the codec in which the leader stores batches.
type CompressionType int8

// The values of compression.type.
const (
	CompressionProducer     CompressionType = -1 // as the producer sent them
	CompressionUncompressed CompressionType = CompressionType(record.None)
	CompressionGzip         CompressionType = CompressionType(record.Gzip)
	CompressionSnappy       CompressionType = CompressionType(record.Snappy)
	CompressionLZ4          CompressionType = CompressionType(record.LZ4)
	CompressionZstd         CompressionType = CompressionType(record.Zstd)
)

// Config holds the topic configs that a log obeys, resolved: topic override, broker default or built-in default.
// The field names are Kafka's keys in camel case. Times are milliseconds, sizes bytes, as the keys say.
type Config struct {
	CleanupPolicy          CleanupPolicy
	CompressionGzipLevel   int // -1 or 1…9
	CompressionLz4Level    int // 1…17
	CompressionType        CompressionType
	CompressionZstdLevel   int
	DeleteRetentionMs      int64
	FileDeleteDelayMs      int64
	FlushMessages          int64
	FlushMs                int64
	IndexIntervalBytes     int32
	LocalRetentionBytes    int64
	LocalRetentionMs       int64
	MaxCompactionLagMs     int64
	MaxMessageBytes        int32
	MessageTimestampType   record.TimestampType
	MinCleanableDirtyRatio float64
	MinCompactionLagMs     int64
	MinInsyncReplicas      int32
	Preallocate            bool
	RetentionBytes         int64 // -1: no limit
	RetentionMs            int64 // -1: no limit
	SegmentBytes           int32
	SegmentIndexBytes      int32
	SegmentJitterMs        int64
	SegmentMs              int64

	// A record whose timestamp lies more than this before or after the clock is refused (CreateTime topics).
	MessageTimestampAfterMaxMs  int64
	MessageTimestampBeforeMaxMs int64

	UncleanLeaderElectionEnable bool
}

// DefaultConfig returns Kafka 4.3.1's defaults of the topic configs.
func DefaultConfig() Config {
	return Config{
		CleanupPolicy:               CleanupDelete,
		CompressionGzipLevel:        -1,
		CompressionLz4Level:         9,
		CompressionType:             CompressionProducer,
		CompressionZstdLevel:        3,
		DeleteRetentionMs:           86400000,
		FileDeleteDelayMs:           60000,
		FlushMessages:               math.MaxInt64,
		FlushMs:                     math.MaxInt64,
		IndexIntervalBytes:          4096,
		LocalRetentionBytes:         -2,
		LocalRetentionMs:            -2,
		MaxCompactionLagMs:          math.MaxInt64,
		MaxMessageBytes:             1048588,
		MessageTimestampAfterMaxMs:  3600000,
		MessageTimestampBeforeMaxMs: math.MaxInt64,
		MessageTimestampType:        record.CreateTime,
		MinCleanableDirtyRatio:      0.5,
		MinInsyncReplicas:           1,
		RetentionBytes:              -1,
		RetentionMs:                 604800000,
		SegmentBytes:                1073741824,
		SegmentIndexBytes:           10485760,
		SegmentMs:                   604800000,
	}
}

// maxSegmentMs is the age in record time at which a segment is rolled.
func (c *Config) maxSegmentMs() int64 {
	if c.CleanupPolicy.Compact() {
		return min(c.SegmentMs, c.MaxCompactionLagMs)
	}
	return c.SegmentMs
}

// targetCodec is the codec in which a batch that came in source is stored.
func (c *Config) targetCodec(source record.Codec) record.Codec {
	if c.CompressionType == CompressionProducer {
		return source
	}
	return record.Codec(c.CompressionType)
}

// compressionLevel is the level to use when the broker itself compresses with a codec; 0 where it has none.
func (c *Config) compressionLevel(codec record.Codec) int {
	switch codec {
	case record.Gzip:
		return c.CompressionGzipLevel
	case record.LZ4:
		return c.CompressionLz4Level
	case record.Zstd:
		return c.CompressionZstdLevel
	default:
		return 0
	}
}
