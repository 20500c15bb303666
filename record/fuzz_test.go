package record

import (
	"bytes"
	"errors"
	"testing"
)

// fuzzMaxBytes keeps what a fuzzed body may decompress to small.
const fuzzMaxBytes = 1 << 20

// seedEntries adds entries of every magic and codec to a fuzz corpus.
func seedEntries(f *testing.F) {
	seen := map[[2]int8]int{}
	for _, file := range goldenLogs(f) {
		for len(file) > 0 {
			h, entry, rest, err := NextEntry(file)
			if err != nil {
				break
			}
			// A few of each kind; more only slow the start down.
			if kind := [2]int8{h.Magic, int8(h.Codec())}; seen[kind] < 8 && len(entry) < 4096 {
				seen[kind]++
				f.Add(entry)
			}
			file = rest
		}
	}
	for codec := None; codec <= Zstd; codec++ {
		f.Add(benchBatch(f, codec, 20))
		if codec != Zstd {
			old, err := DownConvert(nil, benchBatch(f, codec, 5), int8(codec)%2, 0, IterOptions{})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(old)
		}
	}
}

// A fuzzed entry never makes the iterator panic, run on, or take more memory
// than its bound; its errors are of the documented kinds; and both modes agree.
func FuzzIterator(f *testing.F) {
	seedEntries(f)
	f.Fuzz(func(t *testing.T, entry []byte) {
		before := allocated()
		n, err := iterate(entry, IterOptions{MaxBytes: fuzzMaxBytes})
		skipped, skipErr := iterate(entry, IterOptions{MaxBytes: fuzzMaxBytes, SkipKV: true})
		if n != skipped || (err == nil) != (skipErr == nil) {
			t.Fatalf("%d records, %v; with SkipKV %d, %v", n, err, skipped, skipErr)
		}
		if used := allocated() - before; used > 32<<20+uint64(8*len(entry)) {
			t.Fatalf("%d bytes allocated for an entry of %d", used, len(entry))
		}
		if err != nil && !known(err) {
			t.Fatalf("an error of no documented kind: %v (%T)", err, err)
		}
	})
}

func known(err error) bool {
	var corrupt *CorruptError
	var bad *InvalidRecordError
	var codec *CodecError
	return errors.Is(err, ErrShort) || errors.Is(err, ErrTooLarge) || errors.As(err, &corrupt) ||
		errors.As(err, &bad) || errors.As(err, &codec)
}

// What reads without an error survives being built again.
func FuzzRebuild(f *testing.F) {
	seedEntries(f)
	f.Fuzz(func(t *testing.T, entry []byte) {
		it, err := NewIterator(entry, IterOptions{MaxBytes: fuzzMaxBytes})
		if err != nil {
			return
		}
		o := DefaultBuilderOptions()
		o.Codec = it.Header().Codec()
		b := NewBuilder(o)
		var want []Record
		for it.Next() {
			r := plainRecord(it.Record())
			r.Offset, r.Attributes = int64(len(want)), 0
			if err := b.Append(r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
				t.Fatal(err)
			}
			want = append(want, r)
		}
		if it.Err() != nil || len(want) == 0 {
			return
		}
		got := readAll(t, b.Bytes())
		for i := range want {
			if !sameRecord(want[i], got[i]) {
				t.Fatalf("record %d: %+v became %+v", i, want[i], got[i])
			}
		}
	})
}

func sameRecord(a, b Record) bool {
	same := a.Offset == b.Offset && a.Timestamp == b.Timestamp &&
		bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		a.KeySize == b.KeySize && a.ValueSize == b.ValueSize && len(a.Headers) == len(b.Headers)
	for i := 0; same && i < len(a.Headers); i++ {
		same = bytes.Equal(a.Headers[i].Key, b.Headers[i].Key) && bytes.Equal(a.Headers[i].Value, b.Headers[i].Value)
	}
	return same
}

func FuzzConvert(f *testing.F) {
	seedEntries(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		o := IterOptions{MaxBytes: fuzzMaxBytes}
		if b, err := UpConvert(set, DefaultBuilderOptions(), o); err == nil {
			if !b.ValidCRC() || len(readAll(t, b)) != int(b.Count()) {
				t.Fatalf("converted to %+v", b.Header())
			}
		} else if !known(err) {
			t.Fatalf("an error of no documented kind: %v", err)
		}
		for magic := int8(0); magic <= 1; magic++ {
			out, err := DownConvert(nil, set, magic, 0, o)
			if err != nil && !known(err) && !errors.Is(err, ErrUnsupportedCodec) {
				t.Fatalf("an error of no documented kind: %v", err)
			}
			for rest := out; len(rest) > 0; {
				h, _, after, err := NextEntry(rest)
				if err != nil || h.Magic > magic {
					t.Fatalf("converted to magic %d: %+v, %v", magic, h, err)
				}
				rest = after
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for codec := Gzip; codec <= Zstd; codec++ {
		body, err := AppendCompressed(nil, codec, 0, bytes.Repeat([]byte("seed of the fuzzer "), 50))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int8(codec), body)
	}
	f.Add(int8(Snappy), []byte("\x05\x10hello"))
	f.Fuzz(func(t *testing.T, c int8, body []byte) {
		before := allocated()
		out, err := AppendDecompressed(nil, Codec(c&7), body, fuzzMaxBytes)
		if used := allocated() - before; used > 16<<20+uint64(8*len(body)) {
			t.Fatalf("%d bytes allocated for a body of %d", used, len(body))
		}
		if Codec(c&7) != None && len(out) > fuzzMaxBytes {
			t.Fatalf("%d bytes out", len(out))
		}
		if err != nil && !known(err) {
			t.Fatalf("an error of no documented kind: %v", err)
		}
	})
}

func FuzzParseControl(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2}, LeaderChange{LeaderID: 1, Voters: []Voter{{ID: 1}}}.AppendTo(nil))
	f.Add([]byte{0, 0, 0, 6}, Voters{Voters: []VoterInfo{{Endpoints: []Endpoint{{"a", "b", 1}}}}}.AppendTo(nil))
	f.Add([]byte{0, 0, 0, 1}, EndTxn{}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		kind, m, err := ParseControl(key, value)
		if err != nil || m == nil {
			return
		}
		if m.ControlType() != kind {
			t.Fatalf("%v parsed as %v", kind, m.ControlType())
		}
		_, again, err := ParseControl(key, m.AppendTo(nil))
		if err != nil || !bytes.Equal(again.AppendTo(nil), m.AppendTo(nil)) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}
