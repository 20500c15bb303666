package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestVarintBytes(t *testing.T) {
	for _, c := range []struct {
		v   int32
		hex string
	}{
		{0, "00"}, {-1, "01"}, {1, "02"}, {63, "7e"}, {-64, "7f"}, {64, "8001"}, {8191, "fe7f"}, {8192, "808001"},
		{math.MaxInt32, "feffffff0f"}, {math.MinInt32, "ffffffff0f"},
	} {
		b := AppendVarint(nil, c.v)
		if hex.EncodeToString(b) != c.hex || SizeVarint(c.v) != len(b) {
			t.Errorf("AppendVarint(%d) = %x, size %d; want %s", c.v, b, SizeVarint(c.v), c.hex)
		}
		if got, n := Varint(b); got != c.v || n != len(b) {
			t.Errorf("Varint(%x) = %d, %d; want %d", b, got, n, c.v)
		}
		for i := range b {
			if _, n := Varint(b[:i]); n != 0 {
				t.Errorf("Varint(%x): n = %d for a cut one", b[:i], n)
			}
		}
	}
}

func TestVarintTooLong(t *testing.T) {
	long := bytes.Repeat([]byte{0x80}, 11)
	if _, n := Uvarint(long[:5]); n != -1 {
		t.Errorf("Uvarint of five continued bytes: n = %d", n)
	}
	if _, n := Varlong(long[:9]); n != 0 {
		t.Errorf("Varlong of nine continued bytes: n = %d", n)
	}
	if _, n := Varlong(long[:10]); n != -1 {
		t.Errorf("Varlong of ten continued bytes: n = %d", n)
	}
	r := NewReader(long)
	if r.Uvarint(); !errors.Is(r.Err(), ErrVarint) {
		t.Errorf("Reader.Uvarint: %v", r.Err())
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i32, i64 := rapid.Int32().Draw(t, "i32"), rapid.Int64().Draw(t, "i64")
		s := rapid.StringN(0, 20, 40).Draw(t, "s")
		p := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "p")
		b := AppendVarint(nil, i32)
		b = AppendVarlong(b, i64)
		b = AppendUvarlong(b, uint64(i64))
		b = AppendNullableString(AppendString(b, s), nil)
		b = AppendCompactNullableString(AppendCompactString(b, s), &s)
		b = AppendBytes(AppendBytes(b, p), nil)
		b = AppendCompactBytes(AppendCompactBytes(b, p), nil)
		b = AppendVarintBytes(AppendVarintBytes(b, p), nil)
		b = AppendTags(b, Tag{3, p}, Tag{9, nil})
		b = AppendFloat64(AppendInt64(b, i64), 2.5)
		if SizeVarlong(i64) != len(AppendVarlong(nil, i64)) {
			t.Fatalf("SizeVarlong(%d)", i64)
		}
		r := NewReader(b)
		eq := func(ok bool, what string) {
			if !ok {
				t.Fatalf("%s differs (err %v)", what, r.Err())
			}
		}
		eq(r.Varint() == i32, "varint")
		eq(r.Varlong() == i64, "varlong")
		eq(r.Uvarlong() == uint64(i64), "uvarlong")
		eq(r.Str() == s && r.NullableString() == nil, "string")
		eq(r.CompactString() == s && *r.CompactNullableString() == s, "compact string")
		eq(bytes.Equal(r.Bytes(), p) && r.Bytes() == nil, "bytes")
		eq(bytes.Equal(r.CompactBytes(), p) && r.CompactBytes() == nil, "compact bytes")
		eq(bytes.Equal(r.VarintBytes(), p) && r.VarintBytes() == nil, "varint bytes")
		var tags []uint32
		r.Tags(func(tag uint32, _ []byte) { tags = append(tags, tag) })
		eq(len(tags) == 2 && tags[0] == 3 && tags[1] == 9, "tags")
		eq(r.Int64() == i64 && r.Float64() == 2.5, "fixed")
		eq(r.Len() == 0 && r.Err() == nil, "end")
	})
}

func TestReaderErrors(t *testing.T) {
	for name, c := range map[string]struct {
		hex  string
		read func(*Reader)
		want error
	}{
		"short int":             {"0000", func(r *Reader) { r.Int32() }, ErrShort},
		"null string":           {"ffff", func(r *Reader) { r.Str() }, ErrLength},
		"null compact string":   {"00", func(r *Reader) { r.CompactString() }, ErrLength},
		"string beyond input":   {"000561", func(r *Reader) { r.Str() }, ErrShort},
		"negative bytes":        {"fffffffe", func(r *Reader) { r.Bytes() }, ErrLength},
		"huge compact bytes":    {"ffffffff0f", func(r *Reader) { r.CompactBytes() }, ErrShort},
		"array beyond input":    {"7fffffff0102", func(r *Reader) { r.ArrayLen(1) }, ErrLength},
		"compact array":         {"0a0102", func(r *Reader) { r.CompactArrayLen(4) }, ErrShort},
		"array of large things": {"000000020102030405", func(r *Reader) { r.ArrayLen(3) }, ErrLength},
		"tags beyond input":     {"ff01", func(r *Reader) { r.Tags(nil) }, ErrLength},
		"tag size":              {"010009", func(r *Reader) { r.Tags(nil) }, ErrShort},
		"tags not rising":       {"0201000100", func(r *Reader) { r.Tags(nil) }, ErrTag},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := hex.DecodeString(c.hex)
			r := NewReader(b)
			c.read(r)
			if !errors.Is(r.Err(), c.want) {
				t.Fatalf("error %v, want %v", r.Err(), c.want)
			}
			first := r.Err()
			if r.Int8() != 0 || r.Str() != "" || r.Bytes() != nil || r.CompactArrayLen(1) != 0 || r.Err() != first {
				t.Error("the error does not stick")
			}
		})
	}
}

func TestArrayLenNull(t *testing.T) {
	r := NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0, 3, 1, 2})
	if n := r.ArrayLen(4); n != -1 {
		t.Errorf("ARRAY null: %d", n)
	}
	if n := r.CompactArrayLen(4); n != -1 {
		t.Errorf("COMPACT_ARRAY null: %d", n)
	}
	if n := r.CompactArrayLen(1); n != 2 || r.Err() != nil {
		t.Errorf("COMPACT_ARRAY of two: %d, %v", n, r.Err())
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, []byte{0, 1, 'a', 2, 'b', 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, ops, data []byte) {
		r := NewReader(data)
		for _, op := range ops {
			before := r.Len()
			readOne(r, op)
			if r.Len() > before || r.Len() < 0 {
				t.Fatalf("op %d: %d bytes left after %d", op, r.Len(), before)
			}
		}
	})
}

func readOne(r *Reader, op byte) {
	reads := []func(){
		func() { r.Varint() }, func() { r.Varlong() }, func() { r.Str() }, func() { r.NullableString() },
		func() { r.CompactString() }, func() { r.CompactNullableString() }, func() { r.Bytes() },
		func() { r.CompactBytes() }, func() { r.VarintBytes() }, func() { r.Tags(nil) }, func() { r.UUID() },
		func() { _ = make([]byte, max(0, r.ArrayLen(1))) }, func() { _ = make([]byte, max(0, r.CompactArrayLen(1))) },
	}
	reads[int(op)%len(reads)]()
}

func BenchmarkVarint(b *testing.B) {
	data := AppendVarint(AppendVarint(AppendVarint(nil, 3), 300), 70000)
	for b.Loop() {
		for p := data; len(p) > 0; {
			_, n := Varint(p)
			p = p[n:]
		}
	}
}
