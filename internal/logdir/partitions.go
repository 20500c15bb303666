package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// notCreated ends a Create that failed. A disk that is just full stays online; what was made of the folder goes. Where
// something may be left of it, the partition is not made in another directory: the next start would find two.
func (s *Set) notCreated(d *directory, tp checkpoint.TopicPartition, path string, err error) error {
	if commitlog.IsFull(err) {
		rerr := s.opts.FS.RemoveAll(path)
		if rerr == nil {
			return &OfflineError{Dir: d.path, Cause: err}
		}
		err = fmt.Errorf("%w, after %s", rerr, err.Error()) // not that of a full disk any more
	}
	s.mu.Lock()
	s.begun[tp] = d
	s.mu.Unlock()
	s.fail(d, err)
	return &OfflineError{Dir: d.path, Cause: err}
}

// inFailed is an *OfflineError where a failed directory has the partition, or a part of it that a Create which failed
// has left: made anew elsewhere it would be empty, and the next start would find two.
func (s *Set) inFailed(tp checkpoint.TopicPartition) error {
	s.mu.RLock()
	begun := s.begun[tp]
	var failed []*directory
	for _, d := range s.dirs {
		if d.failure != nil {
			failed = append(failed, d)
		}
	}
	s.mu.RUnlock()
	for _, d := range failed {
		_, err := s.opts.FS.Stat(filepath.Join(d.path, tp.String()))
		if d == begun || err == nil {
			return &OfflineError{Dir: d.path, Cause: s.failureOf(d)}
		}
	}
	return nil
}

func (s *Set) failureOf(d *directory) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return d.failure
}

// Delete takes a partition out of the set, renames its folder and removes its files after file.delete.delay.ms.
// Reads under way keep what they hold.
//
// Errors: ErrUnknownPartition; *OfflineError; one of the disk, which takes the directory offline.
func (s *Set) Delete(tp checkpoint.TopicPartition) error {
	return s.DeleteAll([]checkpoint.TopicPartition{tp})[0]
}

// DeleteAll is Delete of many partitions, made durable together. The errors are in the order of the partitions.
func (s *Set) DeleteAll(tps []checkpoint.TopicPartition) []error {
	return s.withdrawAll(tps, deleteMark)
}

// Strand takes a partition out of the set and renames its folder as stray: the cluster does not assign it here.
// Its files stay. Errors as Delete.
func (s *Set) Strand(tp checkpoint.TopicPartition) error {
	return s.withdrawAll([]checkpoint.TopicPartition{tp}, strayMark)[0]
}

func (s *Set) withdrawAll(tps []checkpoint.TopicPartition, mark string) []error {
	errs := make([]error, len(tps))
	in := make([]*directory, len(tps))
	gone := map[*directory][]checkpoint.TopicPartition{}
	synced := map[*directory]error{}
	for i, tp := range tps {
		if in[i], errs[i] = s.withdraw(tp, mark); in[i] != nil {
			gone[in[i]] = append(gone[in[i]], tp)
		}
	}
	for d, names := range gone {
		s.cleaner.Forget(d.path, names...)
		if err := s.opts.FS.SyncDir(d.path); err != nil {
			s.fail(d, err)
			synced[d] = &OfflineError{Dir: d.path, Cause: err}
		}
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i] = synced[in[i]]
		}
	}
	return errs
}

// withdraw does without the sync of the directory, and leaves it to the caller to have the cleaner forget the
// partition. It returns the directory, nil when it has not taken the partition out of the set.
func (s *Set) withdraw(tp checkpoint.TopicPartition, mark string) (*directory, error) {
	if _, err := s.Log(tp); err != nil {
		return nil, err
	}
	s.mu.Lock()
	e, ok := s.logs[tp]
	delete(s.logs, tp)
	s.mu.Unlock()
	if !ok {
		return nil, ErrUnknownPartition
	}
	defer s.cleaner.Pause(tp)()
	// First it is closed: a flush in the background would miss its files under their old names, and take the directory
	// offline.
	if err := e.log.Abandon(); err != nil {
		s.opts.Logger.Warn("close deleted partition", "partition", tp.String(), "error", err)
	}
	marked := filepath.Join(e.dir.path, markedFolder(tp, s.opts.NewID(), mark))
	if err := s.renameFolder(e.log.Dir(), marked); err != nil {
		s.fail(e.dir, err)
		return e.dir, &OfflineError{Dir: e.dir.path, Cause: err}
	}
	e.log.SetDir(marked)
	delay := time.Duration(e.log.Config().FileDeleteDelayMs) * time.Millisecond
	if mark == deleteMark {
		s.removeLater(e.dir, marked, delay)
	}
	return e.dir, nil
}

func (s *Set) removeLater(d *directory, folder string, delay time.Duration) {
	s.afterOnDisk(delay, func() {
		if err := s.opts.FS.RemoveAll(folder); err != nil {
			s.fail(d, fmt.Errorf("remove deleted partition: %w", err))
		}
	})
}

// PartitionFolder is where a partition was found.
type PartitionFolder struct {
	Path      string
	Partition checkpoint.TopicPartition
}

// Folders lists the folders of partitions in the directories, those of deleted and stray ones left out. It can be asked
// before Load.
func (s *Set) Folders() ([]PartitionFolder, error) {
	var out []PartitionFolder
	for _, d := range s.dirs {
		entries, err := d.fs.ReadDir(d.path)
		if err != nil {
			return nil, fmt.Errorf("list log directory: %w", err)
		}
		for _, e := range entries {
			if tp, mark, ok := parseFolder(e.Name()); ok && e.IsDir() && mark == "" && e.Name() != MetadataFolder {
				out = append(out, PartitionFolder{Path: filepath.Join(d.path, e.Name()), Partition: tp})
			}
		}
	}
	return out, nil
}
