package segment

import (
	"sync"
	"sync/atomic"
)

// dirt says that the files of a segment changed since they were made durable.
type dirt struct {
	atomic.Bool

	mu  sync.Mutex // held while they are made durable: who finds nothing to do may rely on it
	err error      // of a sync that failed; it is not tried again
}

// Flush makes the segment's files durable, the log first, unless nothing changed since the last time or
// [Segment.Replace] put another in its place. It waits for a flush under way. After an error the state of the files is
// not known, and every further flush has the same error.
func (s *Segment) Flush() error {
	s.dirty.mu.Lock()
	defer s.dirty.mu.Unlock()
	if s.clean() {
		return s.dirty.err
	}
	s.dirty.err = s.syncFiles()
	return s.dirty.err
}

// clean reports whether there is nothing to flush, and takes note that the caller sees to it where there is. The caller
// holds dirty.mu.
func (s *Segment) clean() bool {
	return s.dirty.err != nil || !s.dirty.Swap(false) || s.replaced()
}

func (s *Segment) syncFiles() error {
	f := s.files()
	if err := f.log.Sync(); err != nil {
		return err
	}
	if s.has(HasIndex) {
		if err := f.offsets.Sync(); err != nil {
			return err
		}
	}
	if s.has(HasTime) {
		if err := f.times.Sync(); err != nil {
			return err
		}
	}
	if s.has(HasTxn) {
		return f.txns.Sync()
	}
	return nil
}

// FlushTogether is [Segment.Flush] of many segments by one call of sync, which makes all files of theirs durable.
func FlushTogether(segments []*Segment, sync func() error) error {
	for _, s := range segments {
		s.dirty.mu.Lock()
		defer s.dirty.mu.Unlock()
		if s.dirty.err != nil {
			return s.dirty.err
		}
	}
	var dirty []*Segment
	for _, s := range segments {
		if !s.clean() {
			dirty = append(dirty, s)
		}
	}
	if len(dirty) == 0 {
		return nil
	}
	err := sync()
	for _, s := range dirty {
		s.dirty.err = err
	}
	return err
}
