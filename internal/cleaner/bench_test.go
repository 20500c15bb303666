package cleaner

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/test/proc"
	"tidemark/vfs"
)

// The environment variables of BenchmarkRound: how many keys there are, and the length of their values in bytes.
const (
	keysEnv  = "TIDEMARK_CLEANER_KEYS"
	valueEnv = "TIDEMARK_CLEANER_VALUE"
	codecEnv = "TIDEMARK_CLEANER_CODEC"
)

// BenchmarkRound compacts a log on the disk in which each key has two records of 100 bytes, in batches of 100, and
// tells the speed, by the bytes of the log, and the memory that the round takes.
func BenchmarkRound(b *testing.B) {
	keys, size := int(proc.Number(b, keysEnv, 1_000_000)), int(proc.Number(b, valueEnv, 100))
	codec, ok := record.ParseCodec(os.Getenv(codecEnv))
	if !ok {
		codec = record.None
	}
	for range b.N {
		b.StopTimer()
		root := b.TempDir()
		log := writeKeys(b, root, keys, size, codec)
		c := benchCleaner(log, root, keys)
		bytes, err := log.SizeBytes()
		must(b, err)
		stop := proc.WatchMemory()
		before := cpuTime(b)
		b.StartTimer()
		if !c.Pass(context.Background()) {
			b.Fatal(c.Uncleanable())
		}
		b.StopTimer()
		used := cpuTime(b) - before
		peak := stop()
		after, err := log.SizeBytes()
		must(b, err)
		m := c.Metrics()
		b.ReportMetric(float64(bytes)/1e6/m.Took().Seconds(), "MB/s")
		b.ReportMetric(float64(2*keys)/m.Took().Seconds(), "records/s")
		b.ReportMetric(used.Seconds()/(float64(bytes)/1e9), "CPU-s/GB")
		b.ReportMetric(float64(peak)/1e6, "MB-memory")
		b.ReportMetric(float64(bytes)/1e6, "MB-before")
		b.ReportMetric(float64(after)/1e6, "MB-after")
		must(b, log.Abandon())
		must(b, os.RemoveAll(root))
	}
}

func benchCleaner(log *commitlog.Log, root string, keys int) *Cleaner {
	cfg := DefaultConfig()
	cfg.DedupeBufferBytes = max(cfg.DedupeBufferBytes, int64(float64(keys)*slotBytes/cfg.LoadFactor*1.01))
	part := Partition{Name: worldName, Log: log, Dir: root}
	return New(Options{FS: vfs.OS(), Config: cfg, Clock: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Logs:  func() []Partition { return []Partition{part} }})
}

// writeKeys makes a log with two records of each key, the later ones in another order.
func writeKeys(b *testing.B, root string, keys, size int, codec record.Codec) *commitlog.Log {
	dir := filepath.Join(root, worldName.String())
	must(b, os.MkdirAll(dir, 0o755))
	cfg := commitlog.DefaultConfig()
	cfg.CleanupPolicy, cfg.MinCleanableDirtyRatio = commitlog.CleanupCompact, 0
	cfg.MessageTimestampAfterMaxMs = 1 << 62
	cfg.SegmentBytes = 256 << 20
	log, err := commitlog.Open(commitlog.Options{FS: vfs.OS(), Dir: dir, Topic: worldName.Topic, Config: cfg,
		Clock: time.Now, Clean: true})
	must(b, err)
	value := bytes.Repeat([]byte("v"), size)
	o := record.DefaultBuilderOptions()
	o.Codec = codec
	builder := record.NewBuilder(o)
	const perBatch = 100
	for i := 0; i < 2*keys; i += perBatch {
		builder.Reset(o)
		for j := i; j < i+perBatch; j++ {
			key := j % keys
			if j >= keys {
				key = (key*7919 + 13) % keys
			}
			must(b, builder.Append(1_700_000_000_000+int64(j), fmt.Appendf(nil, "key-%09d", key), value, nil))
		}
		_, err := log.AppendAsLeader(builder.Bytes(), commitlog.AppendOptions{})
		must(b, err)
	}
	must(b, log.Roll())
	log.UpdateHighWatermark(log.EndOffset())
	must(b, log.Flush())
	return log
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOffsetMap puts and finds keys.
func BenchmarkOffsetMap(b *testing.B) {
	m := newOffsetMap(1<<31-1, 0.9)
	keys := make([][]byte, 1<<20)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%09d", i)
	}
	b.Run("put", func(b *testing.B) {
		for i := range b.N {
			m.put(keys[i&(1<<20-1)], int64(i))
		}
	})
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			m.get(keys[i&(1<<20-1)])
		}
	})
}
