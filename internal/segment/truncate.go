package segment

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"tidemark/internal/index"
	"tidemark/record"
)

// copyChunk is how much Replace copies at once.
const copyChunk = 1 << 20

// TemporarySuffix is behind the .log name of a copy that is not complete yet. Kafka ignores such a file.
const TemporarySuffix = ".tmp"

// CutPosition is where the first batch before the position end starts whose last offset is at least offset: where to
// cut so that the log ends below offset. It is end when there is none, and the start of the damage where one comes
// first.
func (s *Segment) CutPosition(offset, end int64) (int64, error) {
	at, found, err := s.Find(offset, end)
	if found {
		return at.Pos, nil
	}
	var c *record.CorruptError
	if errors.As(err, &c) && c.Pos >= 0 {
		return c.Pos, nil
	}
	return end, err
}

// Truncate cuts the log to pos, which [Segment.CutPosition] gave for offset, and makes the segment fit for appends
// again. Only readers that know where the log will end may be at work: see [Segment.Replace].
func (s *Segment) Truncate(offset, pos int64) error {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if err := s.truncateIndexes(offset); err != nil {
		return fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	if err := s.Cut(pos); err != nil {
		return err
	}
	s.prealloc = false
	s.limit.Store(0)
	s.openSize.Store(min(s.openSize.Load(), pos))
	return s.restart(offset, pos)
}

func (s *Segment) truncateIndexes(offset int64) error {
	if err := s.writeLateTxns(); err != nil {
		return err
	}
	s.dirty.Store(true)
	f := s.files()
	if err := f.offsets.Truncate(offset); err != nil {
		return err
	}
	if err := f.times.Truncate(offset); err != nil {
		return err
	}
	if s.has(HasTxn) {
		if err := f.txns.Truncate(offset); err != nil {
			return err
		}
	}
	if err := f.offsets.Grow(); err != nil {
		return err
	}
	s.growing.Store(true)
	s.found(HasIndex | HasTime)
	return f.times.Grow()
}

// restart sets what is kept in memory after a truncation to size bytes that end below offset.
func (s *Segment) restart(offset, size int64) error {
	if size == 0 {
		s.createdMs, s.firstTsKnown = s.env.Clock().UnixMilli(), false
	}
	s.accBytes, s.indexedTo, s.nextBatch = 0, size, offset
	s.provenFrom(size)
	last, _, err := s.files().times.Last()
	if err != nil {
		return err
	}
	at, _, err := s.files().offsets.Lookup(last.Offset)
	if err != nil {
		return err
	}
	largest, err := s.largestFrom(at.Pos, last)
	if err != nil {
		return err
	}
	s.setMax(largest)
	return nil
}

func (s *Segment) setMax(e index.TimeEntry) {
	s.maxMu.Lock()
	defer s.maxMu.Unlock()
	if s.maxKnown && e.Timestamp < s.max.Timestamp {
		s.env.lowered.Add(1)
	}
	s.max, s.maxKnown = e, true
}

// Replace does as [Segment.Truncate] for a segment that readers hold: it makes a copy of the first pos bytes under the
// segment's names, and returns the new segment, fit for appends. Readers of the old one keep its file until they
// release it; the caller drops its reference. The old indexes may be read no more.
func (s *Segment) Replace(offset, pos int64) (*Segment, error) {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	if err := s.writeLateTxns(); err != nil {
		return nil, fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	f := s.files()
	name := f.log.Name()
	if err := s.copyLog(name+TemporarySuffix, pos); err != nil {
		return nil, fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	if _, err := f.log.Acquire(); err != nil { // the old file has no name soon and could not be opened again
		return nil, fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	s.mu.Lock()
	s.nameless = true
	s.mu.Unlock()
	if err := s.env.Files.FS().Rename(name+TemporarySuffix, name); err != nil {
		return nil, fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	if err := s.trimIndexes(f); err != nil { // so that their sizes tell how many entries they hold
		return nil, fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	fresh := Open(s.env, s.base, s.cfg, Present(s.present.Load()))
	fresh.inherit(s, pos)
	if err := fresh.truncateIndexes(offset); err != nil {
		return nil, fmt.Errorf("truncate segment %020d: %w", s.base, err)
	}
	return fresh, fresh.restart(offset, pos)
}

// inherit takes over what is known of the first size bytes of a segment.
func (s *Segment) inherit(old *Segment, size int64) {
	s.endsOK.Store(old.endsOK.Load())
	s.verified.Store(old.verified.Load())
	s.trusted.Store(old.trusted.Load())
	s.txnsOK.Store(old.txnsOK.Load())
	s.compared, s.txnDoubt, s.builtWith = old.compared, old.txnDoubt, old.builtWith
	s.size.Store(size)
	s.openSize.Store(min(old.openSize.Load(), size))
	list := slices.Clone(old.damaged())
	s.damage.Store(&list)
	s.dropDamage(size)
	old.damageMu.Lock()
	spans := slices.Clone(old.spans)
	old.damageMu.Unlock()
	for _, one := range spans {
		s.noteProven(one.from, min(one.to, size))
	}
}

func (s *Segment) replaced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nameless
}

// copyLog copies the first n bytes of the log into a new file and syncs it.
func (s *Segment) copyLog(name string, n int64) (err error) {
	out, err := s.env.Files.FS().OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	buf := make([]byte, min(n, copyChunk))
	for pos := int64(0); pos < n; {
		part := buf[:min(n-pos, copyChunk)]
		if _, err := s.files().log.ReadAt(part, pos); err != nil {
			return err
		}
		if _, err := out.WriteAt(part, pos); err != nil {
			return err
		}
		pos += int64(len(part))
	}
	return out.Sync()
}
