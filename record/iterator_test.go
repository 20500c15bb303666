package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// withBody is a magic-2 batch of count records with this body.
func withBody(c Codec, count int32, body []byte) []byte {
	h := DefaultBuilderOptions()
	b := append(make([]byte, HeaderSize), body...)
	header := Header{
		Magic: 2, SizeBytes: int32(len(b)), LastOffset: int64(max(count-1, 0)), Attributes: int16(c), Count: count,
		LeaderEpoch: h.LeaderEpoch, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}
	header.put(b)
	return b
}

func iterate(entry []byte, o IterOptions) (n int, err error) {
	it, err := NewIterator(entry, o)
	if err != nil {
		return 0, err
	}
	for it.Next() {
		n++
	}
	return n, it.Err()
}

// The texts of spec/storage.md §8.1, rows 17 to 19, and the others of
// DefaultRecord, plain and compressed.
func TestInvalidRecords(t *testing.T) {
	const good = "\x10\x00\x00\x00\x02k\x02v\x00" // key k, value v
	for name, c := range map[string]struct {
		count int32
		body  string
		want  string
	}{
		"too few":         {2, good, "Incorrect declared batch size, premature EOF reached"},
		"too many":        {1, good + good, "Incorrect declared batch size, records still remaining in file"},
		"one byte more":   {1, good + "\x00", "Incorrect declared batch size, records still remaining in file"},
		"header key size": {1, "\x12\x00\x00\x00\x02k\x02v\x02\x01", "Invalid negative header key size -1"},
		"headers": {1, "\x10\x00\x00\x00\x02k\x02v\x64",
			"Found invalid number of record headers. 50 is larger than the remaining size of the buffer"},
		"negative headers": {1, "\x10\x00\x00\x00\x02k\x02v\x03", "Found invalid number of record headers -2"},
		"short record": {1, "\x30\x00\x00\x00\x02k\x02v\x00",
			"Invalid record size: expected 24 bytes in record"},
		"long record": {1, "\x14\x00\x00\x00\x02k\x02v\x00ab", "Invalid record size: expected to read 10 bytes in record " +
			"payload, but instead read 8"},
		"key beyond":      {1, "\x10\x00\x00\x00\x20k\x02v\x00", "Found invalid record structure"},
		"negative length": {1, "\x01\x00", "Found invalid record structure"},
		"endless length":  {1, "\xff\xff\xff\xff\xff\xff", "Found invalid record structure"},
		"count":           {-3, good, "Found invalid record count -3 in magic v2 batch"},
	} {
		for codec := None; codec <= Zstd; codec++ {
			body, err := AppendCompressed(nil, codec, 0, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for _, skip := range []bool{false, true} {
				_, err = iterate(withBody(codec, c.count, body), IterOptions{SkipKV: skip})
				var bad *InvalidRecordError
				if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%s, %v, SkipKV %v: %v, want %q", name, codec, skip, err, c.want)
				}
			}
		}
	}
	// Kafka: negative lengths other than -1 are null too, and attributes are kept.
	it, err := NewIterator(withBody(None, 1, []byte("\x0c\x05\x00\x00\x03\x05\x00")), IterOptions{})
	if err != nil || !it.Next() || it.Record().Key != nil || it.Record().Value != nil || it.Record().Attributes != 5 {
		t.Errorf("record %+v, %v", it.Record(), it.Err())
	}
}

func TestUndecodable(t *testing.T) {
	for codec := Gzip; codec <= 7; codec++ {
		for _, body := range []string{"", "\x01", "garbage of no codec at all", strings.Repeat("\xff", 40)} {
			_, err := iterate(withBody(codec, 1, []byte(body)), IterOptions{})
			var bad *CodecError
			if !errors.As(err, &bad) || bad.Codec != codec {
				t.Errorf("%v of %q: %v", codec, body, err)
			}
		}
	}
	for codec := Gzip; codec <= Zstd; codec++ {
		body, err := AppendCompressed(nil, codec, 0, bytes.Repeat([]byte("0123456789abcdef"), 10_000))
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []int{1, 9, len(body) / 2, len(body) - 1} {
			if _, err := AppendDecompressed(nil, codec, body[:cut], 0); err == nil {
				t.Errorf("%v: a stream cut at %d of %d has no error", codec, cut, len(body))
			}
		}
	}
}

