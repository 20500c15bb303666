package cleaner

import (
	"math"
	"sync/atomic"
	"time"
)

// Metrics count what a cleaner has done; all of them may be read at any time.
type Metrics struct {
	Rounds         atomic.Int64
	BytesRead      atomic.Int64 // for the map and for the rewriting
	BytesWritten   atomic.Int64
	RecordsDropped atomic.Int64
	InvalidRecords atomic.Int64 // without a key

	lastPassMs  atomic.Int64
	dirtiest    atomic.Uint64 // bits of a float64
	delayMs     atomic.Int64
	due         atomic.Int64
	utilization atomic.Uint64 // bits of a float64
	recopied    atomic.Uint64
	tookNs      atomic.Int64
}

// Metrics are the cleaner's.
func (c *Cleaner) Metrics() *Metrics { return &c.metrics }

func (m *Metrics) sawDirt(ratio float64, delayMs int64, due int) {
	m.dirtiest.Store(math.Float64bits(ratio))
	m.delayMs.Store(delayMs)
	m.due.Store(int64(due))
}

func (m *Metrics) add(s *Stats) {
	m.Rounds.Add(1)
	m.BytesRead.Add(s.MapBytes + s.BytesRead)
	m.BytesWritten.Add(s.BytesWritten)
	m.RecordsDropped.Add(s.RecordsRead - s.RecordsWritten)
	m.InvalidRecords.Add(s.InvalidRecords)
	m.utilization.Store(math.Float64bits(s.BufferUtilization))
	m.recopied.Store(math.Float64bits(float64(s.BytesWritten) / float64(max(s.BytesRead, 1))))
	m.tookNs.Store(int64(s.Took))
}

// Dirtiest is the largest dirty part of a log at the last look, 0 to 1 (Kafka: max-dirty-percent).
func (m *Metrics) Dirtiest() float64 { return math.Float64frombits(m.dirtiest.Load()) }

// MaxDelay is by how much the most overdue log is past max.compaction.lag.ms (Kafka: max-compaction-delay-secs).
func (m *Metrics) MaxDelay() time.Duration {
	return time.Duration(min(m.delayMs.Load(), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// Due is how many logs were due at the last look.
func (m *Metrics) Due() int64 { return m.due.Load() }

// BufferUtilization is how full the map of the last round was, 0 to 1 (Kafka: max-buffer-utilization-percent).
func (m *Metrics) BufferUtilization() float64 { return math.Float64frombits(m.utilization.Load()) }

// Recopied is what the last round wrote of what it read, 0 to 1 (Kafka: cleaner-recopy-percent).
func (m *Metrics) Recopied() float64 { return math.Float64frombits(m.recopied.Load()) }

// Took is how long the last round took (Kafka: max-clean-time-secs).
func (m *Metrics) Took() time.Duration { return time.Duration(m.tookNs.Load()) }

// LastPass is when a thread last looked for a log that is due; zero before the first time (Kafka:
// time-since-last-run-ms).
func (m *Metrics) LastPass() time.Time {
	if ms := m.lastPassMs.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}
