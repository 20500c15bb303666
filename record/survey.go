package record

import (
	"encoding/binary"
	"math/bits"
)

// Survey is what a leader asks of the records of a batch that it keeps as it came.
type Survey struct {
	MinTimestamp, MaxTimestamp int64 // ms since 1970
	NullKeys                   bool  // some record has no key
}

// Survey walks over the records of a batch, several times faster than an [Iterator] and without judging: ok is false
// for a batch that is compressed, of LogAppendTime or empty, that has a record with headers, or whose records do not
// fill it exactly; an Iterator tells what is wrong, if anything is. The header's Count and Size must be right.
func (b Batch) Survey() (s Survey, ok bool) {
	left := b.Count()
	if b.Codec() != None || b.TimestampType() != CreateTime || left <= 0 {
		return s, false
	}
	base := b.BaseTimestamp()
	s.MinTimestamp, s.MaxTimestamp = 1<<63-1, -1<<63
	at := HeaderSize
	for ; left > 0; left-- {
		size, next := shortVarint(b, at)
		end := next + int(size>>1)
		if next < 0 || size&1 != 0 || end > len(b) {
			return s, false
		}
		delta, next := shortVarint(b, next+1) // after the attributes
		if next < 0 {
			return s, false
		}
		_, next = shortVarint(b, next)
		keySize, next := skipField(b, next)
		_, next = skipField(b, next)
		if next != end-1 || b[next] != 0 { // the number of headers
			return s, false
		}
		at = end
		ts := base + (int64(delta>>1) ^ -int64(delta&1))
		s.MinTimestamp, s.MaxTimestamp = min(s.MinTimestamp, ts), max(s.MaxTimestamp, ts)
		s.NullKeys = s.NullKeys || keySize == null
	}
	return s, at == len(b)
}

// null is the length −1, zig-zag.
const null = 1

// skipField passes over a length and so many bytes. It returns the length as it is written and the position after the
// bytes, −1 when there is none.
func skipField(b []byte, at int) (size uint64, next int) {
	size, next = shortVarint(b, at)
	if size == null || next < 0 {
		return size, next
	}
	if next += int(size >> 1); size&1 != 0 || next >= len(b) {
		return size, -1
	}
	return size, next
}

// shortVarint takes a varint of at most four bytes at a position, zig-zag as it is written, and returns the position
// after it; −1 when at is none, or when it is longer.
func shortVarint(b []byte, at int) (v uint64, next int) {
	if at < 0 || at >= len(b) {
		return 0, -1
	}
	if b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	var x uint64
	if len(b)-at >= 8 {
		x = binary.LittleEndian.Uint64(b[at:])
	} else {
		for i, c := range b[at:] {
			x |= uint64(c) << (8 * i)
		}
	}
	n := bits.TrailingZeros64(^x&0x80808080)/8 + 1
	if n > 4 || at+n > len(b) {
		return 0, -1
	}
	x &= 1<<(8*n) - 1
	return x&0x7f | x>>1&(0x7f<<7) | x>>2&(0x7f<<14) | x>>3&(0x7f<<21), at + n
}
