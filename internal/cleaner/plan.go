package cleaner

import (
	"math"
	"sort"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/segment"
)

// Partition is a log that may be compacted.
type Partition struct {
	Name checkpoint.TopicPartition
	Log  *commitlog.Log
	Dir  string // the log directory that it lies in
}

// plan is what a round on one log would do.
type plan struct {
	Partition
	held *commitlog.Held
	cfg  commitlog.Config

	firstDirty int64 // no round has seen what lies from here on
	end        int64 // base of the first segment that the round leaves alone
	reset      bool  // the checkpoint was of no use; firstDirty is the log start

	cleanBytes, dirtyBytes int64
	delayMs                int64 // by how much max.compaction.lag.ms is over; 0: it is not
}

// ratio is the dirty part of what a round would read.
func (p *plan) ratio() float64 { return float64(p.dirtyBytes) / float64(p.cleanBytes+p.dirtyBytes) }

// wanted reports whether the log is to be compacted now.
func (p *plan) wanted() bool {
	return p.cleanBytes+p.dirtyBytes > 0 &&
		(p.delayMs > 0 && p.dirtyBytes > 0 || p.ratio() > p.cfg.MinCleanableDirtyRatio)
}

// makePlan looks at a log whose line in the checkpoint is checkpointed; known is false when it has none. The caller
// releases what the plan holds. Errors: commitlog.ErrClosed, those of the disk.
func makePlan(part Partition, checkpointed int64, known bool, now time.Time) (*plan, error) {
	held, err := part.Log.Hold()
	if err != nil {
		return nil, err
	}
	p := &plan{Partition: part, held: held, cfg: part.Log.Config()}
	p.firstDirty, p.reset = firstDirty(held, checkpointed, known)
	if err := p.measure(now.UnixMilli()); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *plan) release() { p.held.Release(len(p.held.Segments)) }

// firstDirty is where the dirty part of a log begins. A checkpoint that lies outside of the log does not count.
func firstDirty(h *commitlog.Held, checkpointed int64, known bool) (offset int64, reset bool) {
	switch {
	case !known:
		return h.Start, false
	case checkpointed < h.Start || checkpointed > h.End:
		return h.Start, true
	default:
		return checkpointed, false
	}
}

// measure finds where the round must end, and counts what it would read.
func (p *plan) measure(nowMs int64) error {
	all := p.held.Segments
	sealed, active := all[:len(all)-1], all[len(all)-1].BaseOffset()
	var dirty []*segment.Segment
	if p.firstDirty < active {
		dirty = sealed[from(sealed, p.firstDirty):]
	}
	end := min(p.held.LastStable, active)
	young, err := p.firstYoung(dirty, nowMs)
	if err != nil {
		return err
	}
	if young != nil {
		end = min(end, young.BaseOffset())
	}
	p.end = active
	if end = max(end, p.firstDirty); end < active && len(sealed) > 0 { // whole segments only
		p.end = sealed[from(sealed, end)].BaseOffset()
	}
	if p.cleanBytes, err = sizes(all, math.MinInt64, p.firstDirty); err != nil {
		return err
	}
	if p.firstDirty < p.end {
		if p.dirtyBytes, err = sizes(sealed, p.firstDirty, p.end); err != nil {
			return err
		}
	}
	p.delayMs, err = p.delay(dirty, nowMs)
	return err
}

// sizes is how many bytes the segments have from the one that holds an offset up to the one that begins at or behind
// another.
//
// Kafka: so a segment that is partly clean counts as clean and as dirty.
func sizes(segments []*segment.Segment, first, end int64) (int64, error) {
	total := int64(0)
	for _, s := range segments[from(segments, first):] {
		if s.BaseOffset() >= end {
			break
		}
		size, err := s.Size()
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

// firstYoung is the first of the dirty segments that min.compaction.lag.ms protects; nil when none is.
func (p *plan) firstYoung(dirty []*segment.Segment, nowMs int64) (*segment.Segment, error) {
	if p.cfg.MinCompactionLagMs <= 0 {
		return nil, nil
	}
	for _, s := range dirty {
		largest, err := s.Largest()
		if err != nil {
			return nil, err
		}
		if largest < 0 {
			modified, err := s.LastModified()
			if err != nil {
				return nil, err
			}
			largest = modified.UnixMilli()
		}
		if largest > nowMs-p.cfg.MinCompactionLagMs {
			return s, nil
		}
	}
	return nil, nil
}

// delay is for how long the oldest dirty segment has been due by max.compaction.lag.ms, told by its first batch.
func (p *plan) delay(dirty []*segment.Segment, nowMs int64) (int64, error) {
	due := nowMs - max(p.cfg.MaxCompactionLagMs, 0)
	if due < 0 { // it is no time that a record can have
		return 0, nil
	}
	delay := int64(0)
	for _, s := range dirty {
		first, err := s.FirstBatchTimestamp()
		if err != nil {
			return 0, err
		}
		if first > 0 {
			delay = max(delay, due-first)
		}
	}
	return delay, nil
}

// from is the index of the segment that holds an offset, 0 when it lies before the first one.
func from(segments []*segment.Segment, offset int64) int {
	n := sort.Search(len(segments), func(i int) bool { return segments[i].BaseOffset() > offset })
	return max(n-1, 0)
}
