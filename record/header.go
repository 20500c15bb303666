package record

import (
	"encoding/binary"
	"fmt"
)

// Header is the decoded header of an entry of any magic; cheap to copy.
//
// Fields that an old message does not have are -1. A compressed message of
// magic 0 or 1 (a wrapper) names only the offset of its last record: that is
// both BaseOffset and LastOffset here, and the first offset needs an
// [Iterator]. Its Count is -1 and its timestamps are its own.
type Header struct {
	BaseOffset, LastOffset      int64
	SizeBytes                   int32 // of the whole entry, at least 26
	LeaderEpoch                 int32
	Magic                       int8
	Attributes                  int16
	CRC                         uint32 // as stored
	BaseTimestamp, MaxTimestamp int64
	ProducerID                  int64
	ProducerEpoch               int16
	BaseSequence, Count         int32
}

// Least values of the length field, which does not count its own 12 bytes.
const (
	minLengthV0 = 14
	minLengthV1 = 22
	minLengthV2 = HeaderSize - lengthEnd
)

// ParseHeader decodes the header of the entry that b starts with. HeaderSize
// bytes are always enough; an old message needs less. It returns ErrShort when
// b ends inside the header, and *CorruptError (without file and position) for an
// unknown magic or a length below the least of the magic.
func ParseHeader(b []byte) (Header, error) {
	if len(b) <= posMagic {
		if len(b) >= lengthEnd {
			if err := checkLength(b, minLengthV0); err != nil {
				return Header{}, err
			}
		}
		return Header{}, ErrShort
	}
	if err := checkLength(b, minLengthV0); err != nil {
		return Header{}, err
	}
	switch magic := int8(b[posMagic]); magic {
	case 0:
		return parseOld(b, minLengthV0)
	case 1:
		return parseOld(b, minLengthV1)
	case 2:
		if err := checkLength(b, minLengthV2); err != nil {
			return Header{}, err
		}
		if len(b) < HeaderSize {
			return Header{}, ErrShort
		}
		return parseV2(b), nil
	default:
		// Kafka: this text goes to the client.
		return Header{}, corrupt(b, fmt.Sprintf("Invalid magic found in record: %d", magic))
	}
}

func checkLength(b []byte, least int) error {
	// The upper bound keeps SizeBytes, 12 more, within its type.
	n := int32(binary.BigEndian.Uint32(b[posLength:]))
	if int(n) >= least && n <= 1<<31-1-lengthEnd {
		return nil
	}
	if int(n) < least {
		return corrupt(b, fmt.Sprintf("record size %d is less than the minimum record overhead (%d)", n, least))
	}
	return corrupt(b, fmt.Sprintf("record size %d is larger than any entry can be", n))
}

func corrupt(b []byte, reason string) error {
	offset := int64(binary.BigEndian.Uint64(b[posBaseOffset:]))
	return &CorruptError{Pos: -1, Offset: offset, Reason: reason}
}

func parseV2(b []byte) Header {
	v := Batch(b[:HeaderSize])
	return Header{
		BaseOffset:    v.BaseOffset(),
		LastOffset:    v.LastOffset(),
		SizeBytes:     int32(v.u32(posLength)) + lengthEnd,
		LeaderEpoch:   v.LeaderEpoch(),
		Magic:         v.Magic(),
		Attributes:    v.Attributes(),
		CRC:           v.CRC(),
		BaseTimestamp: v.BaseTimestamp(),
		MaxTimestamp:  v.MaxTimestamp(),
		ProducerID:    v.ProducerID(),
		ProducerEpoch: v.ProducerEpoch(),
		BaseSequence:  v.BaseSequence(),
		Count:         v.Count(),
	}
}

