package logdir

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/cleaner"
	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// Scheduler runs work later; the broker has one for the whole process.
type Scheduler interface {
	// Background runs a task soon, on another goroutine, never before it returns. What is given to it may take its time
	// on the disk, and there may be much of it: the tasks of the other methods do not wait behind it.
	Background(task func())
	// After runs a task once a delay has passed.
	After(delay time.Duration, task func())
	// Every runs a task again and again, period after the end of the run before, the first time after delay.
	Every(delay, period time.Duration, task func())
}

// Settings are the broker configs that concern log directories.
type Settings struct {
	RecoveryThreadsPerDataDir      int           // num.recovery.threads.per.data.dir
	InitialTaskDelay               time.Duration // log.initial.task.delay.ms
	RetentionCheckInterval         time.Duration // log.retention.check.interval.ms
	FlushSchedulerInterval         time.Duration // log.flush.scheduler.interval.ms
	RecoveryPointInterval          time.Duration // log.flush.offset.checkpoint.interval.ms
	StartOffsetInterval            time.Duration // log.flush.start.offset.checkpoint.interval.ms
	ProducerIDExpirationMs         int64         // producer.id.expiration.ms
	ProducerIDExpirationInterval   time.Duration // producer.id.expiration.check.interval.ms
	VerifyTransactions             bool          // transaction.partition.verification.enable
	ScrubInterval                  time.Duration // tidemark.scrub.interval.ms, between scrubs; 0: none
	ScrubBytesPerSecond            int64         // tidemark.scrub.bytes.per.second: what a scrub reads at most
	UnflushedWarnAfterShutdownSecs int           // progress is logged at this pace while logs are closed; 0: 10 s

	Cleaner cleaner.Config // log.cleaner.*; the zero value: nothing is compacted
}

// DefaultSettings are Kafka's defaults.
func DefaultSettings() Settings {
	return Settings{
		RecoveryThreadsPerDataDir:    2,
		InitialTaskDelay:             30 * time.Second,
		RetentionCheckInterval:       5 * time.Minute,
		FlushSchedulerInterval:       1<<63 - 1,
		RecoveryPointInterval:        time.Minute,
		StartOffsetInterval:          time.Minute,
		ProducerIDExpirationMs:       86_400_000,
		ProducerIDExpirationInterval: 10 * time.Minute,
		VerifyTransactions:           true,
		ScrubInterval:                time.Hour,
		ScrubBytesPerSecond:          20 << 20,
	}
}

// Options say how a [Set] is opened. FS, Dirs, Clock, NewID and Scheduler are required.
type Options struct {
	FS        vfs.FS
	Dirs      []string // log.dirs, in order
	Settings  Settings
	Clock     func() time.Time
	Rand      func() uint64      // for segment.jitter.ms; nil: no jitter
	NewID     func() [16]byte    // a random id: of a directory, of a folder that is renamed
	Scheduler Scheduler          // runs the periodic work
	Logger    *slog.Logger       // nil: silent
	Files     *index.FileCache   // bounds the open descriptors of all logs
	Pages     *index.Cache       // index pages of all logs
	Metrics   *commitlog.Metrics // nil: not counted
	Memory    record.Memory      // that decompression takes its memory from; nil: not bounded together

	// ReadOnly, when not nil, names what is loaded from each of Dirs, and all else is passed over. The directories need
	// not belong to one node, what cannot be read of them is left out, there is no retention, and nothing is put in
	// order at the end: FS must keep every change in memory.
	ReadOnly map[string][]Folder

	// Offline is told when the disk of a directory failed; the partitions are those that were in it.
	Offline func(dir string, partitions []checkpoint.TopicPartition, err error)
}

// Folder is the folder of a partition in a log directory.
type Folder struct {
	Name      string
	Partition checkpoint.TopicPartition
}

// Set is the log directories of one node.
type Set struct {
	opts Options
	dirs []*directory

	mu       sync.RWMutex // guards opts.Settings too
	cordoned []string
	logs     map[checkpoint.TopicPartition]*entry
	loaded   bool // every log was loaded: the clean marker may be written at the end
	closed   bool
	begun    map[checkpoint.TopicPartition]*directory // failed ones with a part of a partition whose Create failed

	cleaner  *cleaner.Cleaner
	progress progress
	doubts   doubts
	scrubs
}

