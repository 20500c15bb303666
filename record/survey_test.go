package record

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// surveyed is what an iterator says of what Survey tells.
func surveyed(b Batch) (s Survey, headers bool, err error) {
	it, err := NewIterator(b, IterOptions{})
	if err != nil {
		return s, false, err
	}
	defer it.Close()
	s.MinTimestamp, s.MaxTimestamp = 1<<63-1, -1<<63
	for it.Next() {
		r := it.Record()
		s.MinTimestamp, s.MaxTimestamp = min(s.MinTimestamp, r.Timestamp), max(s.MaxTimestamp, r.Timestamp)
		s.NullKeys = s.NullKeys || r.Key == nil
		headers = headers || len(r.Headers) > 0
	}
	return s, headers, it.Err()
}

// Whatever Survey accepts an iterator accepts, with the same answer.
func FuzzSurvey(f *testing.F) {
	seedEntries(f)
	f.Fuzz(func(t *testing.T, entry []byte) {
		b, err := ParseBatch(entry)
		if err != nil {
			return
		}
		got, ok := b.Survey()
		if !ok {
			return
		}
		want, headers, err := surveyed(b)
		if err != nil || headers || got != want {
			t.Fatalf("%+v, but the iterator says %+v, headers %v, %v", got, want, headers, err)
		}
	})
}

// Ordinary batches are surveyed, not left to an iterator: of any sizes and times, in any order; with a byte less, or
// one more, they are not.
func TestSurvey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultBuilderOptions()
		builder := NewBuilder(o)
		sizes := rapid.SampledFrom([]int{0, 1, 62, 63, 64, 65, 100, 8190, 8192, 20_000, 1 << 20})
		n := rapid.SampledFrom([]int{1, 2, 63, 65, 300}).Draw(t, "records")
		base := rapid.Int64Range(0, 1<<40).Draw(t, "base")
		for i := range n {
			var key, value []byte
			if rapid.Bool().Draw(t, "key") {
				key = bytes.Repeat([]byte{0x80}, rapid.SampledFrom([]int{0, 3, 70}).Draw(t, "key size"))
			}
			if rapid.Bool().Draw(t, "value") {
				size := 100
				if i == n/2 {
					size = sizes.Draw(t, "size")
				}
				value = bytes.Repeat([]byte{0xff}, size)
			}
			ts := base + rapid.Int64Range(-1000, 1_000_000).Draw(t, "time")
			if err := builder.Append(max(ts, 0), key, value, nil); err != nil {
				t.Fatal(err)
			}
		}
		b := Batch(builder.Bytes())
		got, ok := b.Survey()
		want, _, err := surveyed(b)
		if !ok || err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v, %v", got, ok, want, err)
		}
		if _, ok := (b[:len(b)-1]).Survey(); ok {
			t.Fatal("a batch that lacks its last byte passes")
		}
		if _, ok := append(b[:len(b):len(b)], 0).Survey(); ok {
			t.Fatal("a batch with a byte too many passes")
		}
	})
}

// What a survey does not judge.
func TestSurveyLeavesToIterators(t *testing.T) {
	build := func(change func(*Builder, *BuilderOptions)) Batch {
		o := DefaultBuilderOptions()
		builder := NewBuilder(o)
		change(builder, &o)
		return builder.Bytes()
	}
	for name, b := range map[string]Batch{
		"headers": build(func(b *Builder, _ *BuilderOptions) {
			_ = b.Append(1, nil, nil, []RecordHeader{{Key: []byte("k")}})
		}),
		"compressed": build(func(b *Builder, o *BuilderOptions) {
			o.Codec = LZ4
			b.Reset(*o)
			_ = b.Append(1, nil, nil, nil)
		}),
		"other time": func() Batch {
			b := build(func(b *Builder, _ *BuilderOptions) { _ = b.Append(1, nil, nil, nil) })
			b.SetMaxTimestamp(5, LogAppendTime)
			return b
		}(),
	} {
		if s, ok := b.Survey(); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func BenchmarkSurvey(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprint(size, "B"), func(b *testing.B) {
			builder := NewBuilder(DefaultBuilderOptions())
			for i := range benchRecords {
				if err := builder.Append(int64(i), nil, make([]byte, size), nil); err != nil {
					b.Fatal(err)
				}
			}
			batch := Batch(builder.Bytes())
			for b.Loop() {
				if _, ok := batch.Survey(); !ok {
					b.Fatal("not surveyed")
				}
			}
			perRecord(b, len(batch))
		})
	}
}
