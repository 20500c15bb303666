// Package logdir owns the log directories of a node (log.dirs): it locks them, loads and recovers the partitions
// in them, creates and deletes partitions, runs the periodic work (flush, checkpoints, retention, scrub), and takes a
// directory offline when its disk fails; a disk that is just full stays online.
//
// Files it owns in each directory: .lock, .kafka_cleanshutdown, meta.properties and the recovery-point-,
// log-start- and replication-offset-checkpoint files. The folders of partitions belong to package commitlog, the
// folder of the metadata log to package quorum.
//
// Concurrency: a [Set] may be used by any number of goroutines. Its lock guards the map of partitions and the
// state of the directories; it is never held while a log is opened, flushed or closed. Lock order: Set before Log.
//
// Durability: checkpoint files are replaced atomically (write, sync, rename, sync folder). The clean marker is
// removed before the first log is opened and written again only after every log of the directory was flushed,
// closed and checkpointed without error.
//
// Source: Kafka 4.3.1 LogManager, CheckpointFile; KIP-112 (failed directories), KIP-858 (directory ids).
package logdir
