package segment

import (
	"errors"
	"fmt"

	"tidemark/internal/index"
)

// Mark is the state of a segment before a write, for [Segment.Undo].
type Mark struct {
	size, indexedTo, nextBatch, accBytes int64
	max                                  index.TimeEntry
	maxKnown, firstTsKnown               bool
}

// Mark remembers the state of the segment. The writer's.
func (s *Segment) Mark() (Mark, error) {
	size, err := s.Size()
	if err != nil {
		return Mark{}, err
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	m := Mark{
		size: size, indexedTo: s.indexedTo, nextBatch: s.nextBatch, accBytes: s.accBytes, firstTsKnown: s.firstTsKnown,
	}
	s.maxMu.Lock()
	defer s.maxMu.Unlock()
	m.max, m.maxKnown = s.max, s.maxKnown
	return m, nil
}

// Undo takes back the writes since a mark, whole or not: batches from offset from on. Nobody has been told of them.
func (s *Segment) Undo(m Mark, from int64) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	defer s.notes.Clear()
	f := s.files()
	err := f.log.Truncate(m.size)
	if err == nil && s.prealloc {
		err = f.log.Truncate(s.cfg.PreallocateBytes)
	}
	if s.has(HasIndex) {
		err = errors.Join(err, f.offsets.Truncate(from))
	}
	if err = errors.Join(err, f.times.Truncate(from)); err != nil {
		return fmt.Errorf("undo an append to segment %020d: %w", s.base, err)
	}
	s.size.Store(m.size)
	s.indexedTo, s.nextBatch, s.accBytes, s.firstTsKnown = m.indexedTo, m.nextBatch, m.accBytes, m.firstTsKnown
	s.maxMu.Lock()
	defer s.maxMu.Unlock()
	s.max, s.maxKnown = m.max, m.maxKnown
	return nil
}

// Discard removes the files of a new segment that nobody was told of.
func (s *Segment) Discard() {
	s.mu.Lock()
	s.doomed = true
	s.mu.Unlock()
	s.Release()
}
