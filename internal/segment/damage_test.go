package segment

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/index"
	"tidemark/record"
)

// unsealed makes a segment of batches of 200 bytes, two offsets each, and returns it as after a restart.
func unsealed(t testing.TB, n int) *Segment {
	t.Helper()
	env := testEnv(t)
	cfg := Config{IndexIntervalBytes: 500, MaxIndexBytes: 1 << 16}
	s, err := Create(env, 100, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		add(t, s, sized(t, 100+int64(2*i), 200, int64(1000+i), int64(1000+i)))
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	s.Release()
	return Open(env, 100, cfg, HasIndex|HasTime)
}

func overwrite(t testing.TB, s *Segment, pos int64, b []byte) {
	t.Helper()
	if _, err := s.files().log.WriteAt(b, pos); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsPassedOver destroys bytes in the middle, across batches: what lies around is found, and the offsets of
// what is gone are told as lost.
func TestDamageIsPassedOver(t *testing.T) {
	for name, c := range map[string]struct {
		pos      int64
		bytes    []byte
		from, to int64 // lost
	}{
		"a length":                 {pos: 8*200 + 8, bytes: []byte{0x7f}, from: 116, to: 118},
		"a magic":                  {pos: 8*200 + 16, bytes: []byte{77}, from: 116, to: 118},
		"zeros over 3 batches":     {pos: 8*200 + 100, bytes: make([]byte, 350), from: 116, to: 122},
		"the first batch":          {pos: 0, bytes: make([]byte, 30), from: 100, to: 102},
		"the last batch":           {pos: 39*200 + 10, bytes: make([]byte, 30), from: 178, to: math.MaxInt64},
		"more than the read-ahead": {pos: 1000, bytes: make([]byte, 5000), from: 110, to: 160},
	} {
		t.Run(name, func(t *testing.T) {
			s := unsealed(t, 40)
			overwrite(t, s, c.pos, c.bytes)
			for offset := int64(100); offset < 180; offset++ {
				at, ok, err := s.Find(offset, 8000)
				lost := offset >= c.from && offset < c.to
				if lost != (err != nil) || !lost && (!ok || at.BaseOffset > offset || at.LastOffset < offset) {
					t.Fatalf("offset %d: %+v %v %v", offset, at, ok, err)
				}
			}
			list := s.Damage()
			if len(list) != 1 || list[0].From != c.from || list[0].To != c.to {
				t.Errorf("%+v, want the offsets [%d, %d)", list, c.from, c.to)
			}
			if n := s.env.Metrics.Damages.Load(); n != 1 {
				t.Errorf("reported %d times", n)
			}
		})
	}
}

// TestProveFindsFlippedBits has bad checksums, which headers do not show: a range is proven up to the first of them.
func TestProveFindsFlippedBits(t *testing.T) {
	s := unsealed(t, 40)
	if size, err := s.Size(); err != nil || size != 8000 {
		t.Fatal(size, err)
	}
	overwrite(t, s, 10*200+150, []byte{1})
	for _, c := range []struct{ pos, upTo, want int64 }{
		{0, 700, 700}, {1000, 2600, 2000}, {2200, 3000, 3000}, {0, 8000, 2000}, {2200, 8000, 8000},
	} {
		got, err := s.Prove(c.pos, c.upTo, 8000)
		if err != nil || got != c.want {
			t.Errorf("from %d up to %d: %d, %v, want %d", c.pos, c.upTo, got, err, c.want)
		}
	}
	if !s.Proven() {
		t.Error("the segment is not proven")
	}
	if _, _, err := s.Find(121, 8000); err == nil {
		t.Error("a batch with a wrong checksum is found")
	}
}

// TestSealCodec encodes and decodes any seal, and decodes any bytes.
func TestSealCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i64, u32 := rapid.Int64(), rapid.Uint32()
		seal := Seal{
			BaseOffset: i64.Draw(t, "base"), SizeBytes: i64.Draw(t, "size"), First: u32.Draw(t, "first"),
			Last: u32.Draw(t, "last"), LastPos: i64.Draw(t, "pos"), Aborts: rapid.Bool().Draw(t, "aborts"),
			Largest: index.TimeEntry{Timestamp: i64.Draw(t, "ts"), Offset: i64.Draw(t, "of")},
		}
		for i := range seal.Indexes {
			seal.Indexes[i] = FileSum{i64.Draw(t, "index"), u32.Draw(t, "sum")}
		}
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			pos := i64.Draw(t, "at")
			seal.Damage = append(seal.Damage, Damage{
				Pos: pos, End: i64.Draw(t, "end"), From: i64.Draw(t, "from"), To: i64.Draw(t, "to"),
				Err: &record.CorruptError{Pos: pos, Offset: i64.Draw(t, "offset"), Reason: rapid.StringN(0, 40, 80).Draw(t, "why")},
			})
		}
		data := seal.AppendTo(nil)
		got, err := DecodeSeal(data)
		if err != nil || string(got.AppendTo(nil)) != string(data) {
			t.Fatalf("%+v became %+v, %v", seal, got, err)
		}
		if len(seal.Damage) == 0 && len(data) != sealFixedSize {
			t.Fatalf("%d bytes", len(data))
		}
		for n := range data {
			if _, err := DecodeSeal(data[:n]); err == nil {
				t.Fatalf("the first %d bytes of %d decode", n, len(data))
			}
		}
		_, _ = DecodeSeal(rapid.SliceOf(rapid.Byte()).Draw(t, "any"))
	})
}
