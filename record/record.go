package record

import (
	"encoding/binary"

	"tidemark/internal/wire"
)

// Record is one decoded record. Its byte slices alias the memory of the
// [Iterator] or of the entry.
type Record struct {
	Offset     int64
	Timestamp  int64 // ms since 1970, -1 if none
	Attributes int8  // without meaning today; kept as written
	// Key and Value are nil for null, and nil in an iteration with SkipKV.
	Key, Value []byte
	Headers    []RecordHeader
	// KeySize and ValueSize are the lengths in bytes, -1 for null; set with
	// SkipKV too.
	KeySize, ValueSize int
}

// RecordHeader is one header of a record. Key is UTF-8; Value may be nil for
// null.
type RecordHeader struct{ Key, Value []byte }

// A record of a magic-2 batch, before compression. "len" is the number of bytes
// after itself; lengths of -1 are null:
//
//	┌──────┬──────┬───────┬───────┬──────┬─────┬──────┬───────┬───────┬────────────
//	│len   │attri-│timest.│offset │key   │ key │value │ value │header │ each: key
//	│varint│butes │Δ var- │Δ      │length│     │length│       │count  │ length, key,
//	│      │int8  │long   │varint │varint│     │varint│       │varint │ length, value
//	└──────┴──────┴───────┴───────┴──────┴─────┴──────┴───────┴───────┴────────────

// appendRecord appends one record to b.
func appendRecord(b []byte, tsDelta int64, offsetDelta int32, key, value []byte, headers []RecordHeader) []byte {
	b = wire.AppendVarint(b, int32(recordLength(tsDelta, offsetDelta, key, value, headers)))
	b = append(b, 0)
	b = wire.AppendVarlong(b, tsDelta)
	b = wire.AppendVarint(b, offsetDelta)
	b = wire.AppendVarintBytes(b, key)
	b = wire.AppendVarintBytes(b, value)
	b = wire.AppendVarint(b, int32(len(headers)))
	for _, h := range headers {
		b = append(wire.AppendVarint(b, int32(len(h.Key))), h.Key...)
		b = wire.AppendVarintBytes(b, h.Value)
	}
	return b
}

// recordLength is the value of the length field.
func recordLength(tsDelta int64, offsetDelta int32, key, value []byte, headers []RecordHeader) int {
	n := 1 + wire.SizeVarlong(tsDelta) + wire.SizeVarint(offsetDelta) + fieldSize(key) + fieldSize(value) +
		wire.SizeVarint(int32(len(headers)))
	for _, h := range headers {
		n += wire.SizeVarint(int32(len(h.Key))) + len(h.Key) + fieldSize(h.Value)
	}
	return n
}

func fieldSize(p []byte) int {
	if p == nil {
		return wire.SizeVarint(-1)
	}
	return wire.SizeVarint(int32(len(p))) + len(p)
}

// errStructure is the text for a record that ends inside one of its fields.
const errStructure = "Found invalid record structure"

// parseRecord decodes one record from p, which is what its length field counts.
// The timestamp and offset in rec are the deltas.
//
// Kafka: a leader that skips the keys of a compressed batch does not compare the
// length field with what the record takes, and stores what no consumer can read
// (DefaultRecord.readPartiallyFrom). Here both modes are as strict as a consumer.
func parseRecord(p []byte, rec *Record, skipKV bool) error {
	at := 1
	if len(p) < 1 {
		return invalid(errStructure)
	}
	tsDelta, n := wire.Varlong(p[at:])
	if n <= 0 {
		return invalid(errStructure)
	}
	at += n
	offsetDelta, n := wire.Varint(p[at:])
	if n <= 0 {
		return invalid(errStructure)
	}
	at += n
	key, at, ok := field(p, at)
	if !ok {
		return invalid(errStructure)
	}
	value, at, ok := field(p, at)
	if !ok {
		return invalid(errStructure)
	}
	rec.Attributes, rec.Timestamp, rec.Offset = int8(p[0]), tsDelta, int64(offsetDelta)
	rec.KeySize, rec.ValueSize = size(key), size(value)
	rec.Key, rec.Value = key, value
	if skipKV {
		rec.Key, rec.Value = nil, nil
	}
	return parseHeaders(p, at, rec, skipKV)
}

func parseHeaders(p []byte, at int, rec *Record, skip bool) error {
	rec.Headers = rec.Headers[:0]
	if at+1 == len(p) && p[at] == 0 { // no headers, and nothing after their number
		return nil
	}
	count, n := wire.Varint(p[at:])
	if n <= 0 {
		return invalid(errStructure)
	}
	at += n
	if count < 0 {
		return invalid("Found invalid number of record headers %d", count)
	}
	if int(count) > len(p)-at {
		return invalid("Found invalid number of record headers. %d is larger than the remaining size of the buffer",
			count)
	}
	for ; count > 0; count-- {
		size, n := wire.Varint(p[at:])
		if n > 0 && size < 0 {
			return invalid("Invalid negative header key size %d", size)
		}
		key, next, ok := field(p, at)
		if !ok {
			return invalid(errStructure)
		}
		value, next, ok := field(p, next)
		if !ok {
			return invalid(errStructure)
		}
		at = next
		if !skip {
			rec.Headers = append(rec.Headers, RecordHeader{key, value})
		}
	}
	if at != len(p) {
		return invalid("Invalid record size: expected to read %d bytes in record payload, but instead read %d",
			len(p), at)
	}
	return nil
}

// field decodes a length and as many bytes from p[at:], and the position after
// them.
//
// Kafka: every negative length is null, not only -1.
func field(p []byte, at int) (v []byte, next int, ok bool) {
	n, used := wire.Varint(p[at:])
	if used <= 0 {
		return nil, 0, false
	}
	at += used
	if n < 0 {
		return nil, at, true
	}
	if int(n) > len(p)-at {
		return nil, 0, false
	}
	end := at + int(n)
	return p[at:end:end], end, true
}

func size(p []byte) int {
	if p == nil {
		return -1
	}
	return len(p)
}

// parseMessage decodes the record in an uncompressed entry of magic 0 or 1, or
// the wrapper itself.
func parseMessage(entry []byte, h Header, rec *Record) error {
	at := posKeyV0
	if h.Magic == 1 {
		at = posKeyV1
	}
	key, at, ok := oldField(entry, at)
	if !ok {
		return invalid(errStructure)
	}
	value, _, ok := oldField(entry, at)
	if !ok {
		return invalid(errStructure)
	}
	*rec = Record{
		Offset: h.LastOffset, Timestamp: h.MaxTimestamp, Attributes: int8(h.Attributes),
		Key: key, Value: value, Headers: rec.Headers[:0], KeySize: size(key), ValueSize: size(value),
	}
	return nil
}

func oldField(p []byte, at int) (v []byte, next int, ok bool) {
	if len(p)-at < 4 {
		return nil, 0, false
	}
	n := int(int32(binary.BigEndian.Uint32(p[at:])))
	at += 4
	if n < 0 {
		return nil, at, true
	}
	if n > len(p)-at {
		return nil, 0, false
	}
	return p[at : at+n : at+n], at + n, true
}
