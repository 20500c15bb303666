package commitlog

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

const benchStart = 1_700_000_000_000

// benchLog makes a log on disk of so many segments, one batch of ten records a second each.
func benchLog(b *testing.B, segments int) (*Log, Options) {
	b.Helper()
	cfg := DefaultConfig()
	cfg.IndexIntervalBytes, cfg.SegmentIndexBytes = 0, 1200
	cfg.MessageTimestampAfterMaxMs = 1 << 60
	batch := benchBatch(10, 10)
	cfg.SegmentBytes = int32(8 * len(batch))
	l, o := openBench(b, cfg)
	for i := range int64(segments * 8) {
		appendShifted(b, l, batch, i*1000)
	}
	l.UpdateHighWatermark(l.EndOffset())
	return l, o
}

// openBench opens a new log on disk.
func openBench(b *testing.B, cfg Config) (*Log, Options) {
	b.Helper()
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
	return l, o
}

// benchBatch is a batch of n records of a size, 1 ms apart.
func benchBatch(n, size int) record.Batch {
	builder := record.NewBuilder(record.DefaultBuilderOptions())
	value := []byte(strings.Repeat("v", size))
	for i := range n {
		_ = builder.Append(benchStart+int64(i), nil, value, nil)
	}
	return bytes.Clone(builder.Bytes())
}

func appendShifted(b *testing.B, l *Log, batch record.Batch, ms int64) {
	b.Helper()
	shifted := record.Batch(bytes.Clone(batch))
	shiftTime(shifted, ms)
	if _, err := l.AppendAsLeader(shifted, AppendOptions{}); err != nil {
		b.Fatal(err)
	}
}

// shiftTime moves a batch in time.
func shiftTime(b record.Batch, ms int64) {
	base := b.BaseTimestamp() + ms
	for i := range 8 {
		b[27+i] = byte(base >> (56 - 8*i))
	}
	b.SetMaxTimestamp(-2, record.CreateTime) // so that the next one computes the checksum
	b.SetMaxTimestamp(base+int64(b.Count())-1, record.CreateTime)
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			l, _ := benchLog(b, 1)
			defer func() { _ = l.Abandon() }()
			l.UpdateConfig(DefaultConfig())
			batch := benchBatch(n, 100)
			sent := make(record.Batch, len(batch))
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				copy(sent, batch)
				if _, err := l.AppendAsLeader(sent, AppendOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSegments shows how reads, look-ups by time and opening grow with the number of segments.
func BenchmarkSegments(b *testing.B) {
	for _, segments := range []int{1, 100, 10000} {
		b.Run(fmt.Sprint(segments), func(b *testing.B) {
			l, o := benchLog(b, segments)
			b.Run("Read", func(b *testing.B) { benchRead(b, l) })
			b.Run("OffsetForTime", func(b *testing.B) { benchOffsetForTime(b, l) })
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
			o.Clean = true
			b.Run("Open", func(b *testing.B) { benchOpen(b, o, false) })
			b.Run("OpenAndFirstOffsetForTime", func(b *testing.B) { benchOpen(b, o, true) })
		})
	}
}

func benchRead(b *testing.B, l *Log) {
	end := l.EndOffset()
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		i = (i + 7919) % end
		s, err := l.Read(i, ReadOptions{MaxBytes: 4096, MinOneBatch: true, UpTo: end})
		if err != nil {
			b.Fatal(err)
		}
		if buf, err = s.AppendTo(buf[:0]); err != nil {
			b.Fatal(err)
		}
		s.Release()
	}
}

func benchOffsetForTime(b *testing.B, l *Log) {
	end := l.EndOffset()
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		i = (i + 7919) % (end / 10)
		if _, ok, err := l.OffsetForTime(benchStart+i*1000+5, end, nil); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

// benchOpen is a start after a clean stop. The first look-up by time visits every segment's time index.
func benchOpen(b *testing.B, o Options, lookup bool) {
	b.ReportAllocs()
	for b.Loop() {
		l, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if lookup {
			if _, _, err := l.OffsetForTime(benchStart+5, l.EndOffset(), nil); err != nil {
				b.Fatal(err)
			}
		}
		_ = l.Abandon()
	}
}
