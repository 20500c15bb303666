package broker

import (
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"tidemark/internal/cleaner"
	"tidemark/internal/config"
)

// cleanerConfig is what the broker configs say of compaction.
func cleanerConfig(c *config.Broker) cleaner.Config {
	out := cleaner.Config{Threads: int(c.LogCleanerThreads), DedupeBufferBytes: c.LogCleanerDedupeBufferSize,
		LoadFactor: c.LogCleanerLoadFactor, IOBufferBytes: int(c.LogCleanerIOBufferSize),
		BytesPerSecond: c.LogCleanerMaxBytesPerSec, Backoff: c.LogCleanerBackoff}
	if !c.LogCleanerEnable {
		out.Threads = 0
	}
	return out
}

// configureCleaner puts changed configs in force.
func (b *Broker) configureCleaner() {
	if b.dirs != nil {
		b.dirs.Cleaner().Configure(cleanerConfig(b.config()))
	}
}

// watchCleaner registers what is told of compaction. Kafka's names of the same: uncleanable-partitions-count,
// uncleanable-bytes, max-dirty-percent, max-compaction-delay-secs, max-buffer-utilization-percent,
// cleaner-recopy-percent, max-clean-time-secs, time-since-last-run-ms.
func (m *brokerMetrics) watchCleaner(b *Broker) {
	count := func(of func(*cleaner.Metrics) *atomic.Int64) func(*cleaner.Cleaner) float64 {
		return func(c *cleaner.Cleaner) float64 { return float64(of(c.Metrics()).Load()) }
	}
	for name, read := range map[string]func(*cleaner.Cleaner) float64{
		"rounds_total":          count(func(m *cleaner.Metrics) *atomic.Int64 { return &m.Rounds }),
		"read_bytes_total":      count(func(m *cleaner.Metrics) *atomic.Int64 { return &m.BytesRead }),
		"written_bytes_total":   count(func(m *cleaner.Metrics) *atomic.Int64 { return &m.BytesWritten }),
		"dropped_records_total": count(func(m *cleaner.Metrics) *atomic.Int64 { return &m.RecordsDropped }),
		"invalid_records_total": count(func(m *cleaner.Metrics) *atomic.Int64 { return &m.InvalidRecords }),
		"due_partitions":        func(c *cleaner.Cleaner) float64 { return float64(c.Metrics().Due()) },
		"max_dirty_ratio":       func(c *cleaner.Cleaner) float64 { return c.Metrics().Dirtiest() },
		"max_delay_seconds":     func(c *cleaner.Cleaner) float64 { return c.Metrics().MaxDelay().Seconds() },
		"buffer_utilization":    func(c *cleaner.Cleaner) float64 { return c.Metrics().BufferUtilization() },
		"recopy_ratio":          func(c *cleaner.Cleaner) float64 { return c.Metrics().Recopied() },
		"last_round_seconds":    func(c *cleaner.Cleaner) float64 { return c.Metrics().Took().Seconds() },
		"idle_seconds":          idleSeconds,
		"uncleanable_partitions": func(c *cleaner.Cleaner) float64 {
			return float64(len(c.Uncleanable()))
		},
		"uncleanable_bytes": func(c *cleaner.Cleaner) float64 { return float64(c.UncleanableBytes()) },
	} {
		m.set.NewGauge("tidemark_cleaner_"+name, func() float64 {
			if b.dirs == nil {
				return 0
			}
			return read(b.dirs.Cleaner())
		})
	}
	m.uncleanable = func(w io.Writer) {
		if b.dirs == nil {
			return
		}
		for _, u := range b.dirs.Cleaner().Uncleanable() {
			fmt.Fprintf(w, "tidemark_cleaner_uncleanable{topic=%q,partition=\"%d\",dir=%q,reason=%q} 1\n", u.Name.Topic,
				u.Name.Partition, u.Dir, u.Reason.Error())
		}
	}
}

// idleSeconds is the time since a thread last looked for work; NaN before the first time.
func idleSeconds(c *cleaner.Cleaner) float64 {
	last := c.Metrics().LastPass()
	if last.IsZero() {
		return math.NaN()
	}
	return time.Since(last).Seconds()
}
