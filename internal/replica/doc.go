// Package replica is a partition as clients and other brokers see it: a leader or a follower, with a leader epoch,
// a high watermark, a last stable offset and those who wait for them to move.
//
// The high watermark is the smallest log end offset of the in-sync replicas; on a partition with one replica it
// follows the log end at once. Consumers read below it (read_committed: below the last stable offset), followers
// read up to the log end and report by the offset they ask for how far they are.
//
// It owns one file of each log directory through package logdir: the high watermarks in
// replication-offset-checkpoint.
//
// Concurrency: a [Manager] and a [Partition] may be used by any number of goroutines. Lock order: Partition.mu
// (role and epochs), then Partition.hwMu (high watermark), then the log's own lock. Watchers are called with no
// lock held.
//
// Source: Kafka 4.3.1 Partition, ReplicaManager; KIP-101 (leader epochs), KIP-320 (fencing), KIP-392, KIP-595.
package replica
