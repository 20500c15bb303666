package commitlog

import (
	"fmt"
	"math"
	"slices"

	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
)

// TruncateTo removes the records from offset on, as a follower does that has others than its leader. The log end
// offset becomes offset, unless it is lower. Slices in flight keep their bytes.
func (l *Log) TruncateTo(offset int64) error {
	if offset < 0 {
		return fmt.Errorf("truncate log %s to offset %d: it is negative", l.name, offset)
	}
	l.lockAll()
	defer l.unlockAll()
	if err := l.writable(); err != nil {
		return err
	}
	l.noteCut(offset)
	err := l.truncateTo(offset)
	if err != nil {
		return l.fail("truncate "+l.name, err)
	}
	return nil
}

// noteCut remembers where a truncation cuts. The caller holds mu.
func (l *Log) noteCut(offset int64) { l.cutTo.Store(min(l.cutTo.Load(), offset)) }

// TruncatedTo is the lowest offset at which the log was cut since this was asked last; false when it was not. What is
// known of offsets from there on is not true any more.
func (l *Log) TruncatedTo() (int64, bool) {
	to := l.cutTo.Swap(math.MaxInt64)
	return to, to != math.MaxInt64
}

func (l *Log) truncateTo(offset int64) error {
	v := l.view.Load()
	if offset >= v.end {
		l.epochs.TruncateFromEnd(v.end)
		return l.epochs.Flush()
	}
	if offset < v.segments[0].BaseOffset() {
		return l.truncateFully(offset)
	}
	keep := v.floor(offset)
	last := v.segments[keep]
	end, err := v.endOf(keep)
	if err != nil {
		return err
	}
	pos, err := last.CutPosition(offset, end)
	if err != nil {
		return err
	}
	// Readers of an older view start over, and those of this one see nothing that goes away. Who holds the segment by
	// now keeps its file.
	l.truncating.Store(true)
	defer l.truncating.Store(false)
	next := view{segments: v.segments[: keep+1 : keep+1], end: offset, endPos: pos, cuts: v.cuts + 1}
	l.view.Store(&next)
	if last.Shared() {
		fresh, err := last.Replace(offset, pos)
		if err != nil {
			return err
		}
		replaced := view{segments: slices.Clone(next.segments), end: offset, endPos: pos, cuts: next.cuts + 1}
		replaced.segments[keep] = fresh
		l.view.Store(&replaced)
		last.Release()
	} else if err := last.Truncate(offset, pos); err != nil {
		return err
	}
	for _, s := range v.segments[keep+1:] {
		if err := l.dropSegment(s); err != nil {
			return err
		}
	}
	return l.afterTruncation(offset)
}

// dropSegment dooms a segment and its snapshot.
func (l *Log) dropSegment(s *segment.Segment) error {
	if err := l.doom(s); err != nil {
		return err
	}
	return l.dropSnapshot(s.BaseOffset())
}

// dropSnapshot renames a producer snapshot now and removes it later.
func (l *Log) dropSnapshot(offset int64) error {
	path := l.producers.TakeSnapshot(offset)
	if path == "" {
		return nil
	}
	name, err := producerstate.MarkDeleted(l.o.FS, path)
	if err != nil || name == "" {
		return err
	}
	delay := l.cfg.Load().FileDeleteDelayMs
	l.afterUnlock(func() {
		l.after(delay, func() { l.removeQuietly(name) })
	})
	return nil
}

// afterTruncation brings what depends on the log's end in line with it, and makes the truncation durable: records that
// come back after a power loss would contradict those that the leader sent since.
func (l *Log) afterTruncation(offset int64) error {
	if err := l.view.Load().active().Flush(); err != nil {
		return err
	}
	if err := l.o.FS.SyncDir(l.Dir()); err != nil {
		return err
	}
	l.epochs.TruncateFromEnd(offset)
	if err := l.epochs.Flush(); err != nil {
		return err
	}
	l.start.Store(min(l.StartOffset(), offset))
	l.recoveryPoint.Store(min(l.RecoveryPoint(), offset))
	l.highWatermark.Store(min(l.highWatermark.Load(), offset))
	segments := l.view.Load().segments
	replay := replayer{log: l, producers: l.producers, marks: lastBases(segments)}
	if err := replay.load(segments, l.StartOffset(), offset); err != nil {
		return err
	}
	l.refreshFirstUnstable()
	return nil
}

// TruncateFully removes all records and starts over at an offset, which becomes log start and log end offset.
func (l *Log) TruncateFully(start int64) error {
	l.lockAll()
	defer l.unlockAll()
	if err := l.writable(); err != nil {
		return err
	}
	l.noteCut(start)
	if err := l.truncateFully(start); err != nil {
		return l.fail("truncate "+l.name, err)
	}
	return nil
}

func (l *Log) truncateFully(start int64) error {
	v := l.view.Load()
	for _, s := range v.segments { // renamed first: the new one may have the name of an old one
		if err := l.dropSegment(s); err != nil {
			return err
		}
	}
	fresh, err := segment.Create(l.env, start, l.segmentConfig(l.cfg.Load()))
	if err != nil {
		return err
	}
	l.start.Store(start)
	l.view.Store(&view{segments: []*segment.Segment{fresh}, end: start, cuts: v.cuts + 1})
	l.recoveryPoint.Store(min(l.RecoveryPoint(), start))
	l.highWatermark.Store(start)
	l.epochs.Clear()
	if err := l.epochs.Flush(); err != nil {
		return err
	}
	if err := l.producers.TruncateFully(start); err != nil {
		return err
	}
	l.refreshFirstUnstable()
	return nil
}
