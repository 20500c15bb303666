// Package checkpoint reads and writes the small files of a log directory.
//
// Files owned: in a log directory recovery-point-offset-checkpoint,
// replication-offset-checkpoint, log-start-offset-checkpoint and
// cleaner-offset-checkpoint ([ReadOffsets]), meta.properties ([MetaProperties])
// and .kafka_cleanshutdown ([CleanShutdown]); in a partition's folder
// leader-epoch-checkpoint ([LeaderEpochs]) and partition.metadata
// ([ReadPartitionMetadata]).
//
// The checkpoint files are text: a line with the version, 0; a line with the
// number of entries; then one entry a line, fields parted by one blank:
//
//	0
//	2
//	orders 0 1500
//	orders 1 0
//
// A file of no bytes has no entries. Anything else that does not fit is a
// [MalformedError]: the log directory cannot be trusted and goes offline.
//
// Concurrency: [LeaderEpochs] has its own lock. The functions have none: one
// writer a file.
//
// Durability: every file is written as NAME.tmp, synced, renamed, and its folder
// synced; a reader sees the old or the new file, whole.
//
// Source: Kafka 4.3.1 CheckpointFile, OffsetCheckpointFile, LeaderEpochFileCache,
// PartitionMetadataFile, MetaProperties, CleanShutdownFileHandler; KIP-101
// (leader epochs), KIP-516 (topic ids), KIP-858 (directory ids), KIP-966 (broker
// epoch at a clean shutdown).
package checkpoint

// Names of the files, in a log directory unless said otherwise.
const (
	RecoveryPointFile     = "recovery-point-offset-checkpoint"
	HighWatermarkFile     = "replication-offset-checkpoint"
	LogStartOffsetFile    = "log-start-offset-checkpoint"
	CleanerOffsetFile     = "cleaner-offset-checkpoint"
	MetaPropertiesFile    = "meta.properties"
	CleanShutdownFile     = ".kafka_cleanshutdown"
	LeaderEpochFile       = "leader-epoch-checkpoint" // in a partition's folder
	PartitionMetadataFile = "partition.metadata"      // in a partition's folder
)
