package wire

const (
	maxVarint32 = 5
	maxVarint64 = 10
)

// Uvarint decodes a uvarint from the start of b and returns it with the number
// of bytes it took. n is 0 when b ends too early and -1 when more than five
// bytes follow on. Bits above the 32nd are dropped.
func Uvarint(b []byte) (v uint32, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint32(b[0]), 1
	}
	var shift uint
	for i, c := range b {
		if i == maxVarint32 {
			return 0, -1
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, i + 1
		}
		shift += 7
	}
	if len(b) >= maxVarint32 {
		return 0, -1
	}
	return 0, 0
}

// Uvarlong decodes an unsigned 64-bit variable-length integer; n is as in
// [Uvarint], with ten bytes as the limit.
func Uvarlong(b []byte) (v uint64, n int) {
	var shift uint
	for i, c := range b {
		if i == maxVarint64 {
			return 0, -1
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i + 1
		}
		shift += 7
	}
	if len(b) >= maxVarint64 {
		return 0, -1
	}
	return 0, 0
}

// Varint decodes a zig-zag int32; n is as in [Uvarint]. Most numbers in a record take one byte or two.
func Varint(b []byte) (v int32, n int) {
	if len(b) > 1 {
		u := uint32(b[0])
		if u < 0x80 {
			return int32(u>>1) ^ -int32(u&1), 1
		}
		if b[1] < 0x80 {
			u = u&0x7f | uint32(b[1])<<7
			return int32(u>>1) ^ -int32(u&1), 2
		}
	}
	u, n := Uvarint(b)
	return int32(u>>1) ^ -int32(u&1), n
}

// Varlong decodes a zig-zag int64; n is as in [Uvarlong].
func Varlong(b []byte) (v int64, n int) {
	if len(b) > 1 {
		u := uint64(b[0])
		if u < 0x80 {
			return int64(u>>1) ^ -int64(u&1), 1
		}
		if b[1] < 0x80 {
			u = u&0x7f | uint64(b[1])<<7
			return int64(u>>1) ^ -int64(u&1), 2
		}
	}
	u, n := Uvarlong(b)
	return int64(u>>1) ^ -int64(u&1), n
}

// AppendUvarint appends v as a uvarint.
func AppendUvarint(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendUvarlong appends v as an unsigned variable-length integer.
func AppendUvarlong(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendVarint appends v as a zig-zag varint.
func AppendVarint(b []byte, v int32) []byte {
	return AppendUvarint(b, uint32(v)<<1^uint32(v>>31))
}

// AppendVarlong appends v as a zig-zag varlong.
func AppendVarlong(b []byte, v int64) []byte {
	return AppendUvarlong(b, uint64(v)<<1^uint64(v>>63))
}

// SizeUvarint is the number of bytes that [AppendUvarint] adds for v.
func SizeUvarint(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// SizeVarint is the number of bytes that [AppendVarint] adds for v.
func SizeVarint(v int32) int { return SizeUvarint(uint32(v)<<1 ^ uint32(v>>31)) }

// SizeVarlong is the number of bytes that [AppendVarlong] adds for v.
func SizeVarlong(v int64) int {
	n := 1
	for u := uint64(v)<<1 ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
