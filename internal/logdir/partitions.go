package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Create makes the log of a new partition in the online directory with the fewest partitions, or returns the log
// that exists.
//
// Errors: ErrNoDirectory; *OfflineError when the partition is in a failed directory; one of the disk, which takes
// the directory offline.
func (s *Set) Create(tp checkpoint.TopicPartition, topicID [16]byte, c commitlog.Config) (*commitlog.Log, error) {
	if s.isClosed() {
		return nil, ErrNoDirectory
	}
	log, err := s.Log(tp)
	if !errors.Is(err, ErrUnknownPartition) {
		return log, err
	}
	if err := s.inFailed(tp); err != nil {
		return nil, err
	}
	d := s.emptiest()
	if d == nil {
		return nil, ErrNoDirectory
	}
	f := found{dir: d, folder: tp.String(), tp: tp}
	path := filepath.Join(d.path, f.folder)
	if err := s.opts.FS.MkdirAll(path, 0o755); err != nil {
		return nil, s.notCreated(d, tp, path, fmt.Errorf("create partition: %w", err))
	}
	o := s.logOptions(f, path, Assignment{Assigned: true, TopicID: topicID, Config: c})
	o.RecoveryPoint, o.StartOffset, o.Clean = 0, 0, true
	if log, err = commitlog.Open(o); err != nil {
		return nil, s.notCreated(d, tp, path, fmt.Errorf("create partition %s: %w", tp, err))
	}
	if err := s.opts.FS.SyncDir(d.path); err != nil {
		_ = log.Abandon()
		return nil, s.notCreated(d, tp, path, fmt.Errorf("create partition %s: %w", tp, err))
	}
	s.mu.Lock()
	s.logs[tp] = &entry{log: log, dir: d}
	s.mu.Unlock()
	return log, nil
}

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

func (s *Set) emptiest() *directory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	count := map[*directory]int{}
	for _, e := range s.logs {
		count[e.dir]++
	}
	var best *directory
	better := func(d *directory) bool {
		if best == nil {
			return true
		}
		cordoned, other := slices.Contains(s.cordoned, d.path), slices.Contains(s.cordoned, best.path)
		return cordoned == other && count[d] < count[best] || !cordoned && other
	}
	for _, d := range s.dirs {
		if d.failure == nil && better(d) {
			best = d
		}
	}
	return best
}

// Delete takes a partition out of the set, renames its folder and removes its files after file.delete.delay.ms.
// Reads under way keep what they hold.
//
// Errors: ErrUnknownPartition; *OfflineError; one of the disk, which takes the directory offline.
func (s *Set) Delete(tp checkpoint.TopicPartition) error {
	return s.withdraw(tp, deleteMark)
}

// Strand takes a partition out of the set and renames its folder as stray: the cluster does not assign it here.
// Its files stay. Errors as Delete.
func (s *Set) Strand(tp checkpoint.TopicPartition) error {
	return s.withdraw(tp, strayMark)
}

func (s *Set) withdraw(tp checkpoint.TopicPartition, mark string) error {
	if _, err := s.Log(tp); err != nil {
		return err
	}
	s.mu.Lock()
	e, ok := s.logs[tp]
	delete(s.logs, tp)
	s.mu.Unlock()
	if !ok {
		return ErrUnknownPartition
	}
	defer s.cleaner.Pause(tp)()
	defer s.cleaner.Forget(e.dir.path, tp)
	// First it is closed: a flush in the background would miss its files under their old names, and take the directory
	// offline.
	if err := e.log.Abandon(); err != nil {
		s.opts.Logger.Warn("close deleted partition", "partition", tp.String(), "error", err)
	}
	marked := filepath.Join(e.dir.path, markedFolder(tp, s.opts.NewID(), mark))
	if err := s.renameFolder(e.dir, e.log.Dir(), marked); err != nil {
		s.fail(e.dir, err)
		return &OfflineError{Dir: e.dir.path, Cause: err}
	}
	e.log.SetDir(marked)
	delay := time.Duration(e.log.Config().FileDeleteDelayMs) * time.Millisecond
	if mark == deleteMark {
		s.removeLater(e.dir, marked, delay)
	}
	return nil
}

func (s *Set) removeLater(d *directory, folder string, delay time.Duration) {
	s.opts.Scheduler.After(delay, func() {
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
