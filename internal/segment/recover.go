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
	// Damage is why the scan stopped before the end of the file, with no good batch behind: *record.CorruptError; nil
	// when it did not.
	Damage error
}

// Each is called for every batch of a recovery, in order; entry reads its bytes. A *record.CorruptError ends the
// recovery there, another error makes it fail.
type Each func(h record.Header, entry func() ([]byte, error)) error

// Recover reads every batch and builds the indexes anew. When it is strict it verifies checksums and offsets, and
// passes over what is damaged but has good batches behind it; else it stops at the first bytes that are no batch. limit
// is the base offset of the next segment; 0: there is none. It does not cut the log: [Segment.Cut] does.
func (s *Segment) Recover(strict bool, limit int64, each Each) (Recovered, error) {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	r, err := s.recoverLocked(strict, limit, each)
	if err != nil {
		return r, fmt.Errorf("recover segment %020d: %w", s.base, err)
	}
	return r, nil
}

func (s *Segment) recoverLocked(strict bool, limit int64, each Each) (Recovered, error) {
	r := Recovered{NextOffset: s.base}
	f := s.files()
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
	w := walk{checksums: strict, order: strict, stop: !strict, noIndex: true, tail: true}
	s.limit.Store(limit)
	sc := s.scanWith(0, size, w)
	defer sc.close()
	for sc.next() {
		if err := s.recoverBatch(&sc, &r, b, each); err != nil {
			return r, err
		}
	}
	if err := notDamage(sc.Err()); err != nil {
		return r, err
	}
	r.Damage, r.CutBytes = sc.Err(), size-r.SizeBytes
	if err := b.finish(); err != nil {
		return r, err
	}
	s.believe()
	if strict {
		s.noteProven(0, r.SizeBytes)
	}
	return r, nil
}

func (s *Segment) recoverBatch(sc *scanner, r *Recovered, b *build, each Each) error {
	err := each(sc.h, sc.Batch)
	var damaged *record.CorruptError
	if errors.As(err, &damaged) {
		sc.refuse(damaged.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.add(BatchOf(sc.h, sc.Pos())); err != nil {
		return err
	}
	r.NextOffset, r.SizeBytes = sc.h.NextOffset(), sc.Pos()+int64(sc.h.SizeBytes)
	return nil
}

// KeepTail declares the bytes behind the last good batch damage: segments with good batches follow, from offset next
// on.
func (s *Segment) KeepTail(r Recovered, next int64) {
	var cause *record.CorruptError
	if r.CutBytes == 0 || !errors.As(r.Damage, &cause) {
		return
	}
	s.noteDamage(Damage{Pos: r.SizeBytes, End: r.SizeBytes + r.CutBytes, From: r.NextOffset, To: next, Err: cause})
	s.noteProven(r.SizeBytes, r.SizeBytes+r.CutBytes)
}

// Cut shortens the log to its first size bytes, which end with a whole batch. The indexes must fit already.
func (s *Segment) Cut(size int64) error {
	defer s.notes.Clear()
	s.dirty.Store(true)
	if err := s.files().log.Truncate(size); err != nil {
		return fmt.Errorf("cut segment %020d: %w", s.base, err)
	}
	s.size.Store(size)
	s.dropDamage(size)
	return nil
}
