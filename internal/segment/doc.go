// Package segment is one segment of a log: a .log file of record batches with
// its offset, time and transaction index.
//
// Files owned: NNNNNNNNNNNNNNNNNNNN.log and, through package index, .index,
// .timeindex and .txnindex, where N is the segment's base offset in 20 digits.
// A file on its way out carries the suffix .deleted behind that.
//
// Opening a segment does no I/O. Files are opened at first use. Then the indexes
// of a segment that was there at the start are compared with the log, unless a
// [Seal] vouches for them; one that is missing or wrong is rebuilt, counted and
// logged. Checksums of batches are verified by [Segment.Prove] when a range is
// first read, and by a scrub. See verify.go, compare.go, prove.go.
//
// A look-up by time notes what it found in a large batch, so that the next one need
// not read it: see marks.go. The notes are in the bounded cache of index pages, each
// with the header of its batch, made of bytes whose checksum was verified in this
// run; they are dropped when the log is cut, and go with the segment. What verified
// bytes become later on the disk is for the next read to find, with and without them.
//
// Damage, bytes that are no good batch with good ones behind, is passed over by
// every scan, kept in a list, and reported once. See damage.go.
//
// Concurrency: one writer (the owner of the log's append lock) calls Write,
// Index, Finish, Truncate, Recover and Grow; any number of readers call
// the rest at the same time. A reader passes the position up to which it may
// look, so it never sees half a write. Lock order: checkMu of a segment, that of
// an earlier one, writeMu, damageMu, mu, then the locks of package index.
//
// References: the list of segments holds one, each reader that keeps a segment
// beyond a call takes another with Acquire. Files of a segment marked for
// deletion are removed when the last reference goes.
//
// Durability: Write reaches the page cache; Flush makes log and indexes durable,
// in that order.
//
// Source: Kafka 4.3.1 LogSegment, FileRecords; KIP-33.
package segment
