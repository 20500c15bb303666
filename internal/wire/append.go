package wire

import (
	"encoding/binary"
	"math"
)

// AppendBool appends one byte, 1 for true.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt8 appends one byte.
func AppendInt8(b []byte, v int8) []byte { return append(b, byte(v)) }

// AppendInt16 appends two bytes.
func AppendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }

// AppendUint16 appends two bytes.
func AppendUint16(b []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(b, v) }

// AppendInt32 appends four bytes.
func AppendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendUint32 appends four bytes.
func AppendUint32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }

// AppendInt64 appends eight bytes.
func AppendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendFloat64 appends eight bytes.
func AppendFloat64(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
}

// AppendUUID appends sixteen bytes.
func AppendUUID(b []byte, id UUID) []byte { return append(b, id[:]...) }

// AppendString appends a STRING; s must be shorter than 32768 bytes.
func AppendString(b []byte, s string) []byte {
	return append(AppendInt16(b, int16(len(s))), s...)
}

// AppendNullableString appends a NULLABLE_STRING.
func AppendNullableString(b []byte, s *string) []byte {
	if s == nil {
		return AppendInt16(b, -1)
	}
	return AppendString(b, *s)
}

// AppendCompactString appends a COMPACT_STRING.
func AppendCompactString(b []byte, s string) []byte {
	return append(AppendUvarint(b, uint32(len(s))+1), s...)
}

// AppendCompactNullableString appends a COMPACT_NULLABLE_STRING.
func AppendCompactNullableString(b []byte, s *string) []byte {
	if s == nil {
		return append(b, 0)
	}
	return AppendCompactString(b, *s)
}

// AppendBytes appends NULLABLE_BYTES; nil is null.
func AppendBytes(b, p []byte) []byte {
	if p == nil {
		return AppendInt32(b, -1)
	}
	return append(AppendInt32(b, int32(len(p))), p...)
}

// AppendCompactBytes appends COMPACT_NULLABLE_BYTES; nil is null.
func AppendCompactBytes(b, p []byte) []byte {
	if p == nil {
		return append(b, 0)
	}
	return append(AppendUvarint(b, uint32(len(p))+1), p...)
}

// AppendVarintBytes appends the byte field of a record; nil is null.
func AppendVarintBytes(b, p []byte) []byte {
	if p == nil {
		return AppendVarint(b, -1)
	}
	return append(AppendVarint(b, int32(len(p))), p...)
}

// AppendArrayLen appends the length of an ARRAY; -1 is null.
func AppendArrayLen(b []byte, n int) []byte { return AppendInt32(b, int32(n)) }

// AppendCompactArrayLen appends the length of a COMPACT_ARRAY; -1 is null.
func AppendCompactArrayLen(b []byte, n int) []byte { return AppendUvarint(b, uint32(n+1)) }

// Tag is one tagged field.
type Tag struct {
	Tag  uint32
	Data []byte
}

// AppendTags appends a tagged-field section; tags must rise in number. Without
// tags it is the single byte 0.
func AppendTags(b []byte, tags ...Tag) []byte {
	b = AppendUvarint(b, uint32(len(tags)))
	for _, t := range tags {
		b = AppendUvarint(b, t.Tag)
		b = append(AppendUvarint(b, uint32(len(t.Data))), t.Data...)
	}
	return b
}
