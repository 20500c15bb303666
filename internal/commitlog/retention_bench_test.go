package commitlog

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/segment"
)

// BenchmarkRetention deletes 10 000 expired segments while another goroutine appends: the time that it takes, and the
// longest time that an append took meanwhile, until the last file is removed, and before.
func BenchmarkRetention(b *testing.B) {
	const segments, batches = 10_000, 8
	var took, gone, stall, quiet time.Duration
	for b.Loop() {
		b.StopTimer()
		l, _ := benchLog(b, segments)
		l.o.Background = func(task func()) { go task() }
		l.sealRolled(l.rolled, false) // lets go of them
		l.rolled, l.flushing = nil, false
		l.o.After = func(d time.Duration, task func()) { time.AfterFunc(d, task) }
		cfg := l.Config()
		cfg.SegmentBytes, cfg.RetentionMs, cfg.FileDeleteDelayMs = 1<<30, 1000, 100
		cfg.IndexIntervalBytes, cfg.SegmentIndexBytes = 4096, 10<<20 // so that no roll comes meanwhile
		l.UpdateConfig(cfg)
		young := benchBatch(10, 10)
		const later = (segments + 100) * batches * 1000 // ms after the first record: later than all of them
		shiftTime(young, later)
		appendYoung := func() time.Duration {
			start := time.Now()
			if _, err := l.AppendAsLeader(append([]byte(nil), young...), AppendOptions{}); err != nil {
				b.Error(err)
			}
			return time.Since(start)
		}
		if err := l.Roll(); err != nil {
			b.Fatal(err)
		}
		for range 5000 {
			quiet = max(quiet, appendYoung())
		}
		l.UpdateHighWatermark(l.EndOffset())
		stop, stopped := make(chan struct{}), make(chan time.Duration)
		go func() {
			longest := time.Duration(0)
			for {
				select {
				case <-stop:
					stopped <- longest
					return
				default:
					longest = max(longest, appendYoung())
				}
			}
		}()
		b.StartTimer()
		start := time.Now()
		n, err := l.DeleteOldSegments(time.UnixMilli(benchStart + later))
		took += time.Since(start)
		b.StopTimer()
		awaitRemoval(b, l)
		gone = max(gone, time.Since(start))
		close(stop)
		stall = max(stall, <-stopped)
		if err != nil || n != segments {
			b.Fatalf("%d segments deleted, %v", n, err)
		}
		if err := l.Abandon(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/10000-segments")
	b.ReportMetric(float64(gone.Milliseconds()), "ms-until-removed")
	b.ReportMetric(float64(stall.Microseconds())/1000, "ms-longest-append-meanwhile")
	b.ReportMetric(float64(quiet.Microseconds())/1000, "ms-longest-append-before")
}

// awaitRemoval waits until no file of the log's folder waits for its removal.
func awaitRemoval(b *testing.B, l *Log) {
	b.Helper()
	for waiting := true; waiting; time.Sleep(100 * time.Millisecond) {
		entries, err := l.o.FS.ReadDir(l.Dir())
		if err != nil {
			b.Fatal(err)
		}
		waiting = slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			return strings.HasSuffix(e.Name(), segment.DeletedSuffix)
		})
	}
}
