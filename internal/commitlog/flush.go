package commitlog

import (
	"slices"

	"tidemark/internal/segment"
)

// Flush makes everything appended so far durable and moves the recovery point to the log end offset.
func (l *Log) Flush() error { return l.flushTo(l.EndOffset(), true) }

// flushTo makes every batch below offset durable, and the active segment too when all is set. It works beside
// appends: what they add meanwhile is not covered.
func (l *Log) flushTo(offset int64, all bool) error {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	if l.closed.Load() {
		return nil // the end of the log has seen to it, or nobody wants it any more
	}
	if offset <= l.RecoveryPoint() && !all {
		return nil
	}
	if f := l.failure.Load(); f != nil {
		return l.fail("flush "+l.name, f.err)
	}
	segments := l.unflushed(offset, all)
	defer release(segments)
	if err := l.flushSegments(segments); err != nil {
		return l.fail("flush "+l.name, err)
	}
	l.flushed(offset)
	return nil
}

// flushHeld is flushTo for callers that hold mu: it does not wait for a flush under way.
func (l *Log) flushHeld(offset int64) error {
	segments := l.unflushed(offset, true)
	defer release(segments)
	if err := l.flushSegments(segments); err != nil {
		return err
	}
	l.flushed(offset)
	return nil
}

// unflushed lists the segments with batches in [recovery point, offset), with a reference on each; the active one
// always when all is set.
func (l *Log) unflushed(offset int64, all bool) []*segment.Segment {
	v := l.view.Load()
	var out []*segment.Segment
	for i := max(v.floor(l.RecoveryPoint()), 0); i < len(v.segments); i++ {
		s := v.segments[i]
		last := i == len(v.segments)-1
		if s.BaseOffset() >= offset && !(all && last) {
			break
		}
		if s.Acquire() { // else it was deleted meanwhile, and needs no flush
			out = append(out, s)
		}
	}
	return out
}

// release gives the references up that unflushed took.
func release(segments []*segment.Segment) {
	for _, s := range segments {
		s.Release()
	}
}

// flushSegments makes segments durable that follow each other, and before them the leader epochs: below the recovery
// point nobody looks for epochs in the batches.
func (l *Log) flushSegments(segments []*segment.Segment) error {
	l.o.Metrics.Flushes.Add(1)
	if err := l.epochs.Flush(); err != nil && !IsFull(err) {
		return err
	}
	var err error
	if len(segments) >= l.o.Many && l.o.SyncAll != nil {
		err = segment.FlushTogether(segments, l.o.SyncAll)
	} else {
		err = inParallelBy(syncsAtOnce, len(segments), func(i int) error { return segments[i].Flush() })
	}
	if err != nil {
		return err
	}
	recoveryPoint := l.RecoveryPoint()
	if slices.ContainsFunc(segments, func(s *segment.Segment) bool { return s.BaseOffset() >= recoveryPoint }) {
		return l.o.FS.SyncDir(l.Dir())
	}
	return nil
}

// syncsAtOnce is how many files are synced side by side: journals of file systems take many in one commit.
const syncsAtOnce = 8

// flushed moves the recovery point, unless a truncation moved the log end below it meanwhile.
func (l *Log) flushed(offset int64) {
	l.lastFlushMs.Store(l.now())
	for {
		old := l.recoveryPoint.Load()
		to := min(offset, l.EndOffset())
		if to <= old || l.recoveryPoint.CompareAndSwap(old, to) {
			return
		}
	}
}
