package segment

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"tidemark/vfs"
)

// all calls a function with the name suffix and the rename function of each file.
func (f *files) all(do func(suffix string, rename func(string) error, set func(string)) error) error {
	return errors.Join(
		do(LogSuffix, f.log.Rename, f.log.SetName),
		do(IndexSuffix, f.offsets.Rename, f.offsets.SetName),
		do(TimeSuffix, f.times.Rename, f.times.SetName),
		do(TxnSuffix, f.txns.Rename, f.txns.SetName),
	)
}

// Doom renames the files to end in .deleted. They are removed when the last reference is released; the caller keeps
// its own until the time has come.
func (s *Segment) Doom() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doomed {
		return nil
	}
	f := s.filesLocked()
	s.suffix, s.doomed = DeletedSuffix, true
	return f.all(func(suffix string, rename func(string) error, _ func(string)) error {
		err := rename(s.pathLocked(suffix))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// DirMoved takes note that the folder was renamed, after [Env.SetDir].
func (s *Segment) DirMoved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.open.Load()
	if f == nil {
		return
	}
	_ = f.all(func(suffix string, _ func(string) error, set func(string)) error {
		set(s.pathLocked(suffix))
		return nil
	})
}

// removeLocked unlinks the files.
func (s *Segment) removeLocked() error {
	fsys := s.env.Files.FS()
	var errs []error
	for _, suffix := range []string{LogSuffix, IndexSuffix, TimeSuffix, TxnSuffix} {
		if err := fsys.Remove(s.pathLocked(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Segment) closeFilesLocked() error {
	f := s.open.Load()
	if f == nil {
		return nil
	}
	if s.nameless {
		f.log.Release()
	}
	return errors.Join(f.log.Close(), f.offsets.Close(), f.times.Close(), f.txns.Close())
}

// Rest closes the files and forgets all about them, until they are asked for again, indexes that were rebuilt in a file
// system that only looks as if they were ([vfs.Overlay]) included; the largest timestamp stays known. It is for readers
// of many segments one after the other; nobody else may be using the segment, and nothing may have been appended.
func (s *Segment) Rest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.closeFilesLocked()
	s.open.Store(nil)
	rebuilt := false
	for _, suffix := range []string{IndexSuffix, TimeSuffix, TxnSuffix} {
		rebuilt = vfs.Forget(s.env.Files.FS(), s.pathLocked(suffix)) || rebuilt
	}
	if rebuilt {
		s.doubtLocked()
	}
	return err
}

// doubtLocked has the indexes checked again, as if the segment was just opened.
func (s *Segment) doubtLocked() {
	s.present.Store(uint32(s.opened))
	for _, b := range []*atomic.Bool{&s.endsOK, &s.verified, &s.trusted, &s.txnsOK, &s.sealed} {
		b.Store(false)
	}
	s.compared, s.sealAsked, s.txnDoubt, s.builtWith = false, false, "", 0
}

// SetAside takes the segment out of the log: the .log gets another name in the folder, the indexes are removed. Nobody
// else may hold the segment.
func (s *Segment) SetAside(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.filesLocked()
	if err := f.log.Rename(filepath.Join(s.env.Dir(), name)); err != nil {
		return err
	}
	return errors.Join(f.offsets.Remove(), f.times.Remove(), f.txns.Remove())
}