// Positions in a message of magic 0 or 1; the timestamp is in magic 1 only, and
// lengths of -1 are null:
//
//	 0       8       12     16 17   18        18/26    …        …
//	┌───────┬───────┬──────┬──┬────┬─────────┬──────┬─────┬──────┬───────┐
//	│offset │length │crc32 │m │attr│timestamp│keyLen│ key │valLen│ value │
//	│int64  │int32  │uint32│  │int8│int64    │int32 │     │int32 │       │
//	└───────┴───────┴──────┴──┴────┴─────────┴──────┴─────┴──────┴───────┘
const (
	posOldCRC        = 12
	posOldAttributes = 17
	posOldTimestamp  = 18
	posKeyV0         = 18
	posKeyV1         = 26
)

func parseOld(b []byte, least int) (Header, error) {
	if err := checkLength(b, least); err != nil {
		return Header{}, err
	}
	if len(b) < posKeyV0 || (b[posMagic] == 1 && len(b) < posKeyV1) {
		return Header{}, ErrShort
	}
	offset := int64(binary.BigEndian.Uint64(b[posBaseOffset:]))
	ts := NoTimestamp
	if b[posMagic] == 1 {
		ts = int64(binary.BigEndian.Uint64(b[posOldTimestamp:]))
	}
	h := Header{
		BaseOffset:    offset,
		LastOffset:    offset,
		SizeBytes:     int32(binary.BigEndian.Uint32(b[posLength:])) + lengthEnd,
		LeaderEpoch:   NoLeaderEpoch,
		Magic:         int8(b[posMagic]),
		Attributes:    int16(b[posOldAttributes]),
		CRC:           binary.BigEndian.Uint32(b[posOldCRC:]),
		BaseTimestamp: ts,
		MaxTimestamp:  ts,
		ProducerID:    NoProducerID,
		ProducerEpoch: NoProducerEpoch,
		BaseSequence:  NoSequence,
		Count:         1,
	}
	if h.Codec() != None {
		h.Count = -1
	}
	return h, nil
}

// NextOffset is LastOffset + 1.
func (h Header) NextOffset() int64 { return h.LastOffset + 1 }

// LastOffsetDelta is LastOffset − BaseOffset.
func (h Header) LastOffsetDelta() int32 { return int32(h.LastOffset - h.BaseOffset) }

// LastSequence is the sequence number of the last record, -1 if none.
func (h Header) LastSequence() int32 { return lastSequence(h.BaseSequence, h.LastOffsetDelta()) }

// Codec is how the records are compressed.
func (h Header) Codec() Codec { return Codec(h.Attributes & codecMask) }

// TimestampType says whose clock the timestamps are of.
func (h Header) TimestampType() TimestampType {
	if h.Magic == 0 {
		return NoTimestampType
	}
	return timestampType(h.Attributes)
}

// IsTransactional reports whether the batch is part of a transaction.
func (h Header) IsTransactional() bool { return h.Magic >= 2 && h.Attributes&transactionalBit != 0 }

// IsControl reports whether the records are Kafka's own (markers).
func (h Header) IsControl() bool { return h.Magic >= 2 && h.Attributes&controlBit != 0 }

// HasDeleteHorizon reports whether BaseTimestamp is a delete horizon.
func (h Header) HasDeleteHorizon() bool { return h.Magic >= 2 && h.Attributes&deleteHorizonBit != 0 }

// HasProducerID reports whether an idempotent producer made the batch.
func (h Header) HasProducerID() bool { return h.ProducerID > NoProducerID }

// NextEntry takes the first entry of b and returns its header, its bytes and
// what follows it, both aliasing b. It returns ErrShort when b is empty or ends
// inside the entry, and otherwise the errors of [ParseHeader].
func NextEntry(b []byte) (h Header, entry, rest []byte, err error) {
	h, err = ParseHeader(b)
	if err != nil {
		return h, nil, b, err
	}
	n := int(h.SizeBytes)
	if n > len(b) {
		return h, nil, b, ErrShort
	}
	return h, b[:n:n], b[n:], nil
}
