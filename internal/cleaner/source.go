package cleaner

import (
	"fmt"

	"tidemark/internal/segment"
	"tidemark/record"
)

// source reads the batches of a segment, and proves each: a round must not spread damage, nor take it for the end.
type source struct {
	sc    record.Scanner
	seg   *segment.Segment
	size  int64
	next  int64 // the least offset that the next batch may have
	limit int64 // the first offset that it may not have: the base of the segment behind
	entry []byte
	err   error
}

// open starts with the batch at pos. Errors are the disk's.
func (s *source) open(seg *segment.Segment, pos, limit int64, maxBatch int) error {
	size, err := seg.Size()
	if err != nil {
		return err
	}
	s.seg, s.size, s.next, s.limit, s.err = seg, size, seg.BaseOffset(), limit, nil
	s.sc.File = seg.LogName()
	s.sc.MaxBatchBytes = maxBatch
	s.sc.Reset(seg.Log(), pos, size)
	return nil
}

// scan goes to the next batch.
func (s *source) scan() bool {
	if s.err != nil || !s.sc.Next() {
		return false
	}
	h := s.sc.Header()
	switch {
	case h.LastOffset < h.BaseOffset:
		s.err = s.corrupt(fmt.Sprintf("last offset %d lies below base offset %d", h.LastOffset, h.BaseOffset))
	case h.BaseOffset < s.next:
		s.err = s.corrupt(fmt.Sprintf("base offset %d lies below %d, the offset behind the batch before",
			h.BaseOffset, s.next))
	case h.LastOffset >= s.limit:
		s.err = s.corrupt(fmt.Sprintf("last offset %d reaches into the next segment, from %d", h.LastOffset, s.limit))
	}
	if s.err != nil {
		return false
	}
	if s.entry, s.err = s.sc.Batch(); s.err != nil {
		return false
	}
	if !record.ValidCRC(s.entry) {
		s.err = s.corrupt("wrong checksum")
		return false
	}
	s.next = h.NextOffset()
	return true
}

// failure is why scan was false; nil at the end. Damage is a *record.CorruptError.
func (s *source) failure() error {
	if s.err != nil {
		return s.err
	}
	return s.sc.Err()
}

// corrupt is the error for the present batch.
func (s *source) corrupt(reason string) error {
	return &record.CorruptError{File: s.sc.File, Pos: s.sc.Pos(), Offset: s.sc.Header().BaseOffset, Reason: reason}
}

// blame says which batch an error in its records is of.
func (s *source) blame(err error) error {
	return fmt.Errorf("batch at byte %d (offset %d) of %s: %w", s.sc.Pos(), s.sc.Header().BaseOffset, s.sc.File, err)
}
