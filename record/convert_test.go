package record

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// message is one old message with a valid checksum.
func message(magic int8, offset, ts int64, attr int8, key, value string) []byte {
	return appendMessage(nil, magic, offset, ts, attr, []byte(key), []byte(value))
}

func wrapper(t testing.TB, magic int8, offset, ts int64, codec Codec, attr int8, inner ...[]byte) []byte {
	t.Helper()
	value, err := appendCompressed(nil, codec, magic, 0, bytes.Join(inner, nil))
	if err != nil {
		t.Fatal(err)
	}
	return appendMessage(nil, magic, offset, ts, attr|int8(codec), nil, value)
}

// summary is offset@time key=value of each record.
func summary(t testing.TB, entry []byte) string {
	t.Helper()
	s := ""
	for _, r := range readAll(t, entry) {
		s += fmt.Sprintf("%d@%d %s=%s;", r.Offset, r.Timestamp, r.Key, r.Value)
	}
	return s
}

func TestOldMessages(t *testing.T) {
	for name, c := range map[string]struct {
		entry []byte
		want  string
		base  int64
	}{
		"v0": {message(0, 7, 0, 0, "k", "v"), "7@-1 k=v;", 7},
		"v1": {message(1, 7, 50, 0, "k", "v"), "7@50 k=v;", 7},
		"v0 wrapper: absolute offsets": {
			wrapper(t, 0, 8, 0, Gzip, 0, message(0, 7, 0, 0, "a", "1"), message(0, 8, 0, 0, "b", "2")),
			"7@-1 a=1;8@-1 b=2;", 7},
		"v1 wrapper: relative offsets": {
			wrapper(t, 1, 9, 60, LZ4, 0, message(1, 0, 60, 0, "a", "1"), message(1, 1, 50, 0, "b", "2")),
			"8@60 a=1;9@50 b=2;", 8},
		"v1 wrapper, compacted": {
			wrapper(t, 1, 19, 60, Snappy, 0, message(1, 3, 60, 0, "a", "1"), message(1, 9, 50, 0, "b", "2")),
			"13@60 a=1;19@50 b=2;", 13},
		"v1 wrapper of the log's time": {
			wrapper(t, 1, 9, 77, Gzip, logAppendTimeBit, message(1, 0, 60, 0, "a", "1"), message(1, 1, 50, 0, "b", "2")),
			"8@77 a=1;9@77 b=2;", 8},
		"v1 wrapper at offset 0": {
			wrapper(t, 1, 0, 60, Gzip, 0, message(1, 0, 60, 0, "a", "1"), message(1, 1, 50, 0, "b", "2")),
			"0@60 a=1;1@50 b=2;", 0},
		"v1 wrapper around v0": {
			wrapper(t, 1, 9, 60, Gzip, 0, message(0, 0, 0, 0, "a", "1")), "9@-1 a=1;", 9},
		"a message cut inside": {
			wrapper(t, 1, 9, 60, Gzip, 0, message(1, 0, 60, 0, "a", "1"), message(1, 1, 60, 0, "b", "2")[:20]),
			"9@60 a=1;", 9},
	} {
		if !ValidCRC(c.entry) {
			t.Errorf("%s: checksum", name)
		}
		if got := summary(t, c.entry); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		it, err := NewIterator(c.entry, IterOptions{SkipKV: true})
		if h := it.Header(); err != nil || h.BaseOffset != c.base || int(h.Count) != strings.Count(c.want, ";") {
			t.Errorf("%s: header %+v, %v", name, it.Header(), err)
		}
	}
}

