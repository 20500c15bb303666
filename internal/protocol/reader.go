package protocol

import (
	"errors"
	"fmt"
	"math"

	"tidemark/internal/wire"
)

// MalformedError says that a frame does not follow the schema of its key and
// version. Kafka closes the connection on such a frame without an answer.
type MalformedError struct {
	// Key and Version are those of the frame, −1 when they could not be read.
	Key, Version int16
	// Err says what is wrong, and where.
	Err error
}

// Error describes the frame and what is wrong with it.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed request (key %d, version %d): %v", e.Key, e.Version, e.Err)
}

// Unwrap returns what is wrong.
func (e *MalformedError) Unwrap() error { return e.Err }

var (
	errNull       = errors.New("null where the schema has none")
	errLongString = errors.New("string longer than 32767 bytes")
	errUnknownKey = errors.New("unknown key")
	errTooLarge   = errors.New("elements take more memory than a request of this size may")
)

// reader reads a request body as Kafka does, which is more lenient than the
// schema: any negative length is null, tagged fields may come in any order and
// be longer than their value, and bytes may follow the end of the message. What
// it takes aliases the body.
type reader struct {
	wire.Reader
	flex bool // compact lengths and tagged fields
}

func newReader(b []byte, flex bool) (r reader) {
	r.Reset(b)
	r.flex = flex
	return r
}

func (r *reader) ok() bool { return r.Err() == nil }

// length takes a length or count: a varint of one more where flexible, else an
// int32, or an int16 when short. Negative is null. The result is at most the
// number of bytes left.
func (r *reader) length(short bool) int {
	n := 0
	switch {
	case r.flex:
		n = int(int64(r.Uvarint()) - 1)
	case short:
		n = int(r.Int16())
	default:
		n = int(r.Int32())
	}
	if n > r.Len() {
		r.Fail(wire.ErrLength)
		return 0
	}
	return n
}

// nullableString takes the bytes of a string, nil for null.
func (r *reader) nullableString() []byte {
	n := r.length(true)
	if n > math.MaxInt16 {
		r.Fail(errLongString)
	}
	if n < 0 {
		return nil
	}
	return r.Raw(n)
}

// string takes the bytes of a string that may not be null.
func (r *reader) string() []byte {
	s := r.nullableString()
	if s == nil {
		r.Fail(errNull)
	}
	return s
}

// nullableBytes takes a byte field, nil for null.
func (r *reader) nullableBytes() []byte {
	if n := r.length(false); n >= 0 {
		return r.Raw(n)
	}
	return nil
}

// nullableArray takes the count of an array, negative for null. Elements are at
// least minSize bytes, so a count that cannot be true fails here.
func (r *reader) nullableArray(minSize int) int {
	n := r.length(false)
	if n > 0 && n > r.Len()/minSize {
		r.Fail(wire.ErrLength)
		return 0
	}
	return n
}

// array takes the count of an array that may not be null.
func (r *reader) array(minSize int) int {
	n := r.nullableArray(minSize)
	if n < 0 {
		r.Fail(errNull)
		return 0
	}
	return n
}

// tags calls field for each tagged field of a flexible message, with a reader
// over the bytes of that one. field says false when it does not know the tag.
// A nil field skips all.
func (r *reader) tags(field func(tag uint32, v *reader) bool) {
	if !r.flex {
		return
	}
	for n := r.Uvarint(); n > 0 && r.ok(); n-- {
		tag, size := r.Uvarint(), r.Uvarint()
		if int64(size) > int64(r.Len()) {
			r.Fail(wire.ErrLength)
			return
		}
		data := r.Raw(int(size))
		if field == nil || !r.ok() {
			continue
		}
		value := newReader(data, true)
		if !field(tag, &value) {
			continue
		}
		if !value.ok() {
			r.Fail(fmt.Errorf("tag %d: %w", tag, value.Err()))
		}
	}
}

// malformed is the failure as a *MalformedError, nil without one.
func (r *reader) malformed(key, version int16) error {
	if r.ok() {
		return nil
	}
	return &MalformedError{Key: key, Version: version, Err: r.Err()}
}