// entry is one partition of the set.
type entry struct {
	log *commitlog.Log
	dir *directory
}

// ErrUnknownPartition is returned for a partition of which the set has no log.
var ErrUnknownPartition = errors.New("no such partition in the log directories")

// ErrNoDirectory is returned when no log directory is online to hold a new partition.
var ErrNoDirectory = errors.New("no log directory is online")

// OfflineError is an operation on a directory whose disk failed before.
type OfflineError struct {
	Dir   string
	Cause error
}

// Error is Kafka's text, with the cause behind it.
func (e *OfflineError) Error() string {
	return fmt.Sprintf("The log dir %s is already offline due to a previous IO exception: %v", e.Dir, e.Cause)
}

// Unwrap is the error of the disk.
func (e *OfflineError) Unwrap() error { return e.Cause }

// Open locks the directories, making those that are absent, and reads their meta.properties. No log is opened and,
// apart from folders and .lock files, nothing is written.
//
// Errors: one that wraps vfs.ErrLocked; *IdentityError when a meta.properties cannot be read (it wraps a
// *checkpoint.MalformedError), when two directories name different clusters or nodes, or share a directory id.
func Open(o Options) (*Set, error) {
	if len(o.Dirs) == 0 {
		return nil, errors.New("open log directories: none given")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{opts: o, logs: map[checkpoint.TopicPartition]*entry{}, begun: map[checkpoint.TopicPartition]*directory{}}
	s.cleaner = s.newCleaner()
	for _, path := range o.Dirs {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("log directory %s: %w", path, err), s.unlock())
		}
		d, err := openDirectory(o.FS, path, o.ReadOnly != nil)
		if errors.As(err, new(*checkpoint.MalformedError)) {
			err = &IdentityError{Reason: err.Error(), Together: o.Dirs, Cause: err}
		}
		if err != nil {
			return nil, errors.Join(err, s.unlock())
		}
		s.dirs = append(s.dirs, d)
	}
	if o.ReadOnly != nil {
		return s, nil
	}
	if err := s.checkIdentities(); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	return s, nil
}

// IdentityError is a log directory that does not say whose it is, or belongs to another node than the others.
type IdentityError struct {
	Reason   string
	Together []string // the directories of the first cluster met, of which none is a copy
	Cause    error    // may be nil
}

func (e *IdentityError) Error() string { return e.Reason }

// Unwrap is the cause.
func (e *IdentityError) Unwrap() error { return e.Cause }

// foreign makes the error; directories of other clusters than the one given, and except, cannot be read together.
func (s *Set) foreign(cluster, except, format string, args ...any) error {
	e := &IdentityError{Reason: fmt.Sprintf(format, args...)}
	for _, d := range s.dirs {
		if (!d.formatted || d.meta.ClusterID == cluster) && d.path != except {
			e.Together = append(e.Together, d.path)
		}
	}
	return e
}

// checkIdentities proves that the directories belong to one node of one cluster.
func (s *Set) checkIdentities() error {
	first, found := s.Identity()
	if !found {
		return nil
	}
	ids := map[[16]byte]string{}
	for _, d := range s.dirs {
		if !d.formatted {
			continue
		}
		if d.meta.ClusterID != first.ClusterID || d.meta.NodeID != first.NodeID {
			return s.foreign(first.ClusterID, "", "log directory %s belongs to node %d of cluster %s, another of log.dirs to "+
				"node %d of cluster %s: give the directories of one node", d.path, d.meta.NodeID, d.meta.ClusterID,
				first.NodeID, first.ClusterID)
		}
		if other, twice := ids[d.meta.DirectoryID]; twice {
			return s.foreign(first.ClusterID, d.path, "log directories %s and %s have the same directory.id %s: one is a "+
				"copy of the other", other, d.path, checkpoint.FormatID(d.meta.DirectoryID))
		}
		ids[d.meta.DirectoryID] = d.path
	}
	return nil
}

