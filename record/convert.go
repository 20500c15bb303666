package record

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrUnsupportedCodec means that records compressed with zstd cannot be given
// to a client that knows only messages of magic 0 and 1. Kafka answers it with
// UNSUPPORTED_COMPRESSION_TYPE.
var ErrUnsupportedCodec = errors.New("zstd has no form in messages of magic 0 and 1")

// SetCodec is the codec of the last compressed message of a set of magic 0 and
// 1, None if there is none: what a producer of that age asked for.
func SetCodec(set []byte) Codec {
	codec := None
	for {
		h, _, rest, err := NextEntry(set)
		if err != nil {
			return codec
		}
		if h.Codec() != None {
			codec = h.Codec()
		}
		set = rest
	}
}

// UpConvert turns a message set of magic 0 and 1, as old producers send it, into
// one batch of magic 2 with the header fields of o, offsets counting from
// o.BaseOffset. Messages of magic 0 get timestamp −1. A message that is cut off
// at the end of the set is ignored.
//
// Errors: *CorruptError (with Pos in the set) for damage and wrong checksums,
// *InvalidRecordError also for a set without messages or with a batch of magic
// 2 in it, *CodecError, ErrTooLarge, ErrBatchFull.
func UpConvert(set []byte, o BuilderOptions, iter IterOptions) (Batch, error) {
	var it Iterator
	defer it.Close()
	iter.SkipKV = false
	b := NewBuilder(o)
	for rest := set; ; {
		h, entry, after, err := NextEntry(rest)
		if errors.Is(err, ErrShort) {
			break
		}
		if err == nil && h.Magic < 2 && !ValidCRC(entry) {
			err = &CorruptError{Offset: h.BaseOffset, Reason: "message checksum is wrong"}
		}
		if err != nil {
			return nil, at(err, len(set)-len(rest))
		}
		if h.Magic > 1 {
			return nil, invalid("batch of magic %d in a set of old messages", h.Magic)
		}
		if err := upConvertEntry(b, &it, entry, iter); err != nil {
			return nil, at(err, len(set)-len(rest))
		}
		rest = after
	}
	if b.Count() == 0 {
		return nil, invalid("message set holds no message")
	}
	return b.Bytes(), nil
}

func upConvertEntry(b *Builder, it *Iterator, entry []byte, o IterOptions) error {
	if err := it.Reset(entry, o); err != nil {
		return err
	}
	for it.Next() {
		r := it.Record()
		if err := b.Append(r.Timestamp, r.Key, r.Value, nil); err != nil {
			return err
		}
	}
	return it.Err()
}

func at(err error, pos int) error {
	var c *CorruptError
	if errors.As(err, &c) {
		c.Pos = int64(pos)
	}
	return err
}

// DownConvert appends to dst the entries in src as messages of magic 1 or 0, for
// clients that fetch with a version below 4. Entries of that magic or a lower
// one are copied. Control batches and headers are left out, and so are records
// below firstOffset, except inside a compressed entry, which stays whole. What
// follows the last whole entry of src is ignored.
//
// On an error dst holds what was converted before the entry at fault. Errors:
// ErrUnsupportedCodec, *CorruptError (with Pos in src), *InvalidRecordError,
// *CodecError, ErrTooLarge.
//
// Source: Kafka 3.9 RecordsUtil.downConvert, which Kafka 4 no longer has.
func DownConvert(dst, src []byte, magic int8, firstOffset int64, o IterOptions) ([]byte, error) {
	c := downConverter{magic: magic, first: firstOffset, o: o}
	c.o.SkipKV = false
	defer c.it.Close()
	for rest := src; ; {
		h, entry, after, err := NextEntry(rest)
		if errors.Is(err, ErrShort) {
			return dst, nil
		}
		if err != nil {
			return dst, at(err, len(src)-len(rest))
		}
		switch {
		case h.IsControl():
		case h.Codec() == Zstd:
			return dst, ErrUnsupportedCodec
		case h.Magic <= magic:
			dst = append(dst, entry...)
		default:
			if dst, err = c.entry(dst, entry); err != nil {
				return dst, at(err, len(src)-len(rest))
			}
		}
		rest = after
	}
}

type downConverter struct {
	magic int8
	first int64
	o     IterOptions
	it    Iterator
	set   []byte
}

// entry appends one converted entry, or nothing and the error.
func (c *downConverter) entry(dst, entry []byte) ([]byte, error) {
	if err := c.it.Reset(entry, c.o); err != nil {
		return dst, err
	}
	h := c.it.Header()
	codec, attr := h.Codec(), int8(0)
	if c.magic > 0 && h.TimestampType() == LogAppendTime {
		attr = logAppendTimeBit
	}
	set := c.set[:0]
	base, last, maxTs := int64(-1), int64(0), NoTimestamp
	for c.it.Next() {
		r := c.it.Record()
		if codec == None && r.Offset < c.first {
			continue
		}
		if base < 0 {
			base = r.Offset
		}
		offset := r.Offset
		if codec != None && c.magic == 1 {
			offset -= base
		}
		last, maxTs = r.Offset, max(maxTs, r.Timestamp)
		set = appendMessage(set, c.magic, offset, r.Timestamp, attr, r.Key, r.Value)
	}
	c.set = set
	if err := c.it.Err(); err != nil || len(set) == 0 {
		return dst, err
	}
	if codec == None {
		return append(dst, set...), nil
	}
	value, err := appendCompressed(nil, codec, c.magic, 0, set)
	if err != nil {
		return dst, err
	}
	return appendMessage(dst, c.magic, last, maxTs, attr|int8(codec), nil, value), nil
}

// appendMessage appends one message of magic 0 or 1; see the ruler at posKeyV0.
func appendMessage(b []byte, magic int8, offset, ts int64, attr int8, key, value []byte) []byte {
	be := binary.BigEndian
	start := len(b)
	b = be.AppendUint64(b, uint64(offset))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, byte(magic), byte(attr)) // length and checksum follow
	if magic > 0 {
		b = be.AppendUint64(b, uint64(ts))
	}
	for _, p := range [][]byte{key, value} {
		if p == nil {
			b = be.AppendUint32(b, 1<<32-1)
		} else {
			b = append(be.AppendUint32(b, uint32(len(p))), p...)
		}
	}
	be.PutUint32(b[start+posLength:], uint32(len(b)-start-lengthEnd))
	be.PutUint32(b[start+posOldCRC:], crc32.ChecksumIEEE(b[start+posMagic:]))
	return b
}
