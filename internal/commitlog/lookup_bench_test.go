package commitlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tidemark/record"
)

// BenchmarkLargeBatches looks up random times in 64 batches of a MiB, whose records are 1 ms apart.
func BenchmarkLargeBatches(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
		for _, size := range []int{1000, 80} {
			b.Run(fmt.Sprintf("%v/value=%d", codec, size), func(b *testing.B) {
				l, records := largeBatches(b, 64, codec, size)
				defer func() { _ = l.Abandon() }()
				rng := rand.New(rand.NewPCG(1, 1))
				end := l.EndOffset()
				b.ReportAllocs()
				for b.Loop() {
					n := rng.Int64N(records)
					if f, ok, err := l.OffsetForTime(benchStart+n, end, nil); err != nil || !ok || f.Offset != n {
						b.Fatal(f, ok, err)
					}
				}
			})
		}
	}
}

// largeBatches makes a log on disk of n batches of 1 MiB before compression, and returns it with the number of records.
func largeBatches(b *testing.B, n int, codec record.Codec, size int) (l *Log, records int64) {
	b.Helper()
	cfg := DefaultConfig()
	cfg.MaxMessageBytes, cfg.MessageTimestampAfterMaxMs = 2<<20, 1<<60
	l, _ = openBench(b, cfg)
	bo := record.DefaultBuilderOptions()
	bo.Codec = codec
	value := []byte(strings.Repeat("value ", size/6+1)[:size])
	for range n {
		builder := record.NewBuilder(bo)
		for i := 0; i < 1<<20; i += size + 10 {
			if err := builder.Append(benchStart+records, nil, value, nil); err != nil {
				b.Fatal(err)
			}
			records++
		}
		if _, err := l.AppendAsLeader(bytes.Clone(builder.Bytes()), AppendOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	l.UpdateHighWatermark(l.EndOffset())
	return l, records
}
