// Package commitlog is the log of one partition: batches in segments, found by
// offset and by time.
//
// Files owned, in the partition's folder: the segments (package segment), the
// producer snapshots (producerstate), leader-epoch-checkpoint and
// partition.metadata (checkpoint), cut-* (bytes that recovery cut from a log;
// Kafka ignores them, nothing removes them) and tidemark.seals (see [SealsFile]).
//
// Append, on the leader: check the batch without a lock, then, under the one
// lock of the log: offsets, leader epoch, roll, producer state, one write, index
// entries, transaction index. Followers store batches as they come.
//
// Read: a reader takes the current view, an immutable list of segments with the
// end of the log, and never waits for an append. A [Slice] holds a reference on
// its segment, so its bytes stay while segments are rolled, truncated or deleted.
//
// Concurrency: all methods of [Log] may be called at any time by any goroutine.
// Locks, in the order in which they are taken: Log.flushMu, Log.dropMu, Log.mu, maxima.mu,
// then those of the packages below. Options.Background and Options.After are
// called without a lock; Clock, Rand and Failed may be called with one.
//
// Durability: an append reaches the page cache. Flush, Close, the background
// flush of rolled segments and flush.messages make it durable; what is below
// [Log.RecoveryPoint] survives a power loss. After the first error of the disk
// while something is changed, the log refuses every change ([ErrFailed]). A full
// disk is no such error: the change is undone ([ErrDiskFull]).
//
// Source: Kafka 4.3.1 UnifiedLog, LocalLog, LogLoader, LogValidator.
package commitlog
