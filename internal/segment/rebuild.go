package segment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"tidemark/internal/index"
	"tidemark/record"
)

// Reasons to rebuild indexes that tell of nothing wrong.
const (
	reasonEnded = "the segment was ended just before the broker was"
	// An offset index without entries is legal where few batches came between restarts: each begins to count the bytes
	// between entries anew.
	reasonEmpty = "the offset index is empty"
)

func isDamaged(err error) bool {
	return errors.As(err, new(*index.CorruptError)) || errors.Is(err, fs.ErrNotExist)
}

// rebuild makes the offset and time index anew from the batches, which are all read and verified. The log is not
// changed. A segment that is appended to takes no appends meanwhile.
func (s *Segment) rebuild(reason string) error {
	known := s.seen.Load()
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	if s.trusted.Load() && s.builtWith >= known { // somebody else was faster
		return nil
	}
	return s.rebuildLocked(reason)
}

// rebuildLocked is rebuild for callers that hold checkMu.
func (s *Segment) rebuildLocked(reason string) error {
	s.env.Metrics.IndexesRebuilt.Add(1)
	level := slog.LevelWarn
	if reason == reasonEnded || reason == reasonEmpty {
		level = slog.LevelInfo
	}
	s.env.Logger.Log(context.Background(), level, "rebuild indexes of a segment", "segment", s.LogName(), "reason", reason)
	if err := s.rebuildIndexes(); err != nil {
		return fmt.Errorf("rebuild indexes of segment %020d: %w", s.base, err)
	}
	if err := s.settleTxns(); err != nil {
		return err
	}
	s.compared = true
	s.endsOK.Store(true)
	s.trusted.Store(true)
	s.verified.Store(true)
	return nil
}

func (s *Segment) rebuildIndexes() error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	growing := s.growing.Load()
	size, err := s.Size()
	if err != nil {
		return err
	}
	if growing {
		size = s.indexedTo
	}
	txns, err := s.startTxnCheck()
	if err != nil {
		return err
	}
	b, err := s.startBuild()
	if err != nil {
		return err
	}
	sc := s.scanWith(0, size, walk{checksums: true, order: true, noIndex: true, tail: true})
	defer sc.close()
	for sc.next() {
		if err := b.add(BatchOf(sc.h, sc.Pos())); err != nil {
			return err
		}
		if err := txns.batch(&sc); err != nil {
			return err
		}
	}
	if err := notDamage(sc.Err()); err != nil {
		return err
	}
	s.builtWith = s.seen.Load()
	s.noteProven(0, sc.End())
	s.txnDoubt = txns.doubt
	if growing {
		s.accBytes = size - b.lastPos
		s.setMax(b.max)
		return nil
	}
	return b.finish()
}

// build makes the indexes anew, batch by batch.
type build struct {
	s       *Segment
	f       *files
	max     index.TimeEntry
	lastPos int64 // of the last batch that got an entry
	full    bool
}

func (s *Segment) startBuild() (*build, error) {
	f := s.files()
	s.dirty.Store(true)
	s.found(HasIndex | HasTime)
	if err := f.offsets.Reset(); err != nil {
		return nil, err
	}
	if err := f.times.Reset(); err != nil {
		return nil, err
	}
	return &build{s: s, f: f, max: index.TimeEntry{Timestamp: -1, Offset: s.base}}, nil
}

// add notes a batch. One whose offset is too far from the base for an entry has none: look-ups scan for it.
func (b *build) add(batch Batch) error {
	if batch.MaxTimestamp > b.max.Timestamp {
		b.max = index.TimeEntry{Timestamp: batch.MaxTimestamp, Offset: batch.LastOffset}
	}
	if batch.Pos-b.lastPos <= b.s.cfg.IndexIntervalBytes || b.full || !b.s.CanHold(batch.LastOffset) {
		return nil
	}
	err := b.f.offsets.Append(batch.LastOffset, batch.Pos)
	if err == nil {
		_, err = b.f.times.Append(b.max.Timestamp, b.max.Offset, false)
		b.lastPos = batch.Pos
	}
	if errors.Is(err, index.ErrFull) { // segment.index.bytes was larger once: look-ups scan the rest
		b.full, err = true, nil
	}
	return err
}

func (b *build) finish() error {
	if b.s.CanHold(b.max.Offset) {
		_, err := b.f.times.Append(b.max.Timestamp, b.max.Offset, true)
		if err != nil && !errors.Is(err, index.ErrFull) {
			return err
		}
	}
	if err := b.f.offsets.Trim(); err != nil {
		return err
	}
	if err := b.f.times.Trim(); err != nil {
		return err
	}
	b.s.setMax(b.max)
	return nil
}

// eachBatch calls a function for every batch of the first size bytes, without asking an index.
func (s *Segment) eachBatch(size int64, each Each) error {
	sc := s.scanWith(0, size, walk{order: true, noIndex: true, tail: true})
	defer sc.close()
	for sc.next() {
		if err := each(sc.h, sc.Batch); err != nil {
			if errors.As(err, new(*record.CorruptError)) {
				continue
			}
			return err
		}
	}
	return notDamage(sc.Err())
}
