package record

import "errors"

// oldSet is an Iterator's state for an entry of magic 0 or 1.
type oldSet struct {
	single []byte // the uncompressed message that is the only record
	rest   []byte // messages inside the wrapper that are still to come
	base   int64  // what is added to their offsets
	plain  []byte // own memory, for the decompressed set
}

func (o *oldSet) stop() {
	o.single, o.rest, o.base = nil, nil, 0
	if cap(o.plain) > maxKeptCarry {
		o.plain = nil
	}
}

func (it *Iterator) startOld(entry []byte) error {
	h := it.header
	if h.Codec() == None {
		it.old.single = entry
		return nil
	}
	if err := parseMessage(entry, h, &it.rec); err != nil {
		return err
	}
	if h.Codec() == Zstd {
		return invalid("Invalid wrapper compressionType found in legacy deep record iterator %d", h.Magic)
	}
	if it.rec.Value == nil {
		return invalid("Found invalid compressed record set with null value (magic = %d)", h.Magic)
	}
	plain, err := appendDecompressed(it.old.plain[:0], h.Codec(), h.Magic, it.rec.Value, it.opt)
	it.old.plain = plain
	if err != nil {
		return err
	}
	return it.openSet(plain)
}

// openSet walks the messages of a wrapper once, to learn the last one's offset.
//
// The offsets of magic 0 are absolute. Those of magic 1 count from the first
// record, and the wrapper has the absolute offset of the last (KIP-31).
//
// Kafka: a message that is cut off at the end is ignored, and a magic-1 wrapper
// at offset 0 leaves the inner offsets as they are, for some librdkafka sent
// their sets so (AbstractLegacyRecordBatch.DeepRecordsIterator).
func (it *Iterator) openSet(set []byte) error {
	var first, last int64
	count := int32(0)
	end := 0
	for rest := set; ; count++ {
		h, _, after, err := NextEntry(rest)
		if errors.Is(err, ErrShort) {
			break
		}
		if err != nil {
			return err
		}
		if h.Magic > 1 || h.Codec() != None {
			return invalid("Inner messages must not be compressed")
		}
		if count == 0 {
			first = h.BaseOffset
		}
		last, rest, end = h.BaseOffset, after, len(set)-len(after)
	}
	if count == 0 {
		return invalid("Found invalid compressed record set with no inner records")
	}
	it.old.rest = set[:end]
	if outer := it.header.LastOffset; it.header.Magic == 1 && outer != 0 {
		if outer < last {
			return invalid("Found invalid wrapper offset in compressed v1 message set, wrapper offset '%d' is less "+
				"than the last inner message offset '%d' and it is not zero.", outer, last)
		}
		it.old.base = outer - last
	}
	it.header.BaseOffset, it.header.Count = it.old.base+first, count
	return nil
}

func (it *Iterator) nextOld() bool {
	if p := it.old.single; p != nil {
		it.old.single = nil
		return it.message(p, it.header)
	}
	if len(it.old.rest) == 0 {
		return false
	}
	h, entry, rest, err := NextEntry(it.old.rest)
	if err != nil { // openSet has read it before
		it.fail(err)
		return false
	}
	it.old.rest = rest
	if h.Magic == 1 && it.header.TimestampType() == LogAppendTime {
		h.MaxTimestamp = it.header.MaxTimestamp
	}
	h.LastOffset += it.old.base
	return it.message(entry, h)
}

func (it *Iterator) message(entry []byte, h Header) bool {
	if err := parseMessage(entry, h, &it.rec); err != nil {
		it.fail(err)
		return false
	}
	if it.opt.SkipKV {
		it.rec.Key, it.rec.Value = nil, nil
	}
	return true
}