func TestOldMessagesInvalid(t *testing.T) {
	inner := message(1, 5, 60, 0, "a", "1")
	nullValue := appendMessage(nil, 1, 9, 60, int8(Gzip), nil, nil)
	damaged := bytes.Clone(message(1, 5, 60, 0, "a", "1"))
	damaged[posKeyV1+3] = 99 // key length
	for name, c := range map[string]struct {
		entry []byte
		want  string
	}{
		"null value": {nullValue, "Found invalid compressed record set with null value (magic = 1)"},
		"empty set":  {wrapper(t, 1, 9, 60, Gzip, 0), "Found invalid compressed record set with no inner records"},
		"offset": {wrapper(t, 1, 3, 60, Gzip, 0, inner), "Found invalid wrapper offset in compressed v1 message " +
			"set, wrapper offset '3' is less than the last inner message offset '5' and it is not zero."},
		"nested": {wrapper(t, 1, 9, 60, Gzip, 0, wrapper(t, 1, 9, 60, Gzip, 0, inner)),
			"Inner messages must not be compressed"},
		"zstd": {message(1, 9, 60, int8(Zstd), "", "x"),
			"Invalid wrapper compressionType found in legacy deep record iterator 1"},
		"key length": {damaged, errStructure},
	} {
		_, err := iterate(c.entry, IterOptions{})
		var bad *InvalidRecordError
		if !errors.As(err, &bad) || bad.Reason != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var bad *CodecError
	if _, err := iterate(message(0, 9, 0, int8(Gzip), "", "no gzip"), IterOptions{}); !errors.As(err, &bad) {
		t.Errorf("undecodable wrapper: %v", err)
	}
}

func TestUpConvert(t *testing.T) {
	set := bytes.Join([][]byte{
		message(0, 0, 0, 0, "a", "1"),
		wrapper(t, 1, 2, 60, Snappy, 0, message(1, 0, 60, 0, "b", "2"), message(1, 1, 50, 0, "c", "3")),
		message(1, 0, 55, 0, "d", "4")[:30],
	}, nil)
	if got := SetCodec(set); got != Snappy {
		t.Errorf("the set's codec is %v", got)
	}
	for codec := None; codec <= Zstd; codec++ {
		o := DefaultBuilderOptions()
		o.Codec, o.BaseOffset = codec, 100
		b, err := UpConvert(set, o, IterOptions{SkipKV: true})
		if err != nil {
			t.Fatal(err)
		}
		got := summary(t, b)
		if got != "100@-1 a=1;101@60 b=2;102@50 c=3;" || b.MaxTimestamp() != 60 || b.Codec() != codec {
			t.Errorf("%v: %s, %+v", codec, got, b.Header())
		}
	}
	damaged := append(message(1, 0, 1, 0, "k", "v"), message(1, 0, 1, 0, "k", "v")...)
	damaged[len(damaged)-1] ^= 1
	_, err := UpConvert(damaged, DefaultBuilderOptions(), IterOptions{})
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Pos != int64(len(damaged)/2) {
		t.Errorf("wrong checksum: %v", err)
	}
	for name, set := range map[string][]byte{
		"empty": nil, "cut": message(1, 0, 1, 0, "k", "v")[:9], "magic 2": unhex(t, sentHex),
	} {
		_, err := UpConvert(set, DefaultBuilderOptions(), IterOptions{})
		var bad *InvalidRecordError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Batches of every codec, given to old clients, hold the same records.
func TestDownConvert(t *testing.T) {
	for codec := None; codec < Zstd; codec++ {
		for magic := int8(0); magic <= 1; magic++ {
			o := DefaultBuilderOptions()
			o.Codec, o.BaseOffset = codec, 10
			b := NewBuilder(o)
			for i, ts := range []int64{50, 70, 60} {
				key, headers := []byte{byte('a' + i)}, []RecordHeader{{[]byte("h"), nil}}
				if err := b.AppendAt(10+2*int64(i), ts, key, nil, headers); err != nil {
					t.Fatal(err)
				}
			}
			marker, err := EndTxnMarker(DefaultBuilderOptions(), 1, EndTxn{})
			if err != nil {
				t.Fatal(err)
			}
			old := message(0, 20, 0, 0, "z", "z")
			src := bytes.Join([][]byte{b.Bytes(), marker, old, b.Bytes()[:50]}, nil)
			out, err := DownConvert([]byte("dst"), src, magic, 11, IterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := "10@50 a=;12@70 b=;14@60 c=;20@-1 z=z;"
			if magic == 0 {
				want = "10@-1 a=;12@-1 b=;14@-1 c=;20@-1 z=z;"
			}
			if codec == None {
				_, want, _ = strings.Cut(want, ";")
			}
			if got := entries(t, out[3:], magic, codec); got != want || string(out[:3]) != "dst" {
				t.Errorf("%v to magic %d: %s, want %s", codec, magic, got, want)
			}
		}
	}
}

// entries sums up a set whose entries are all of at most this magic; the ones
// that are compressed are one wrapper of the codec.
func entries(t *testing.T, set []byte, magic int8, codec Codec) string {
	t.Helper()
	s, wrappers := "", 0
	for len(set) > 0 {
		h, entry, rest, err := NextEntry(set)
		if err != nil || h.Magic > magic || !ValidCRC(entry) {
			t.Fatalf("entry %+v, %v", h, err)
		}
		if h.Codec() != None {
			wrappers++
			if h.Codec() != codec || h.LastOffset != 14 || (magic == 1 && h.MaxTimestamp != 70) {
				t.Errorf("wrapper %+v", h)
			}
		}
		s += summary(t, entry)
		set = rest
	}
	if wrappers > 1 || (wrappers == 1) != (codec != None) {
		t.Errorf("%d wrappers of %v", wrappers, codec)
	}
	return s
}

func TestDownConvertTimes(t *testing.T) {
	o := DefaultBuilderOptions()
	o.TimestampType, o.AppendTime, o.Codec = LogAppendTime, 99, Gzip
	b := NewBuilder(o)
	if err := b.Append(5, []byte("k"), []byte("v"), nil); err != nil {
		t.Fatal(err)
	}
	v1, err := DownConvert(nil, b.Bytes(), 1, 0, IterOptions{})
	if err != nil || summary(t, v1) != "0@99 k=v;" {
		t.Fatalf("%s, %v", summary(t, v1), err)
	}
	if h, err := ParseHeader(v1); err != nil || h.TimestampType() != LogAppendTime || h.MaxTimestamp != 99 {
		t.Errorf("wrapper %+v, %v", h, err)
	}
	v0, err := DownConvert(nil, v1, 0, 0, IterOptions{})
	if err != nil || summary(t, v0) != "0@-1 k=v;" {
		t.Errorf("magic 1 to 0: %v", err)
	}
	again, err := DownConvert(nil, v0, 1, 0, IterOptions{})
	if diff := cmp.Diff(v0, again); diff != "" || err != nil {
		t.Errorf("magic 0 for a client of magic 1 (-stored +sent): %s, %v", diff, err)
	}
}

func TestDownConvertErrors(t *testing.T) {
	good := benchBatch(t, None, 1)
	out, err := DownConvert(nil, append(bytes.Clone(good), benchBatch(t, Zstd, 1)...), 1, 0, IterOptions{})
	if !errors.Is(err, ErrUnsupportedCodec) || len(out) == 0 {
		t.Errorf("zstd: %d bytes before it, %v", len(out), err)
	}
	_, err = DownConvert(nil, append(bytes.Clone(good), make([]byte, 40)...), 1, 0, IterOptions{})
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Pos != int64(len(good)) {
		t.Errorf("zeros: %v", err)
	}
	var bad *InvalidRecordError
	if _, err = DownConvert(nil, withBody(None, 2, nil), 1, 0, IterOptions{}); !errors.As(err, &bad) {
		t.Errorf("empty body: %v", err)
	}
}
