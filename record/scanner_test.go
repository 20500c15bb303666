package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
)

// The batch of spec/storage.md §2.1: two records as a producer sent them, and
// the first 17 bytes as Kafka stored them at offset 2, leader epoch 0.
const (
	sentHex = "000000000000000000000045ffffffff02db7080c00000000000010000018bcfe568000000018bcfe56805" +
		"ffffffffffffffffffffffffffff00000002" + "1400000004" + "6b31" + "04" + "7631" + "00" + "10000a02046b320100"
	storedPrefixHex = "0000000000000002" + "00000045" + "00000000" + "02"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBatchStored(t *testing.T) {
	b, err := ParseBatch(append(unhex(t, sentHex), 1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	if !b.ValidCRC() || b.Count() != 2 || b.LastOffset() != 1 || b.SizeBytes() != len(b) || b.LeaderEpoch() != -1 {
		t.Fatalf("parsed wrong: %+v", b.Header())
	}
	b.SetBaseOffset(2)
	b.SetLeaderEpoch(0)
	if got := hex.EncodeToString(b); got != storedPrefixHex+sentHex[34:] {
		t.Errorf("stored as\n%s", got)
	}
	before := bytes.Clone(b)
	b.SetMaxTimestamp(b.MaxTimestamp(), CreateTime)
	if !bytes.Equal(before, b) {
		t.Error("an unchanged maximum timestamp changed bytes")
	}
	b.SetMaxTimestamp(1700000000005, LogAppendTime)
	if !b.ValidCRC() || b.TimestampType() != LogAppendTime || b.BaseTimestamp() != 1700000000000 {
		t.Errorf("after SetMaxTimestamp: %+v", b.Header())
	}
	b.SetLastOffset(9)
	if b.BaseOffset() != 8 || b.NextOffset() != 10 {
		t.Errorf("after SetLastOffset: base %d, next %d", b.BaseOffset(), b.NextOffset())
	}
}

// Kafka: unknown attribute bits survive unless the timestamp changes.
func TestUnknownAttributeBits(t *testing.T) {
	b := Batch(unhex(t, sentHex))
	b[posAttributes] = 0x7f
	b[posAttributes+1] = 0x80 | 0x50
	putCRC(b)
	b.SetMaxTimestamp(b.MaxTimestamp(), CreateTime)
	if b.Attributes() != 0x7fd0 {
		t.Errorf("attributes %#x, want them untouched", b.Attributes())
	}
	b.SetMaxTimestamp(7, CreateTime)
	if b.Attributes() != 0x50 || !b.ValidCRC() {
		t.Errorf("attributes %#x, want the known bits only", b.Attributes())
	}
}

func TestAddSequence(t *testing.T) {
	const top = 1<<31 - 1
	for _, c := range [][3]int32{{0, 0, 0}, {5, 3, 8}, {top, 0, top}, {top, 1, 0}, {top - 1, 3, 1}} {
		if got := AddSequence(c[0], c[1]); got != c[2] {
			t.Errorf("AddSequence(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
	if got := lastSequence(NoSequence, 4); got != NoSequence {
		t.Errorf("last sequence without one: %d", got)
	}
}

func TestParseHeaderErrors(t *testing.T) {
	sent := unhex(t, sentHex)
	edit := func(pos int, b byte) []byte {
		p := bytes.Clone(sent)
		p[pos] = b
		return p
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"magic 3":        {edit(posMagic, 3), "Invalid magic found in record: 3"},
		"magic -1":       {edit(posMagic, 0xff), "Invalid magic found in record: -1"},
		"length 0":       {make([]byte, 20), "record size 0 is less than the minimum record overhead (14)"},
		"length 0 short": {make([]byte, 12), "record size 0 is less than the minimum record overhead (14)"},
		"length 48":      {edit(posLength+3, 48), "record size 48 is less than the minimum record overhead (49)"},
		"negative":       {edit(posLength, 0x80), "record size -2147483579 is less"},
		"v1 length 21":   {framed("\x00\x00\x00\x15", 1), "size 21 is less"},
		"largest":        {framed("\x7f\xff\xff\xff", 2), "larger than any"},
	} {
		_, err := ParseHeader(c.b)
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for n := range HeaderSize {
		if _, err := ParseHeader(sent[:n]); err != ErrShort {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// framed is the start of an entry, up to the magic.
func framed(length string, magic byte) []byte {
	return append([]byte("\x00\x00\x00\x00\x00\x00\x00\x00"+length+"\x00\x00\x00\x00"), magic)
}

func TestScannerWalks(t *testing.T) {
	sent := unhex(t, sentHex)
	var file []byte
	for i := range int64(2000) {
		b := Batch(bytes.Clone(sent))
		b.SetBaseOffset(2 * i)
		file = append(file, b...)
	}
	s := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
	n := int64(0)
	for ; s.Next(); n++ {
		if s.Header().BaseOffset != 2*n || s.Pos() != n*int64(len(sent)) {
			t.Fatalf("entry %d: offset %d at %d", n, s.Header().BaseOffset, s.Pos())
		}
		if n%3 == 0 {
			if ok, err := s.ValidCRC(); !ok || err != nil {
				t.Fatalf("entry %d: checksum %v, %v", n, ok, err)
			}
		}
		if b, err := s.Batch(); err != nil || !bytes.Equal(b, file[s.Pos():s.Pos()+int64(len(sent))]) {
			t.Fatalf("entry %d: wrong bytes, %v", n, err)
		}
	}
	if s.Err() != nil || n != 2000 || s.End() != int64(len(file)) {
		t.Fatalf("%d entries, end %d, %v", n, s.End(), s.Err())
	}
	if s.BytesRead() > int64(len(file))+2*maxReadAhead {
		t.Errorf("read %d bytes of a file of %d", s.BytesRead(), len(file))
	}
}

func TestScannerReadsHeadersOnly(t *testing.T) {
	b := make([]byte, 1<<20)
	copy(b, unhex(t, sentHex))
	b[posLength+1], b[posLength+2], b[posLength+3] = 0x0f, 0xff, 0xf4
	file := bytes.Repeat(b, 8)
	s := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
	n := 0
	for ; s.Next(); n++ {
		if ok, err := s.ValidCRC(); n == 3 && (ok || err != nil) {
			t.Errorf("checksum of a wrong entry: %v, %v", ok, err)
		}
	}
	if n != 8 || s.Err() != nil {
		t.Fatalf("%d entries, %v", n, s.Err())
	}
	s.Reset(bytes.NewReader(file), 0, int64(len(file)))
	for s.Next() {
	}
	if s.BytesRead() > 8*maxReadAhead || cap(s.buf) > 2*maxReadAhead {
		t.Errorf("read %d bytes into a buffer of %d for eight headers", s.BytesRead(), cap(s.buf))
	}
	s.MaxBatchBytes = 100
	s.Reset(bytes.NewReader(file), 0, int64(len(file)))
	s.Next()
	if _, err := s.Batch(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("entry above the limit: %v", err)
	}
}

func TestScannerDamage(t *testing.T) {
	sent := unhex(t, sentHex)
	n := len(sent)
	for name, c := range map[string]struct {
		tail       []byte
		incomplete bool
	}{
		"part of a length": {sent[:10], true},
		"part of a header": {sent[:40], true},
		"part of a body":   {sent[:n-1], true},
		"zeros":            {make([]byte, 100), false},
		"few zeros":        {make([]byte, 12), false},
		"magic":            {append(bytes.Repeat([]byte{0}, 11), 99, 0, 0, 0, 0, 9), false},
	} {
		file := append(bytes.Clone(sent), c.tail...)
		s := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
		s.File = "00.log"
		if !s.Next() || s.Next() || s.Next() {
			t.Errorf("%s: not exactly one entry", name)
		}
		var corrupt *CorruptError
		if !errors.As(s.Err(), &corrupt) {
			t.Fatalf("%s: %v", name, s.Err())
		}
		if corrupt.Incomplete != c.incomplete || corrupt.Pos != int64(n) || corrupt.File != "00.log" ||
			s.End() != int64(n) {
			t.Errorf("%s: %+v, end %d", name, corrupt, s.End())
		}
	}
}

func TestScannerReadError(t *testing.T) {
	broken := errors.New("broken disk")
	s := NewScanner(readerAt(func([]byte, int64) (int, error) { return 0, broken }), 0, 1000)
	if s.Next() || !errors.Is(s.Err(), broken) {
		t.Errorf("error %v", s.Err())
	}
	s = NewScanner(readerAt(func([]byte, int64) (int, error) { return 0, io.EOF }), 0, 1000)
	var corrupt *CorruptError
	if s.Next() || !errors.As(s.Err(), &corrupt) || !corrupt.Incomplete {
		t.Errorf("file shorter than said: %v", s.Err())
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, pos int64) (int, error) { return f(p, pos) }

func FuzzScanner(f *testing.F) {
	sent := unhex(f, sentHex)
	f.Add(append(bytes.Clone(sent), sent...))
	f.Add(sent[:50])
	f.Add(make([]byte, 64))
	for i, p := range goldenLogs(f) {
		if i%8 == 0 { // a corpus of all is slow to start from
			f.Add(p[:min(len(p), 2<<10)])
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
		last := int64(0)
		for s.Next() {
			if s.Pos() != last || s.End() <= last {
				t.Fatalf("entry at %d to %d after %d", s.Pos(), s.End(), last)
			}
			last = s.End()
			b, err := s.Batch()
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := s.ValidCRC(); err != nil || ok != ValidCRC(b) {
				t.Fatalf("checksum in pieces %v, at once %v, %v", ok, ValidCRC(b), err)
			}
		}
		if s.Err() == nil && last != int64(len(file)) {
			t.Fatalf("stopped at %d of %d without an error", last, len(file))
		}
		if cap(s.buf) > 4*maxReadAhead+4*len(file) {
			t.Fatalf("buffer of %d bytes for %d", cap(s.buf), len(file))
		}
	})
}
