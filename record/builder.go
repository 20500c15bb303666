package record

import (
	"encoding/binary"
	"errors"
	"math"
)

// BuilderOptions are the header fields of a batch to be made.
// [DefaultBuilderOptions] has "none" where the zero value would mean something.
type BuilderOptions struct {
	Codec Codec
	Level int // of the codec, 0 for its default; see AppendCompressed

	TimestampType TimestampType // NoTimestampType is taken as CreateTime
	AppendTime    int64         // the maximum timestamp when LogAppendTime, ms

	BaseOffset    int64
	LeaderEpoch   int32 // -1 none
	ProducerID    int64 // -1 none
	ProducerEpoch int16 // -1 none
	BaseSequence  int32 // -1 none

	Transactional, Control bool

	// HasDeleteHorizon sets the base timestamp to DeleteHorizon, in ms.
	HasDeleteHorizon bool
	DeleteHorizon    int64
}

// DefaultBuilderOptions are those of a plain batch as a producer without
// idempotence sends it: offset 0, CreateTime, uncompressed, and −1 for leader
// epoch, producer and sequence.
func DefaultBuilderOptions() BuilderOptions {
	return BuilderOptions{
		LeaderEpoch: NoLeaderEpoch, ProducerID: NoProducerID, ProducerEpoch: NoProducerEpoch, BaseSequence: NoSequence,
	}
}

// attributes are the option's flags as in the header.
func (o *BuilderOptions) attributes() int16 {
	a := int16(o.Codec) & codecMask
	for _, f := range []struct {
		set bool
		bit int16
	}{
		{o.TimestampType == LogAppendTime, logAppendTimeBit},
		{o.Transactional, transactionalBit},
		{o.Control, controlBit},
		{o.HasDeleteHorizon, deleteHorizonBit},
	} {
		if f.set {
			a |= f.bit
		}
	}
	return a
}

// Errors of [Builder].
var (
	// ErrOffset means that a record's offset is not above the last one, or
	// too far from the batch's base offset.
	ErrOffset = errors.New("record offset does not fit the batch")
	// ErrBatchFull means that a batch would pass 2 GiB.
	ErrBatchFull = errors.New("batch would be larger than the format allows")
)

// Builder makes one batch of magic 2 with the bytes that Kafka's would have.
// The zero Builder is ready for [Builder.Reset].
type Builder struct {
	o      BuilderOptions
	buf    []byte // header, then records as they are before compression
	out    []byte // the batch, when compressed
	count  int32
	last   int64 // offset of the last record
	baseTs int64
	maxTs  int64
}

// NewBuilder returns an empty Builder.
func NewBuilder(o BuilderOptions) *Builder {
	b := new(Builder)
	b.Reset(o)
	return b
}

// Reset starts another batch in the memory of the last.
func (b *Builder) Reset(o BuilderOptions) {
	*b = Builder{
		o: o, buf: grow(b.buf[:0], HeaderSize), out: b.out,
		last: o.BaseOffset - 1, baseTs: NoTimestamp, maxTs: NoTimestamp,
	}
	if o.HasDeleteHorizon {
		b.baseTs = o.DeleteHorizon
	}
}

// Count is the number of records appended.
func (b *Builder) Count() int32 { return b.count }

// SizeBytes is the size of the batch so far, before compression.
func (b *Builder) SizeBytes() int { return len(b.buf) }

// Append adds a record at the next offset; key and value may be nil for null.
// All is copied. Errors: ErrOffset, ErrBatchFull.
func (b *Builder) Append(ts int64, key, value []byte, headers []RecordHeader) error {
	return b.AppendAt(b.last+1, ts, key, value, headers)
}

