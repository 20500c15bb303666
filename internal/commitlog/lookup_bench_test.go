package commitlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
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
	fsys := vfs.OS()
	o := Options{
		FS: fsys, Dir: filepath.Join(b.TempDir(), "t-0"), Topic: "t", Config: cfg,
		Clock: func() time.Time { return time.UnixMilli(benchStart) },
		Files: index.NewFileCache(fsys, 100), Pages: index.NewCache(4 << 20),
		Background: func(func()) {}, // no flush
	}
	if err := fsys.MkdirAll(o.Dir, 0o755); err != nil {
		b.Fatal(err)
	}
	l, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
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
