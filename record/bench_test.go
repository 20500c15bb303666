package record

import (
	"bytes"
	"testing"
)

const benchRecords = 1000

func forEachCodec(b *testing.B, f func(b *testing.B, c Codec)) {
	for c := None; c <= Zstd; c++ {
		b.Run(c.String(), func(b *testing.B) { f(b, c) })
	}
}

func perRecord(b *testing.B, bytes int) {
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
}

func benchIterate(b *testing.B, o IterOptions) {
	forEachCodec(b, func(b *testing.B, c Codec) {
		plain, entry := len(benchBatch(b, None, benchRecords)), benchBatch(b, c, benchRecords)
		var it Iterator
		b.ReportAllocs()
		for b.Loop() {
			if err := it.Reset(entry, o); err != nil {
				b.Fatal(err)
			}
			for it.Next() {
			}
			if it.Err() != nil {
				b.Fatal(it.Err())
			}
		}
		perRecord(b, plain)
	})
}

func BenchmarkIterate(b *testing.B)       { benchIterate(b, IterOptions{}) }
func BenchmarkIterateSkipKV(b *testing.B) { benchIterate(b, IterOptions{SkipKV: true}) }

func BenchmarkBuild(b *testing.B) {
	forEachCodec(b, func(b *testing.B, c Codec) {
		plain, entry := len(benchBatch(b, None, benchRecords)), benchBatch(b, None, benchRecords)
		var it Iterator
		var builder Builder
		o := DefaultBuilderOptions()
		o.Codec = c
		b.ReportAllocs()
		for b.Loop() {
			builder.Reset(o)
			if err := it.Reset(entry, IterOptions{}); err != nil {
				b.Fatal(err)
			}
			for it.Next() {
				r := it.Record()
				if err := builder.Append(r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
					b.Fatal(err)
				}
			}
			builder.Bytes()
		}
		perRecord(b, plain)
	})
}

func BenchmarkScan(b *testing.B) {
	file := bytes.Repeat(benchBatch(b, None, 1), benchRecords)
	var s Scanner
	b.ReportAllocs()
	for b.Loop() {
		for s.Reset(bytes.NewReader(file), 0, int64(len(file))); s.Next(); {
		}
	}
	perRecord(b, len(file))
}

func BenchmarkValidCRC(b *testing.B) {
	entry := benchBatch(b, None, benchRecords)
	b.SetBytes(int64(len(entry)))
	for b.Loop() {
		if !ValidCRC(entry) {
			b.Fatal("wrong")
		}
	}
}
