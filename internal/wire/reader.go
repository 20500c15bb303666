package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Reader takes values from the front of a byte slice. After the first error
// every method returns a zero value, and [Reader.Err] the error; so a message
// is read field by field and checked once.
//
// Byte fields alias the input; strings are copies.
type Reader struct {
	b   []byte
	pos int
	err error
}

// NewReader returns a Reader over b, which it does not copy.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Reset makes r read b from its start, without an error.
func (r *Reader) Reset(b []byte) { *r = Reader{b: b} }

// Err is the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Pos is the number of bytes taken so far.
func (r *Reader) Pos() int { return r.pos }

// Len is the number of bytes left.
func (r *Reader) Len() int { return len(r.b) - r.pos }

// Rest takes all that is left; it aliases the input.
func (r *Reader) Rest() []byte { return r.Raw(r.Len()) }

// Raw takes n bytes, which alias the input. A negative n is ErrLength.
func (r *Reader) Raw(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 {
		r.Fail(ErrLength)
		return nil
	}
	if n > r.Len() {
		r.Fail(ErrShort)
		return nil
	}
	p := r.b[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return p
}

// Skip passes over n bytes.
func (r *Reader) Skip(n int) { r.Raw(n) }

// Fail sets the error, if none is set yet, wrapped with the position.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d of %d: %w", r.pos, len(r.b), err)
	}
}

// Bool takes one byte; any but 0 is true.
func (r *Reader) Bool() bool { return r.Int8() != 0 }

// Int8 takes one byte.
func (r *Reader) Int8() int8 {
	if p := r.Raw(1); p != nil {
		return int8(p[0])
	}
	return 0
}

// Int16 takes two bytes.
func (r *Reader) Int16() int16 { return int16(r.Uint16()) }

// Uint16 takes two bytes.
func (r *Reader) Uint16() uint16 {
	if p := r.Raw(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

// Int32 takes four bytes.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Uint32 takes four bytes.
func (r *Reader) Uint32() uint32 {
	if p := r.Raw(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

// Int64 takes eight bytes.
func (r *Reader) Int64() int64 {
	if p := r.Raw(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// Float64 takes eight bytes.
func (r *Reader) Float64() float64 { return math.Float64frombits(uint64(r.Int64())) }

// UUID takes sixteen bytes.
func (r *Reader) UUID() (id UUID) {
	copy(id[:], r.Raw(len(id)))
	return id
}

// Uvarint takes an unsigned variable-length integer.
func (r *Reader) Uvarint() uint32 {
	if r.err != nil {
		return 0
	}
	v, n := Uvarint(r.b[r.pos:])
	if !r.took(n) {
		return 0
	}
	return v
}

// Varint takes a zig-zag variable-length int32.
func (r *Reader) Varint() int32 {
	u := r.Uvarint()
	return int32(u>>1) ^ -int32(u&1)
}

// Varlong takes a zig-zag variable-length int64.
func (r *Reader) Varlong() int64 {
	if r.err != nil {
		return 0
	}
	v, n := Varlong(r.b[r.pos:])
	if !r.took(n) {
		return 0
	}
	return v
}

// Uvarlong takes an unsigned variable-length integer of up to 64 bits.
func (r *Reader) Uvarlong() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := Uvarlong(r.b[r.pos:])
	if !r.took(n) {
		return 0
	}
	return v
}

func (r *Reader) took(n int) bool {
	switch {
	case n > 0:
		r.pos += n
		return true
	case n == 0:
		r.Fail(ErrShort)
	default:
		r.Fail(ErrVarint)
	}
	return false
}