// Identity is the cluster and node that the directories belong to, from the first one that has a
// meta.properties; found is false when none has. The DirectoryID is that of the one read.
func (s *Set) Identity() (m checkpoint.MetaProperties, found bool) {
	for _, d := range s.dirs {
		if d.formatted {
			return d.meta, true
		}
	}
	return m, false
}

// Format writes a meta.properties into each directory that has none, with a new directory id.
func (s *Set) Format(clusterID string, nodeID int32) error {
	for _, d := range s.dirs {
		if d.formatted {
			continue
		}
		m := checkpoint.MetaProperties{ClusterID: clusterID, NodeID: nodeID, DirectoryID: s.opts.NewID()}
		name := filepath.Join(d.path, checkpoint.MetaPropertiesFile)
		if err := checkpoint.WriteMetaProperties(s.opts.FS, name, m, s.opts.Clock()); err != nil {
			return fmt.Errorf("format log directory %s: %w", d.path, err)
		}
		d.meta, d.formatted = m, true
	}
	return nil
}

// Directory describes one log directory.
type Directory struct {
	Path       string
	ID         [16]byte // all zero before Format
	Err        error    // why it is offline; nil: it is online
	Partitions int      // folders of partitions in it
	Cordoned   bool     // it takes no new partitions
}

// Directories describes the log directories, in the order of log.dirs.
func (s *Set) Directories() []Directory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Directory, len(s.dirs))
	for i, d := range s.dirs {
		out[i] = Directory{Path: d.path, ID: d.meta.DirectoryID, Err: d.failure,
			Cordoned: slices.Contains(s.cordoned, d.path)}
	}
	for _, e := range s.logs {
		for i, d := range s.dirs {
			if e.dir == d {
				out[i].Partitions++
			}
		}
	}
	return out
}

// Log is the log of a partition.
//
// Errors: ErrUnknownPartition; *OfflineError when the directory that holds it has failed.
func (s *Set) Log(tp checkpoint.TopicPartition) (*commitlog.Log, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.logs[tp]
	if !ok {
		return nil, ErrUnknownPartition
	}
	if e.dir.failure != nil {
		return nil, &OfflineError{Dir: e.dir.path, Cause: e.dir.failure}
	}
	return e.log, nil
}

// Partitions lists the partitions that the set holds, those in failed directories included, in no order.
func (s *Set) Partitions() []checkpoint.TopicPartition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]checkpoint.TopicPartition, 0, len(s.logs))
	for tp := range s.logs {
		out = append(out, tp)
	}
	return out
}

// DirectoryOf is the log directory that holds a partition.
func (s *Set) DirectoryOf(tp checkpoint.TopicPartition) (Directory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.logs[tp]
	if !ok {
		return Directory{}, false
	}
	return Directory{Path: e.dir.path, ID: e.dir.meta.DirectoryID, Err: e.dir.failure}, true
}

// online lists the logs of a directory that can be worked on.
func (s *Set) online(d *directory) map[checkpoint.TopicPartition]*commitlog.Log {
	s.mu.RLock()
	defer s.mu.RUnlock()
	logs := map[checkpoint.TopicPartition]*commitlog.Log{}
	if d.failure != nil {
		return logs
	}
	for tp, e := range s.logs {
		if e.dir == d {
			logs[tp] = e.log
		}
	}
	return logs
}

// fail takes a directory offline. The first failure counts; its partitions answer *OfflineError from then on.
func (s *Set) fail(d *directory, cause error) {
	s.mu.Lock()
	if d.failure != nil {
		s.mu.Unlock()
		return
	}
	d.failure = cause
	var lost []checkpoint.TopicPartition
	for tp, e := range s.logs {
		if e.dir == d {
			lost = append(lost, tp)
		}
	}
	s.mu.Unlock()
	s.opts.Logger.Error("log directory goes offline: its disk failed", "dir", d.path, "partitions", len(lost),
		"error", cause)
	if s.opts.Offline != nil {
		s.opts.Offline(d.path, lost, cause)
	}
}

func (s *Set) unlock() error {
	var errs []error
	for _, d := range s.dirs {
		errs = append(errs, d.unlock())
	}
	return errors.Join(errs...)
}
