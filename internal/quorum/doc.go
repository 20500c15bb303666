// Package quorum owns the metadata log of the cluster, `__cluster_metadata-0`,
// and is the one door through which the cluster changes.
//
// Files, all in the folder of the metadata log unless said otherwise:
//
//	NNN.log, .index, …         the log itself, through package commitlog
//	OOO-EEE.checkpoint         snapshots: the image of all records below offset
//	                           OOO (20 digits), the last of leader epoch EEE (10)
//	quorum-state               who leads, in which epoch
//	../bootstrap.checkpoint    the records that a new cluster begins with
//
// This node is a quorum of one. At opening it replays the newest snapshot and
// the log behind it, raises the leader epoch, and writes the batch that says so.
// [Quorum.Submit] lets package controller decide a command on the newest image,
// appends the records, makes them durable, replays them, publishes the new image
// to all subscribers and only then answers. Records read back from the log take
// the same way as records just decided.
//
// Concurrency: all methods may be called from any goroutine. One command is
// decided at a time. Subscribers are called one after the other, on the
// goroutine of the command, and must not call Submit.
//
// Durability: the log is synced before a change is seen by anyone. A failed
// write or sync is final: every later command is refused with [ErrFailed].
//
// Source: Kafka 4.3.1 KafkaRaftClient, KafkaRaftLog, SnapshotGenerator; KIP-595,
// KIP-630, KIP-853.
package quorum
