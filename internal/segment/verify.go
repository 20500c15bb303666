package segment

import (
	"errors"
	"fmt"
	"io/fs"

	"tidemark/internal/index"
)

// deepCheckBytes bounds the index files that are read whole at their first use. Of a larger one the ends are looked
// at; its entries are compared with the log as they are used.
const deepCheckBytes = 64 << 10

// ready makes sure, once, that the offset and time index of a segment that was there at the start are present and in
// order, and rebuilds both when one is not.
func (s *Segment) ready() error {
	if s.verified.Load() {
		return nil
	}
	reason := ""
	if !s.has(HasIndex) {
		reason = "the offset index is missing"
	} else if !s.has(HasTime) {
		reason = "the time index is missing"
	} else if err := errors.Join(s.checkOffsets(), s.checkTimes()); err != nil {
		var damaged *index.CorruptError
		if !errors.As(err, &damaged) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		reason = err.Error()
	}
	if reason != "" {
		return s.rebuild(reason)
	}
	s.verified.Store(true)
	return s.checkTail()
}

// checkTail looks at the last index interval of a segment that was there at the start. Bytes behind its last batch,
// which no reader could get past, count no longer as a part of the segment. The file keeps them.
func (s *Segment) checkTail() error {
	size, err := s.Size()
	if err != nil {
		return err
	}
	_, pos, damage, err := s.End(size)
	if err != nil || damage == nil {
		return err
	}
	s.env.Logger.Error("a segment ends with bytes that are no batch; readers go on behind it", "error", damage)
	s.size.CompareAndSwap(size, pos)
	return nil
}

// Distrust has the indexes rebuilt at their first use. It is for a segment that was ended just before a power loss: the
// closing time index entry may not have reached the disk.
func (s *Segment) Distrust() { s.present.And(^uint32(HasTime)) }

// ReadableSize is Size without the bytes at the end that are no batch. It looks the segment over at its first use.
func (s *Segment) ReadableSize() (int64, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	return s.Size()
}

func (s *Segment) checkOffsets() error {
	f := s.files()
	size, err := s.Size()
	if err != nil {
		return err
	}
	n, err := f.offsets.Len()
	if err != nil || n*index.OffsetEntrySize > deepCheckBytes {
		return err
	}
	return tolerate(f.offsets.Check(index.CheckOptions{LogSizeBytes: size}))
}

func (s *Segment) checkTimes() error {
	f := s.files()
	n, err := f.times.Len()
	if err != nil {
		return err
	}
	if n*index.TimeEntrySize <= deepCheckBytes {
		return tolerate(f.times.Check(index.CheckOptions{}))
	}
	return s.checkTimeEnds(n)
}

// checkTimeEnds looks whether the last entries of a large time index rise, and lie above the first.
func (s *Segment) checkTimeEnds(n int) error {
	times := s.files().times
	prev, err := times.Entry(0)
	if err != nil {
		return err
	}
	for i := n - 16; i < n; i++ {
		e, err := times.Entry(i)
		if err != nil {
			return err
		}
		if e.Timestamp <= prev.Timestamp || e.Offset < prev.Offset {
			return &index.CorruptError{
				Name: times.Name(), Entry: int64(i), Kind: index.NotIncreasing,
				Reason: fmt.Sprintf("(%d, %d) after (%d, %d)", e.Timestamp, e.Offset, prev.Timestamp, prev.Offset),
			}
		}
		prev = e
	}
	return nil
}

// tolerate passes an index that is larger than the topic now allows: it was made under another segment.index.bytes.
func tolerate(err error) error {
	var damaged *index.CorruptError
	if errors.As(err, &damaged) && damaged.Kind == index.Oversized {
		return nil
	}
	return err
}

// rebuild makes the offset and time index anew from the batch headers, up to the first bytes that are no batch. The
// log is not changed.
func (s *Segment) rebuild(reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trusted.Load() { // somebody else was faster
		return nil
	}
	s.env.Metrics.IndexesRebuilt.Add(1)
	s.env.Logger.Warn("rebuild indexes of a segment", "segment", s.filesLocked().log.Name(), "reason", reason)
	size := s.size.Load()
	if size < 0 {
		var err error
		if size, err = s.filesLocked().log.Size(); err != nil {
			return fmt.Errorf("rebuild indexes of segment %020d: %w", s.base, err)
		}
		s.size.Store(size)
	}
	b, err := s.startBuild()
	if err != nil {
		return fmt.Errorf("rebuild indexes of segment %020d: %w", s.base, err)
	}
	sc := s.scan(0, size)
	defer sc.close()
	for sc.next() && s.CanHold(sc.h.LastOffset) {
		if err := b.add(BatchOf(sc.h, sc.Pos())); err != nil {
			return fmt.Errorf("rebuild indexes of segment %020d: %w", s.base, err)
		}
	}
	if err := notDamage(sc.Err()); err != nil {
		return fmt.Errorf("rebuild indexes of segment %020d: %w", s.base, err)
	}
	if err := b.finish(); err != nil {
		return fmt.Errorf("rebuild indexes of segment %020d: %w", s.base, err)
	}
	s.verified.Store(true)
	s.trusted.Store(true)
	if sc.Err() != nil {
		s.env.Logger.Error("a segment ends with bytes that are no batch; readers go on behind it", "error", sc.Err())
		s.size.Store(sc.End())
	}
	return nil
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
	f := s.filesLocked()
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

func (b *build) add(batch Batch) error {
	if batch.MaxTimestamp > b.max.Timestamp {
		b.max = index.TimeEntry{Timestamp: batch.MaxTimestamp, Offset: batch.LastOffset}
	}
	if batch.Pos-b.lastPos <= b.s.cfg.IndexIntervalBytes || b.full {
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
	if _, err := b.f.times.Append(b.max.Timestamp, b.max.Offset, true); err != nil && !errors.Is(err, index.ErrFull) {
		return err
	}
	if err := b.f.offsets.Trim(); err != nil {
		return err
	}
	if err := b.f.times.Trim(); err != nil {
		return err
	}
	b.s.maxMu.Lock()
	b.s.max, b.s.maxKnown = b.max, true
	b.s.maxMu.Unlock()
	return nil
}
