// Package metadata holds what a cluster knows about itself: brokers, topics,
// partitions, configurations, features and the rest, and the records that
// change it.
//
// It owns the record values of `__cluster_metadata` and of its snapshots. A
// [Record] is decoded with [DecodeRecord] and written with [Record.AppendTo]; a
// [Delta] replays records on top of an [Image]; [Image.Records] writes an image
// out again. A [Loader] does the same for batches as they stand in the log, with
// metadata transactions held back until they end.
//
// Concurrency: an Image, and everything reached from it, never changes once it
// was returned; any number of goroutines may read it. A Delta or a Loader
// belongs to one goroutine. Images share what they have in common, so a change
// costs in proportion to itself and not to the size of the cluster.
//
// Durability: none; package quorum writes the log.
//
// Source: Kafka 4.3.1 metadata schemas, org.apache.kafka.image, KIP-631,
// KIP-746, KIP-858, KIP-868, KIP-966.
package metadata
