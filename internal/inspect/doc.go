// Package inspect looks into, checks, explains and mends log directories without a broker: those of Kafka and of
// Tidemark alike, live ones, copies, snapshots and what is left on a broken disk.
//
// A [Target] is what a command line names: a partition's folder, a whole log directory (an entry of log.dirs), or
// single files of a partition. The operations are List, Find, Cat, Verify, Repair, Statistics, Transactions, Export,
// CacheResidency and Report; each gives plain values with JSON names that are part of the documented output.
//
// Files owned: none. Only Repair (told to apply) and Export write; Repair keeps what it cuts or replaces in files
// named cut-*, which Kafka ignores. Everything else reads, takes no lock, and is safe beside a running broker.
//
// Look-ups go through commitlog.OpenTolerant: the code that answers a broker's clients answers here. Checks read the
// bytes themselves, segment by segment, in memory that does not grow with the directory.
//
// Concurrency: functions may be called by several goroutines; Verify works on several segments side by side and calls
// back one at a time.
//
// Source: Kafka 4.3.1 LogSegment, OffsetIndex, TimeIndex, TransactionIndex, ProducerStateManager, LeaderEpochFileCache,
// UnifiedLog, DumpLogSegments.
package inspect
