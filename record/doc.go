// Package record is the byte format of Kafka's log: batches, records, the codecs
// around them, and the older message formats.
//
// A .log file is nothing but entries, one after another. An entry is
//
//   - a batch of magic 2, which holds any number of records ([Batch], [Header],
//     written by [Builder]), or
//   - a message of magic 0 or 1, which is one record, or a compressed wrapper
//     around several (read, converted, and never written to a log).
//
// [Scanner] walks the entries of a file by their headers, [NextEntry] those of
// a slice. [Iterator] decodes the records of one entry of any magic and codec.
// [UpConvert] and [DownConvert] translate between the old and the new.
//
// Concurrency: values belong to one goroutine at a time; package functions may
// be called from several at once.
//
// Memory: decoding allocates in proportion to what the input holds, never by
// what it declares, and no more than [IterOptions.MaxBytes] for what comes out
// of a decompressor. Buffers and codec state come from pools.
//
// Errors: [CorruptError] is damage of an entry's frame, [InvalidRecordError] an
// entry whose records do not fit it, [CodecError] a body that does not
// decompress, [ErrTooLarge] one that passes the bound.
//
// Source: Kafka 4.3.1 DefaultRecordBatch, DefaultRecord, LegacyRecord,
// AbstractLegacyRecordBatch, MemoryRecordsBuilder, ControlRecordType; KIP-98,
// KIP-32, KIP-31.
package record
