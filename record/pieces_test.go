package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestIterateInPieces decodes batches from a file as from memory, damaged ones too: the same records, and an error of
// the same kind.
func TestIterateInPieces(t *testing.T) {
	var fromFile, fromMemory Iterator
	before := benchBatch(t, None, 3)
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultBuilderOptions()
		o.Codec = Codec(rapid.IntRange(-2, 4).Draw(t, "codec"))
		o.Codec = max(o.Codec, None) // half of them
		b := NewBuilder(o)
		for i := range rapid.IntRange(1, 12).Draw(t, "records") {
			size := rapid.SampledFrom([]int{0, 100, 5000, maxReadAhead - 5, 150_000}).Draw(t, "size")
			if err := b.Append(int64(i), []byte("key"), bytes.Repeat([]byte{byte(i)}, size), nil); err != nil {
				t.Fatal(err)
			}
		}
		entry := b.Bytes()
		if rapid.Bool().Draw(t, "damage") {
			entry[rapid.IntRange(HeaderSize, len(entry)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "xor")
		}
		file := bytes.Join([][]byte{before, entry, []byte("what follows")}, nil)
		s := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
		for range 2 {
			if !s.Next() {
				t.Fatal(s.Err())
			}
		}
		skip := IterOptions{SkipKV: rapid.Bool().Draw(t, "skip")}
		got, gotErr := drain(&fromFile, fromFile.ResetTo(s, skip))
		want, wantErr := drain(&fromMemory, fromMemory.Reset(entry, skip))
		if !slices.EqualFunc(want, got, sameRecord) || kind(gotErr) != kind(wantErr) {
			t.Fatalf("%d records and %v from memory, %d and %v from the file", len(want), wantErr, len(got), gotErr)
		}
	})
}

func drain(it *Iterator, err error) (list []Record, _ error) {
	for err == nil && it.Next() {
		list = append(list, plainRecord(it.Record()))
	}
	return list, errors.Join(err, it.Err())
}

// kind is the type of an error.
func kind(err error) string {
	switch {
	case errors.As(err, new(*InvalidRecordError)):
		return "invalid"
	case errors.As(err, new(*CodecError)):
		return "codec"
	case err != nil:
		return fmt.Sprintf("%T", err)
	}
	return ""
}

// TestIterateStopsEarly reads no more of a file than the records asked for.
func TestIterateStopsEarly(t *testing.T) {
	b := NewBuilder(DefaultBuilderOptions())
	for i := range int64(1000) {
		if err := b.Append(i, nil, make([]byte, 1000), nil); err != nil {
			t.Fatal(err)
		}
	}
	s := NewScanner(bytes.NewReader(b.Bytes()), 0, int64(len(b.Bytes())))
	var it Iterator
	if !s.Next() {
		t.Fatal(s.Err())
	}
	if err := it.ResetTo(s, IterOptions{SkipKV: true}); err != nil {
		t.Fatal(err)
	}
	for it.Next() && it.Record().Offset < 100 {
	}
	if n := s.BytesRead(); it.Record().Offset != 100 || n > 100*1010+2*maxReadAhead {
		t.Errorf("%d bytes read for record %d", n, it.Record().Offset)
	}
}

// TestIterateReadErrors tells a disk that fails, and a file that has become shorter, from a bad batch.
func TestIterateReadErrors(t *testing.T) {
	broken := errors.New("broken disk")
	for _, codec := range []Codec{None, LZ4} {
		entry := benchBatch(t, codec, 2000)
		for _, c := range []struct {
			failure error
			corrupt bool
		}{{broken, false}, {io.EOF, true}} {
			part := len(entry) / 2
			s := NewScanner(readerAt(func(p []byte, pos int64) (int, error) {
				n := 0
				if pos < int64(part) {
					n = copy(p, entry[pos:part])
				}
				if n < len(p) {
					return n, c.failure
				}
				return n, nil
			}), 0, int64(len(entry)))
			var it Iterator
			if !s.Next() {
				t.Fatal(s.Err())
			}
			_, err := drain(&it, it.ResetTo(s, IterOptions{}))
			var failed *ReadError
			if !errors.As(err, &failed) || errors.As(err, new(*CorruptError)) != c.corrupt ||
				!c.corrupt && !errors.Is(err, broken) {
				t.Errorf("%v, %v: %v", codec, c.failure, err)
			}
		}
	}
}
