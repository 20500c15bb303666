package commitlog

import (
	"errors"
	"io/fs"

	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
)

// segmentConfig is what a new segment is made with.
func (l *Log) segmentConfig(cfg *Config) segment.Config {
	c := segment.Config{
		IndexIntervalBytes: int64(cfg.IndexIntervalBytes), MaxIndexBytes: int64(cfg.SegmentIndexBytes),
	}
	if limit := min(cfg.SegmentJitterMs, cfg.SegmentMs); limit > 0 && l.o.Rand != nil {
		c.JitterMs = int64(l.o.Rand() % uint64(limit))
	}
	if cfg.Preallocate {
		c.PreallocateBytes = int64(cfg.SegmentBytes)
	}
	return c
}

// maybeRoll starts a new segment when the active one cannot take the batches. The caller holds mu.
func (l *Log) maybeRoll(w *write, cfg *Config) error {
	roll, err := l.view.Load().active().ShouldRoll(segment.Roll{
		SizeBytes: int64(len(w.bytes)), MaxTimestamp: w.maxTs, LastOffset: w.lastOffset,
		SegmentBytes: int64(cfg.SegmentBytes), SegmentMs: cfg.maxSegmentMs(), NowMs: w.nowMs,
	})
	if err != nil || !roll {
		return err
	}
	return l.roll(l.rollOffset(w))
}

// rollOffset is the base of the segment that batches go into.
//
// Kafka: old formats do not tell a batch's first offset without decompressing it, so the lowest possible one is taken.
func (l *Log) rollOffset(w *write) int64 {
	end := l.EndOffset()
	if w.first.Magic >= 2 || w.first.Codec() == record.None {
		return max(w.first.BaseOffset, end)
	}
	return max(w.lastOffset-(1<<31-1), end)
}

// Roll starts a new segment at the log end offset. An empty active segment there is made anew.
func (l *Log) Roll() error {
	l.mu.Lock()
	defer l.unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if err := l.roll(l.EndOffset()); err != nil {
		return l.failUnlessFull("roll "+l.name, err)
	}
	return nil
}

// roll makes a new active segment from base on, ends the old one, takes a producer snapshot and has the background
// make the old segment durable. When the disk is full, all is as before. The caller holds mu.
func (l *Log) roll(base int64) error {
	v := *l.view.Load()
	old := v.active()
	var snapshot int64
	var taken bool
	var err error
	if old.BaseOffset() == base {
		if v.endPos > 0 {
			return errors.New("a segment of that base offset exists and is not empty")
		}
		if snapshot, taken, err = l.snapshotAt(base); err != nil {
			return err
		}
		if err := l.replaceEmpty(&v, base); err != nil {
			return err
		}
	} else {
		if err := l.removeLeftovers(base); err != nil {
			return err
		}
		fresh, err := segment.Create(l.env, base, l.segmentConfig(l.cfg.Load()))
		if err != nil {
			return err
		}
		if snapshot, taken, err = l.snapshotAt(base); err == nil {
			err = old.Finish()
		}
		if err != nil {
			fresh.Discard()
			return err
		}
		old.SetLimit(base)
		v.segments = append(v.segments, fresh)
	}
	v.endPos = 0
	l.view.Store(&v)
	l.o.Metrics.Rolls.Add(1)
	l.flushLater(rolled{segment: old, next: base, snapshot: snapshot, taken: taken})
	return nil
}

// snapshotAt takes a producer snapshot for a new segment, not durable yet.
func (l *Log) snapshotAt(base int64) (offset int64, taken bool, err error) {
	l.producers.SetEndOffset(base)
	return l.producers.Snapshot(false)
}

// replaceEmpty puts a new segment in the place of the empty active one. A full disk makes it fail for good: the old
// files have other names by then.
func (l *Log) replaceEmpty(v *view, base int64) error {
	old := v.active()
	if err := l.doom(old); err != nil {
		return err
	}
	fresh, err := segment.Create(l.env, base, l.segmentConfig(l.cfg.Load()))
	if err != nil {
		return l.fail("roll "+l.name, err)
	}
	v.segments = append(v.segments[:len(v.segments)-1:len(v.segments)-1], fresh)
	return nil
}

// removeLeftovers removes files that have the names of a segment to be made though no segment has them.
func (l *Log) removeLeftovers(base int64) error {
	for _, suffix := range []string{
		segment.LogSuffix, segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix,
	} {
		name := l.path(segment.Name(base, suffix))
		_, err := l.o.FS.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			l.o.Logger.Warn("remove a file in the way of a new segment", "file", name)
			err = l.o.FS.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// doom takes a segment out of use: its files are renamed now and removed after file.delete.delay.ms, when the last
// reader is done. The reference of the list passes to the delayed removal.
func (l *Log) doom(s *segment.Segment) error {
	if err := s.Doom(); err != nil {
		return err
	}
	delay := l.cfg.Load().FileDeleteDelayMs
	l.afterUnlock(func() { l.after(delay, s.Release) })
	return nil
}

// abortedTxn is the transaction index entry of a transaction that ended.
func abortedTxn(done producerstate.CompletedTxn, lastStable int64) index.AbortedTxn {
	return index.AbortedTxn{
		ProducerID: done.ProducerID, FirstOffset: done.FirstOffset,
		LastOffset: done.LastOffset, LastStableOffset: lastStable,
	}
}
