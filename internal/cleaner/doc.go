// Package cleaner compacts logs: of the records with one key only the last stays, and no record of an aborted
// transaction.
//
// A round works on one log. It reads the dirty part, which no round has seen yet, into a map from key to last offset,
// and then writes the segments from the start of the log up to the end of the map anew, without the records that the
// map has a later one for. Segments that became small are put together.
//
// What stays besides: tombstones and transaction markers for delete.retention.ms after the first round that could have
// dropped them; the last batch of each producer that the log knows, as a bare header; the last batch of a round.
//
// Files owned: cleaner-offset-checkpoint in each log directory, with the first dirty offset of each log. The segments
// belong to package commitlog.
//
// Concurrency: a [Cleaner] has log.cleaner.threads goroutines between Start and Stop; each works on another log. Its
// methods may be called by any goroutine. Its lock is never held over work on a log.
//
// Durability: see commitlog.Log.ReplaceSegments. The checkpoint is written after a round; when a crash is faster, the
// round is done again, to the same end.
//
// Source: Kafka 4.3.1 LogCleaner, Cleaner, LogCleanerManager, MemoryRecords.filterTo; KIP-534 (delete horizons).
package cleaner
