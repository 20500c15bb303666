// Package index holds the three indexes of a log segment and the two bounded
// caches that they are read through.
//
// Files owned: NNNNNNNNNNNNNNNNNNNN.index ([OffsetIndex]), .timeindex
// ([TimeIndex]) and .txnindex ([TxnIndex]), where N is the base offset of the
// segment. All three are arrays of entries of one size, big endian, without
// header or checksum, sorted: a look-up is a binary search over pages.
//
// The cache holds [Notes] of package segment, too.
//
// No index is mapped into memory. Entries are read with ReadAt, a page at a
// time, through a [Cache] shared by all indexes of the process; descriptors come
// from a [FileCache], which closes the least used ones and opens them again on
// demand. So the number of segments is bounded neither by vm.max_map_count nor
// by the limit of open files, and a disk fault is an error, not a signal.
//
// Opening an index does no I/O. The first use opens the file, and an absent
// offset or time index is then created with its full size. Such a file is sparse,
// full of zeros, and holds fewer entries than its size tells: the count lives in
// memory until [OffsetIndex.Trim] cuts the file. After a crash the count is lost,
// and the file must be rebuilt from the log.
//
// Concurrency: the methods of an index may be called by several goroutines.
// Readers never wait for writers' I/O: they work on a consistent copy of (entry
// count, generation) and start over when entries were removed meanwhile. Writers
// exclude each other. Lock order: index write lock, then index state lock, then
// File, then FileCache.
//
// Durability: appends reach the page cache only; Sync makes a file durable.
// Indexes are derived data: whoever finds one damaged ([CorruptError]) or missing
// (fs.ErrNotExist) rebuilds it from the log.
//
// Source: Kafka 4.3.1 AbstractIndex, OffsetIndex, TimeIndex, TransactionIndex,
// LazyIndex; KIP-33 (time index), KIP-98 (transaction index).
package index
