package segment

import (
	"errors"
	"fmt"

	"tidemark/record"
)

// Recovered is the outcome of [Segment.Recover].
type Recovered struct {
	NextOffset int64 // after the last good batch; the base offset when there is none
	SizeBytes  int64 // of the good batches, from the start of the file
	CutBytes   int64 // what lies behind them
	Damage     error // why the scan stopped before the end of the file: *record.CorruptError; nil when it did not
}

// Each is called for every batch of a recovery, in order; entry reads its bytes. A *record.CorruptError ends the
// recovery there, another error makes it fail.
type Each func(h record.Header, entry func() ([]byte, error)) error

// Recover reads every batch and builds the indexes anew. It stops at the first bytes that are no batch; when it is
// strict, also at the first batch that has a wrong checksum or does not follow the one before. It does not cut the
// log: [Segment.Cut] does.
func (s *Segment) Recover(strict bool, each Each) (Recovered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.recoverLocked(strict, each)
	if err != nil {
		return r, fmt.Errorf("recover segment %020d: %w", s.base, err)
	}
	return r, nil
}

func (s *Segment) recoverLocked(strict bool, each Each) (Recovered, error) {
	r := Recovered{NextOffset: s.base}
	f := s.filesLocked()
	size, err := f.log.Size()
	if err != nil {
		return r, err
	}
	s.size.Store(size)
	b, err := s.startBuild()
	if err != nil {
		return r, err
	}
	if s.has(HasTxn) {
		if err := f.txns.Reset(); err != nil {
			return r, err
		}
	}
	sc := s.scan(0, size)
	defer sc.close()
	err = s.recoverBatches(&sc, &r, b, strict, each)
	if errors.As(err, new(*record.CorruptError)) {
		r.Damage, err = err, nil
	}
	if err != nil {
		return r, err
	}
	r.CutBytes = size - r.SizeBytes
	if err := b.finish(); err != nil {
		return r, err
	}
	s.verified.Store(true)
	s.trusted.Store(true)
	return r, nil
}

func (s *Segment) recoverBatches(sc *scanner, r *Recovered, b *build, strict bool, each Each) error {
	for sc.next() {
		if strict {
			good, err := sc.ValidCRC()
			if err != nil {
				return err
			}
			if reason := s.fault(sc.h, r.NextOffset, good); reason != "" {
				return &record.CorruptError{File: sc.File, Pos: sc.Pos(), Offset: sc.h.BaseOffset, Reason: reason}
			}
		} else if !s.CanHold(sc.h.LastOffset) {
			continue
		}
		if err := each(sc.h, sc.Batch); err != nil {
			return err
		}
		if err := b.add(BatchOf(sc.h, sc.Pos())); err != nil {
			return err
		}
		r.NextOffset, r.SizeBytes = sc.h.NextOffset(), sc.Pos()+int64(sc.h.SizeBytes)
	}
	return sc.Err()
}

// fault says why a batch cannot stand where it does; "" when it can.
//
// Kafka does not ask whether offsets rise: a batch that repeats offsets is kept there, and moves the log end back.
func (s *Segment) fault(h record.Header, next int64, crcGood bool) string {
	switch {
	case !crcGood:
		return "wrong checksum"
	case h.BaseOffset < next:
		return fmt.Sprintf("base offset %d lies below the end offset %d of the batch before", h.BaseOffset, next)
	case h.LastOffset < h.BaseOffset:
		return fmt.Sprintf("last offset %d lies below base offset %d", h.LastOffset, h.BaseOffset)
	case !s.CanHold(h.LastOffset):
		return fmt.Sprintf("last offset %d is too far from the segment's base %d", h.LastOffset, s.base)
	}
	return ""
}

// Cut shortens the log to its first size bytes, which end with a whole batch. The indexes must fit already.
func (s *Segment) Cut(size int64) error {
	s.dirty.Store(true)
	if err := s.files().log.Truncate(size); err != nil {
		return fmt.Errorf("cut segment %020d: %w", s.base, err)
	}
	s.size.Store(size)
	return nil
}
