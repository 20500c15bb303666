package record

import (
	"encoding/binary"
)

// HeaderSize is the length of a magic-2 batch header in bytes, and enough of
// any entry for [ParseHeader].
const HeaderSize = 61

// Positions in a magic-2 batch:
//
//	 0       8       12      16 17     21     23       27       35
//	┌───────┬───────┬───────┬──┬──────┬──────┬────────┬────────┬────────┐
//	│base   │length │leader │m │crc   │attri-│last    │base    │max     │
//	│offset │(-12)  │epoch  │2 │32C   │butes │offsetΔ │timest. │timest. │
//	│int64  │int32  │int32  │  │uint32│int16 │int32   │int64   │int64   │
//	└───────┴───────┴───────┴──┴──────┴──────┴────────┴────────┴────────┘
//	 43       51     53        57      61                    12+length
//	┌────────┬──────┬─────────┬───────┬───────────────────────┐
//	│producer│epoch │base     │record │ records, compressed   │
//	│id int64│int16 │sequence │count  │ as one when codec ≠ 0 │
//	│        │      │int32    │int32  │                       │
//	└────────┴──────┴─────────┴───────┴───────────────────────┘
//
// The checksum covers [21, 12+length), so base offset and leader epoch are
// rewritten without touching it.
const (
	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57

	// lengthEnd is the end of the length field, which counts what follows it.
	lengthEnd = 12
)

// Batch is the bytes of one magic-2 batch, or at least its header. Accessors
// decode in place and setters rewrite in place. They panic when fewer than
// HeaderSize bytes are there; [ParseBatch] checks that.
type Batch []byte

// ParseBatch takes the first entry of b as a magic-2 batch and returns its bytes,
// which alias b, cut to its length. It returns ErrShort when b ends before it
// does, and *CorruptError for another magic or an impossible length.
func ParseBatch(b []byte) (Batch, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	if h.Magic != 2 {
		return nil, &CorruptError{Pos: -1, Offset: h.BaseOffset, Reason: "entry is not of magic 2"}
	}
	if int(h.SizeBytes) > len(b) {
		return nil, ErrShort
	}
	return Batch(b[:h.SizeBytes:h.SizeBytes]), nil
}

func (b Batch) u16(pos int) uint16 { return binary.BigEndian.Uint16(b[pos:]) }
func (b Batch) u32(pos int) uint32 { return binary.BigEndian.Uint32(b[pos:]) }
func (b Batch) u64(pos int) uint64 { return binary.BigEndian.Uint64(b[pos:]) }

// BaseOffset is the offset of the first record the batch was made with.
func (b Batch) BaseOffset() int64 { return int64(b.u64(posBaseOffset)) }

// LastOffset is the offset of the last record the batch was made with.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// NextOffset is LastOffset + 1.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// SizeBytes is the length of the whole batch by its header.
func (b Batch) SizeBytes() int { return int(int32(b.u32(posLength))) + lengthEnd }

// LeaderEpoch is the epoch of the leader that appended the batch, -1 if none.
func (b Batch) LeaderEpoch() int32 { return int32(b.u32(posLeaderEpoch)) }

// Magic is 2.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// CRC is the stored CRC-32C.
func (b Batch) CRC() uint32 { return b.u32(posCRC) }

// Attributes are the flags, with the bits that Kafka does not use.
func (b Batch) Attributes() int16 { return int16(b.u16(posAttributes)) }

// LastOffsetDelta is LastOffset − BaseOffset. Compaction keeps it.
func (b Batch) LastOffsetDelta() int32 { return int32(b.u32(posLastOffsetDelta)) }

// BaseTimestamp is what the records' timestamps are relative to: that of the
// first record, or the delete horizon if HasDeleteHorizon.
func (b Batch) BaseTimestamp() int64 { return int64(b.u64(posBaseTimestamp)) }

// MaxTimestamp is the largest timestamp of the records, or the append time for
// LogAppendTime; -1 if none.
func (b Batch) MaxTimestamp() int64 { return int64(b.u64(posMaxTimestamp)) }

// ProducerID is -1 if the producer is not idempotent.
func (b Batch) ProducerID() int64 { return int64(b.u64(posProducerID)) }

// ProducerEpoch is -1 if the producer is not idempotent.
func (b Batch) ProducerEpoch() int16 { return int16(b.u16(posProducerEpoch)) }

// BaseSequence is the sequence number of the first record, -1 if none.
func (b Batch) BaseSequence() int32 { return int32(b.u32(posBaseSequence)) }

// LastSequence is the sequence number of the last record, -1 if none; numbers
// wrap from 2147483647 to 0.
func (b Batch) LastSequence() int32 { return lastSequence(b.BaseSequence(), b.LastOffsetDelta()) }

// Count is the number of records in the batch; compaction lowers it down to 0.
func (b Batch) Count() int32 { return int32(b.u32(posCount)) }

// Codec is how Body is compressed.
func (b Batch) Codec() Codec { return Codec(b.Attributes() & codecMask) }

// TimestampType says whose clock the timestamps are of.
func (b Batch) TimestampType() TimestampType { return timestampType(b.Attributes()) }

// IsTransactional reports whether the batch is part of a transaction.
func (b Batch) IsTransactional() bool { return b.Attributes()&transactionalBit != 0 }

// IsControl reports whether the records are Kafka's own (markers).
func (b Batch) IsControl() bool { return b.Attributes()&controlBit != 0 }

// HasDeleteHorizon reports whether BaseTimestamp is the time from which the
// cleaner may drop the batch's tombstones.
func (b Batch) HasDeleteHorizon() bool { return b.Attributes()&deleteHorizonBit != 0 }

// Body is the records as stored; it aliases b.
func (b Batch) Body() []byte { return b[HeaderSize:] }

// Header decodes all fields at once.
func (b Batch) Header() Header { return parseV2(b) }

// ValidCRC reports whether b is a whole batch with the right checksum.
func (b Batch) ValidCRC() bool { return ValidCRC(b) }

// SetBaseOffset rewrites the base offset, which moves all records. The checksum
// does not cover it.
func (b Batch) SetBaseOffset(offset int64) {
	binary.BigEndian.PutUint64(b[posBaseOffset:], uint64(offset))
}

// SetLastOffset rewrites the base offset so that LastOffset becomes offset.
func (b Batch) SetLastOffset(offset int64) { b.SetBaseOffset(offset - int64(b.LastOffsetDelta())) }

// SetLeaderEpoch rewrites the leader epoch. The checksum does not cover it.
func (b Batch) SetLeaderEpoch(epoch int32) {
	binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(epoch))
}

// SetMaxTimestamp rewrites the maximum timestamp and the timestamp type and
// computes the checksum anew, so b must be the whole batch. When neither
// changes, no byte does.
//
// Kafka: when either changes, attribute bits above the delete horizon are
// cleared; otherwise they stay (DefaultRecordBatch.setMaxTimestamp).
func (b Batch) SetMaxTimestamp(ts int64, t TimestampType) {
	if b.MaxTimestamp() == ts && b.TimestampType() == t {
		return
	}
	attr := b.Attributes() & (codecMask | transactionalBit | controlBit | deleteHorizonBit)
	if t == LogAppendTime {
		attr |= logAppendTimeBit
	}
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(attr))
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ts))
	putCRC(b)
}

func timestampType(attributes int16) TimestampType {
	if attributes&logAppendTimeBit != 0 {
		return LogAppendTime
	}
	return CreateTime
}

func lastSequence(base, delta int32) int32 {
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, delta)
}
