package segment

import (
	"errors"
	"io/fs"
	"time"

	"tidemark/record"
)

// CreateCleaned makes the files of a segment that is to take the place of others. Their names end in .cleaned until
// [Segment.Rename] gives them others; files of these names that an earlier attempt left are removed. Errors are the
// disk's.
func CreateCleaned(env *Env, base int64, cfg Config) (*Segment, error) {
	cfg.PreallocateBytes = 0
	if err := newReplacement(env, base, cfg).removeLocked(); err != nil {
		return nil, err
	}
	s, err := create(env, base, cfg, CleanedSuffix)
	if err != nil {
		return nil, err
	}
	if err := s.makeOffsetIndex(s.files()); err != nil { // Kafka: an empty one has it, too
		s.Discard()
		return nil, err
	}
	return s, nil
}

func newReplacement(env *Env, base int64, cfg Config) *Segment {
	s := newSegment(env, base, cfg)
	s.suffix = CleanedSuffix
	return s
}

// Rename gives the files of a replacement the names that end in suffix: .swap, or "" for the plain ones. When a file
// cannot be renamed, those before it get their old names back; an error while they do is part of the one returned. A
// segment that was doomed meanwhile stays as it is.
//
// Kafka: the log goes first, then offset, time and transaction index.
func (s *Segment) Rename(suffix string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doomed || s.suffix == suffix {
		return nil
	}
	f, before := s.filesLocked(), s.suffix
	done := 0
	s.suffix = suffix
	err := f.each(func(kind string, rename func(string) error) error {
		err := rename(s.pathLocked(kind))
		if err == nil {
			done++
		}
		return err
	})
	if err == nil {
		return nil
	}
	s.suffix = before
	back := 0
	return errors.Join(err, f.each(func(kind string, rename func(string) error) error {
		if back++; back > done {
			return nil
		}
		return rename(s.pathLocked(kind))
	}))
}

// each calls a function with the kind of each file and what renames it, up to the first error.
func (f *files) each(do func(kind string, rename func(string) error) error) error {
	for _, one := range []struct {
		kind   string
		rename func(string) error
	}{
		{LogSuffix, f.log.Rename}, {IndexSuffix, f.offsets.Rename},
		{TimeSuffix, f.times.Rename}, {TxnSuffix, f.txns.Rename},
	} {
		if err := do(one.kind, one.rename); err != nil {
			return err
		}
	}
	return nil
}

// SetLastModified gives log, offset and time index a time of last change: it stands for the time of records that have
// none.
func (s *Segment) SetLastModified(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fsys := s.env.Files.FS()
	for _, kind := range []string{LogSuffix, IndexSuffix, TimeSuffix} {
		if err := fsys.Chtimes(s.pathLocked(kind), t); err != nil {
			return err
		}
	}
	return nil
}

// Doomed reports whether the segment is on its way out.
func (s *Segment) Doomed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doomed
}

// IndexSizes are the lengths of the offset and the time index in bytes, 0 where there is none.
func (s *Segment) IndexSizes() (offsets, times int64, err error) {
	s.mu.Lock()
	names := [2]string{s.pathLocked(IndexSuffix), s.pathLocked(TimeSuffix)}
	s.mu.Unlock()
	var sizes [2]int64
	for i, name := range names {
		info, err := s.env.Files.FS().Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		sizes[i] = info.Size()
	}
	return sizes[0], sizes[1], nil
}

// FirstBatchTimestamp is the largest timestamp of the first batch in ms; -1 when there is no batch or it has none.
func (s *Segment) FirstBatchTimestamp() (int64, error) {
	size, err := s.Size()
	if err != nil || size == 0 {
		return -1, err
	}
	h, err := s.headerAt(0, size)
	if errors.Is(err, record.ErrShort) || notDamage(err) == nil && err != nil {
		return -1, nil
	}
	return h.MaxTimestamp, err
}
