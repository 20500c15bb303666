package wire

// Str takes a STRING: int16 length, bytes. Null is ErrLength. (It is not named
// String because printing a Reader must not read from it.)
func (r *Reader) Str() string { return string(r.Raw(int(r.Int16()))) }

// NullableString takes a NULLABLE_STRING: int16 length or -1, bytes.
func (r *Reader) NullableString() *string { return r.stringOrNil(int(r.Int16())) }

// CompactString takes a COMPACT_STRING: uvarint length+1, bytes. Null is
// ErrLength.
func (r *Reader) CompactString() string { return string(r.Raw(r.compactLen())) }

// CompactNullableString takes a COMPACT_NULLABLE_STRING.
func (r *Reader) CompactNullableString() *string { return r.stringOrNil(r.compactLen()) }

// Bytes takes BYTES or NULLABLE_BYTES: int32 length or -1 for nil. The result
// aliases the input and is not nil for length 0.
func (r *Reader) Bytes() []byte { return r.bytesOrNil(int(r.Int32())) }

// CompactBytes takes COMPACT_BYTES or COMPACT_NULLABLE_BYTES, as [Reader.Bytes].
func (r *Reader) CompactBytes() []byte { return r.bytesOrNil(r.compactLen()) }

// VarintBytes takes the byte field of a record: varint length, negative for
// nil.
func (r *Reader) VarintBytes() []byte { return r.bytesOrNil(max(int(r.Varint()), -1)) }

// ArrayLen takes the length of an ARRAY: int32, -1 for null. minSize is the
// least number of bytes an element takes (at least 1); more elements than the
// rest of the input can hold is ErrLength, so the result is safe to allocate by.
func (r *Reader) ArrayLen(minSize int) int { return r.boundLen(int(r.Int32()), minSize) }

// CompactArrayLen takes the length of a COMPACT_ARRAY, as [Reader.ArrayLen].
func (r *Reader) CompactArrayLen(minSize int) int { return r.boundLen(r.compactLen(), minSize) }

// Tags takes a tagged-field section and calls f for each field, its data
// aliasing the input; f may be nil to pass over them. Tags that do not rise are
// ErrTag.
//
//	uvarint count, count × (uvarint tag, uvarint size, data)
func (r *Reader) Tags(f func(tag uint32, data []byte)) {
	n := int64(r.Uvarint())
	if n*2 > int64(r.Len()) {
		r.Fail(ErrLength)
		return
	}
	last := int64(-1)
	for ; n > 0 && r.err == nil; n-- {
		tag := r.Uvarint()
		size := r.Uvarint()
		if int64(size) > int64(r.Len()) {
			r.Fail(ErrShort)
			return
		}
		if int64(tag) <= last {
			r.Fail(ErrTag)
			return
		}
		last = int64(tag)
		data := r.Raw(int(size))
		if f != nil && r.err == nil {
			f(tag, data)
		}
	}
}

// compactLen takes a uvarint length+1 and returns the length, -1 for null.
func (r *Reader) compactLen() int {
	n := int64(r.Uvarint()) - 1
	if n > int64(r.Len()) {
		r.Fail(ErrShort)
		return 0
	}
	return int(n)
}

func (r *Reader) boundLen(n, minSize int) int {
	switch {
	case r.err != nil:
		return 0
	case n < -1 || n > r.Len()/max(minSize, 1):
		r.Fail(ErrLength)
		return 0
	}
	return n
}

func (r *Reader) bytesOrNil(n int) []byte {
	if n == -1 {
		return nil
	}
	return r.Raw(n)
}

func (r *Reader) stringOrNil(n int) *string {
	if n == -1 || r.err != nil {
		return nil
	}
	p := r.Raw(n)
	if r.err != nil {
		return nil
	}
	s := string(p)
	return &s
}