// A small body that says it is huge costs no more than the bound.
func TestDecompressionBombs(t *testing.T) {
	zeros := make([]byte, 16<<20)
	const limit = 1 << 20
	for codec := Gzip; codec <= Zstd; codec++ {
		body, err := AppendCompressed(nil, codec, 0, zeros)
		if err != nil {
			t.Fatal(err)
		}
		before := allocated()
		_, err = AppendDecompressed(nil, codec, body, limit)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: %v, want ErrTooLarge", codec, err)
		}
		if used := allocated() - before; used > 16*limit {
			t.Errorf("%v: %d bytes allocated under a limit of %d", codec, used, limit)
		}
	}
	for codec, body := range map[Codec]string{
		Snappy: "\xff\xff\xff\xff\x07\x00",                                                 // bare block of 2 GiB
		LZ4:    "\x04\x22\x4d\x18\x60\x70\x73\x03\x00\x00\x00\x1f\x00\x01\x00\x00\x00\x00", // blocks of 4 MiB
		Zstd:   "\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00",         // frame of 4 GiB
		Gzip:   "\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\xff\xff",                         // long extra field
		5:      strings.Repeat("\xff", 100),
	} {
		before := allocated()
		if _, err := AppendDecompressed(nil, codec, []byte(body), 0); err == nil {
			t.Errorf("%v: no error", codec)
		}
		if used := allocated() - before; used > 1<<20 {
			t.Errorf("%v: %d bytes allocated for %d", codec, used, len(body))
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestFramings(t *testing.T) {
	plain := bytes.Repeat([]byte("abcdefgh"), 20_000) // five xerial blocks, three of lz4
	for codec, want := range map[Codec]string{
		Gzip:   "1f8b080000000000" + "00ff",
		Snappy: "82534e4150505900" + "00000001" + "00000001",
		LZ4:    "04224d18" + "604082",
		Zstd:   "28b52ffd",
	} {
		for level := -1; level <= 22; level++ {
			body, err := AppendCompressed([]byte("prefix"), codec, level, plain)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(body, append([]byte("prefix"), unhex(t, want)...)) {
				t.Fatalf("%v level %d starts with %x", codec, level, body[:24])
			}
			back, err := AppendDecompressed([]byte("x"), codec, body[6:], 0)
			if err != nil || string(back) != "x"+string(plain) {
				t.Fatalf("%v level %d: %d bytes back, %v", codec, level, len(back), err)
			}
		}
	}
}

func TestForeignFramings(t *testing.T) {
	join := func(parts ...string) string { return strings.Join(parts, "") }
	block := "\x05\x10hello" // a raw snappy block of five literal bytes
	chunk := "\x00\x00\x00\x07" + block
	gz, err := AppendCompressed(nil, Gzip, 0, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	const lz4End = "\x00\x00\x00\x00"
	lz4Head := "\x04\x22\x4d\x18\x74\x40\xbd" // with checksums of blocks and content
	lz4Block := binary.LittleEndian.AppendUint32([]byte("\x05\x00\x00\x80hello"), xxHash32([]byte("hello")))
	for name, c := range map[string]struct {
		codec Codec
		body  string
		want  string
	}{
		"bare snappy":           {Snappy, block, "hello"},
		"xerial":                {Snappy, join(xerialHeader, chunk, chunk), "hellohello"},
		"xerial streams joined": {Snappy, join(xerialHeader, chunk, xerialHeader, chunk), "hellohello"},
		"gzip members":          {Gzip, join(string(gz), string(gz)), "hellohello"},
		"gzip and other bytes":  {Gzip, join(string(gz), "no gzip follows here"), "hello"},
		"lz4 with checksums":    {LZ4, join(lz4Head, string(lz4Block), "\x00\x00\x00\x00", "sum?"), "hello"},
		"lz4 without blocks":    {LZ4, "\x04\x22\x4d\x18\x60\x40\x82\x00\x00\x00\x00", ""},
		"zstd skippable + frame": {Zstd, "\x50\x2a\x4d\x18\x02\x00\x00\x00ab" +
			"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello", "hello"},
	} {
		got, err := AppendDecompressed(nil, c.codec, []byte(c.body), 0)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, body := range map[string]string{
		"dependent blocks": "\x04\x22\x4d\x18\x40\x40\xc0\x00\x00\x00\x00",
		"wrong check":      "\x04\x22\x4d\x18\x60\x40\x83\x00\x00\x00\x00",
		"block checksum":   join(lz4Head, string(lz4Block[:9]), "\x00\x00\x00", "\x00\x00\x00\x00"),
		"large block":      "\x04\x22\x4d\x18\x60\x40\x82" + "\x01\x00\x01\x80" + strings.Repeat("a", 65537) + lz4End,
	} {
		if got, err := AppendDecompressed(nil, LZ4, []byte(body), 0); err == nil {
			t.Errorf("lz4, %s: %q without an error", name, got)
		}
	}
}

// Test vectors of the xxHash specification's reference implementation.
func TestXXHash32(t *testing.T) {
	for s, want := range map[string]uint32{
		"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff, "Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxHash32([]byte(s)); got != want {
			t.Errorf("xxHash32(%q) = %#x, want %#x", s, got, want)
		}
	}
}

// An iterator allocates nothing per record, whatever the codec.
func TestIterationAllocates(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		entry := benchBatch(t, codec, 500)
		var it Iterator
		for _, skip := range []bool{false, true} {
			avg := testing.AllocsPerRun(20, func() {
				if err := it.Reset(entry, IterOptions{SkipKV: skip}); err != nil {
					t.Fatal(err)
				}
				for it.Next() {
				}
				if it.Err() != nil {
					t.Fatal(it.Err())
				}
			})
			if avg > 50 { // for 500 records; the pools may be emptied at any time, and are under -race
				t.Errorf("%v, SkipKV %v: %.1f allocations", codec, skip, avg)
			}
		}
	}
}

func benchBatch(t testing.TB, codec Codec, n int) []byte {
	t.Helper()
	o := DefaultBuilderOptions()
	o.Codec = codec
	b := NewBuilder(o)
	for i := range n {
		key := binary.BigEndian.AppendUint32(nil, uint32(i*2654435761))
		headers := []RecordHeader{{[]byte("trace"), key}}
		if err := b.Append(int64(i), key, bytes.Repeat(key, 25), headers); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
