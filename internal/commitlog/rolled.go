package commitlog

import (
	"cmp"
	"slices"

	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
)

// rolled is what a roll leaves to be made durable in the background. The old segment may lie below the recovery point,
// but its end was written since.
type rolled struct {
	segment  *segment.Segment // that was ended
	next     int64            // base offset of the one behind it
	snapshot int64            // offset of the producer snapshot
	taken    bool             // there is one
}

// rolledAtOnce is how many rolls are made durable together: flushes of another kind wait as long.
const rolledAtOnce = 1024

// flushLater has the background make a roll durable, together with those that wait already: one task for a log, however
// many rolls there are. The caller holds mu.
func (l *Log) flushLater(r rolled) {
	if !r.segment.Acquire() {
		return // it is gone, and with it what there was to flush
	}
	l.rolled = append(l.rolled, r)
	if !l.flushing {
		l.flushing = true
		l.afterUnlock(l.flushRolled)
	}
}

// flushRolled makes the rolls durable that wait, and seals their segments.
func (l *Log) flushRolled() {
	for work := l.takeRolled(rolledAtOnce); len(work) > 0; work = l.takeRolled(rolledAtOnce) {
		err := l.flushWork(work)
		if err != nil {
			l.o.Logger.Warn("flush after a roll", "error", err)
		}
		l.sealRolled(work, err == nil)
	}
}

// takeRolled takes the oldest rolls that wait; none ends the background's task.
func (l *Log) takeRolled(most int) []rolled {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.rolled), most)
	work := l.rolled[:n:n]
	if l.rolled = l.rolled[n:]; n == 0 {
		l.rolled, l.flushing = nil, false
	}
	return work
}

// flushWork makes rolls durable and moves the recovery point to the base of the segment behind the last one.
func (l *Log) flushWork(work []rolled) error {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	if l.closed.Load() {
		return nil // the folder may have another name by now, or be gone
	}
	if f := l.failure.Load(); f != nil {
		return l.fail("flush "+l.name, f.err)
	}
	next := work[len(work)-1].next
	segments := l.unflushed(next, false)
	defer release(segments)
	err := l.flushSegments(withRolled(segments, work))
	if err == nil {
		err = l.syncSnapshots(work)
	}
	if err != nil {
		return l.fail("flush "+l.name, err)
	}
	l.flushed(next)
	return nil
}

// withRolled adds the segments of rolls to a list that is in order, each once.
func withRolled(segments []*segment.Segment, work []rolled) []*segment.Segment {
	all := slices.Clone(segments)
	for _, r := range work {
		all = append(all, r.segment)
	}
	slices.SortStableFunc(all, func(a, b *segment.Segment) int { return cmp.Compare(a.BaseOffset(), b.BaseOffset()) })
	return slices.Compact(all)
}

// syncSnapshots makes the producer snapshots of rolls durable.
func (l *Log) syncSnapshots(work []rolled) error {
	var offsets []int64
	for _, r := range work {
		if r.taken {
			offsets = append(offsets, r.snapshot)
		}
	}
	if len(offsets) >= l.o.Many && l.o.SyncAll != nil {
		return l.o.SyncAll()
	}
	return inParallelBy(syncsAtOnce, len(offsets), func(i int) error {
		return producerstate.SyncSnapshot(l.o.FS, l.Dir(), offsets[i])
	})
}

// sealRolled seals the segments of rolls, if all is well with them, and lets go of them.
func (l *Log) sealRolled(work []rolled, durable bool) {
	for _, r := range work {
		if durable {
			l.seal(r.segment)
		}
		r.segment.Release()
	}
}