// AppendAt adds a record at an offset above the last one, as in a compacted
// batch. Errors: ErrOffset, ErrBatchFull.
func (b *Builder) AppendAt(offset, ts int64, key, value []byte, headers []RecordHeader) error {
	delta := offset - b.o.BaseOffset
	if offset <= b.last || delta > math.MaxInt32 {
		return ErrOffset
	}
	baseTs := b.baseTs
	if b.count == 0 && !b.o.HasDeleteHorizon {
		baseTs = ts
	}
	n := recordLength(ts-baseTs, int32(delta), key, value, headers)
	if n > math.MaxInt32-maxVarintSize-len(b.buf) {
		return ErrBatchFull
	}
	b.buf = appendRecord(b.buf, ts-baseTs, int32(delta), key, value, headers)
	b.count++
	b.last, b.baseTs, b.maxTs = offset, baseTs, max(b.maxTs, ts)
	return nil
}

const maxVarintSize = 5

// SetLastOffset says that the batch ends at offset although its last record may
// lie before, as a compacted batch does. ErrOffset if it would not.
func (b *Builder) SetLastOffset(offset int64) error {
	if offset < b.last || offset-b.o.BaseOffset > math.MaxInt32 {
		return ErrOffset
	}
	b.last = offset
	return nil
}

// Bytes completes the batch and returns it, or nil without a record. The bytes
// are the builder's until Reset. It panics for a codec that does not exist.
func (b *Builder) Bytes() []byte {
	if b.count == 0 {
		return nil
	}
	batch := b.buf
	if b.o.Codec != None {
		out := append(b.out[:0], b.buf[:HeaderSize]...)
		out, err := AppendCompressed(out, b.o.Codec, b.o.Level, b.buf[HeaderSize:])
		if err != nil {
			panic(err) // compressing to memory fails for an unknown codec only
		}
		b.out, batch = out, out
	}
	maxTs := b.maxTs
	if b.o.TimestampType == LogAppendTime {
		maxTs = b.o.AppendTime
	}
	b.putHeader(batch, maxTs)
	return batch
}

func (b *Builder) putHeader(batch []byte, maxTs int64) {
	h := Header{
		BaseOffset: b.o.BaseOffset, LastOffset: b.last, SizeBytes: int32(len(batch)), LeaderEpoch: b.o.LeaderEpoch,
		Magic: 2, Attributes: b.o.attributes(), BaseTimestamp: b.baseTs, MaxTimestamp: maxTs,
		ProducerID: b.o.ProducerID, ProducerEpoch: b.o.ProducerEpoch, BaseSequence: b.o.BaseSequence, Count: b.count,
	}
	h.put(batch)
}

// put writes a header of magic 2 over the first bytes of the whole batch and
// computes its checksum.
func (h Header) put(batch []byte) {
	be := binary.BigEndian
	be.PutUint64(batch[posBaseOffset:], uint64(h.BaseOffset))
	be.PutUint32(batch[posLength:], uint32(h.SizeBytes-lengthEnd))
	be.PutUint32(batch[posLeaderEpoch:], uint32(h.LeaderEpoch))
	batch[posMagic] = byte(h.Magic)
	be.PutUint16(batch[posAttributes:], uint16(h.Attributes))
	be.PutUint32(batch[posLastOffsetDelta:], uint32(h.LastOffsetDelta()))
	be.PutUint64(batch[posBaseTimestamp:], uint64(h.BaseTimestamp))
	be.PutUint64(batch[posMaxTimestamp:], uint64(h.MaxTimestamp))
	be.PutUint64(batch[posProducerID:], uint64(h.ProducerID))
	be.PutUint16(batch[posProducerEpoch:], uint16(h.ProducerEpoch))
	be.PutUint32(batch[posBaseSequence:], uint32(h.BaseSequence))
	be.PutUint32(batch[posCount:], uint32(h.Count))
	putCRC(batch)
}

// EmptyBatch returns the bare header that stays of a magic-2 batch when
// compaction removed all its records but its producer's sequence, or its last
// offset, is still needed: count 0, uncompressed, base timestamp −1, the rest
// kept.
func EmptyBatch(h Header) Batch {
	b := make(Batch, HeaderSize)
	h.SizeBytes, h.Count, h.BaseTimestamp = HeaderSize, 0, NoTimestamp
	h.Attributes &= logAppendTimeBit | transactionalBit | controlBit
	h.put(b)
	return b
}
