package logdir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
)

// Assignment is what the cluster says of a partition found in a log directory.
type Assignment struct {
	// Assigned says that the partition, with this topic id, belongs to this node. One that does not is renamed
	// -stray after loading; its files stay.
	Assigned bool
	TopicID  [16]byte
	Config   commitlog.Config
}

// Assign tells what the cluster says of a partition. topicID is the one in the folder's partition.metadata, all
// zero when it has none.
type Assign func(tp checkpoint.TopicPartition, topicID [16]byte) Assignment

// progress counts what loading has done; read by [Set.Progress] while it goes on.
type progress struct {
	total, begun, done atomic.Int64
	began              atomic.Pointer[time.Time]
}

// Progress is how many of the partitions found have been loaded.
func (s *Set) Progress() (done, total int64) {
	return s.progress.done.Load(), s.progress.total.Load()
}

// found is a partition's folder of the listing of a directory.
type found struct {
	dir    *directory
	folder string
	tp     checkpoint.TopicPartition
}

// Load opens the log of every partition in the directories, several side by side, recovering those that were not
// closed in good order, and then starts the periodic work. The clean marker of a directory is removed before its
// first log is opened.
//
// A directory whose checkpoints or logs cannot be read goes offline; the others go on. Load fails when none is
// left, when a folder is not named as a partition (*NameError), or when a partition is in two directories.
func (s *Set) Load(ctx context.Context, assign Assign) error {
	start := s.opts.Clock()
	folders, err := s.list()
	if err != nil {
		return err
	}
	s.progress.total.Store(int64(len(folders)))
	s.progress.began.Store(&start)
	stopReport := s.reportProgress(start)
	defer stopReport()

	groups := make(map[*directory]*errgroup.Group, len(s.dirs))
	for _, d := range s.dirs {
		groups[d] = &errgroup.Group{}
		groups[d].SetLimit(max(1, s.settings().RecoveryThreadsPerDataDir))
	}
	done := make(chan error, len(s.dirs))
	for _, d := range s.dirs {
		go func() {
			for _, f := range folders {
				if f.dir == d {
					groups[d].Go(func() error { return s.loadFolder(ctx, f, assign) })
				}
			}
			done <- groups[d].Wait()
		}()
	}
	var errs []error
	for range s.dirs {
		errs = append(errs, <-done)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.finishLoading(start, len(folders))
}

func (s *Set) finishLoading(start time.Time, folders int) error {
	s.mu.Lock()
	s.loaded = true
	online := 0
	for _, d := range s.dirs {
		if d.failure == nil {
			online++
		}
	}
	s.mu.Unlock()
	if online == 0 {
		return fmt.Errorf("load log directories: %w", ErrNoDirectory)
	}
	s.opts.Logger.Info("log directories loaded", "partitions", folders,
		"took", s.opts.Clock().Sub(start).Round(time.Millisecond))
	s.schedule()
	return nil
}

// list begins each directory and lists the folders of its partitions. Folders marked -delete are scheduled for
// removal; those marked -stray and -future are left alone.
func (s *Set) list() ([]found, error) {
	if s.opts.ReadOnly != nil {
		return s.listReadOnly(), nil
	}
	var folders []found
	places := map[checkpoint.TopicPartition]string{}
	for _, d := range s.dirs {
		if err := d.begin(); err != nil {
			s.fail(d, fmt.Errorf("read checkpoints of log directory %s: %w", d.path, err))
			continue
		}
		listed, err := s.listDirectory(d)
		if err != nil {
			return nil, err
		}
		for _, f := range listed {
			if other, twice := places[f.tp]; twice {
				//nolint:staticcheck // Kafka's text
				return nil, fmt.Errorf("Duplicate log directories for %s are found in both %s and %s. It is likely "+
					"because log directory failure happened while broker was replacing current replica with future "+
					"replica. Recover broker from this failure by manually deleting one of the two directories for "+
					"this partition. It is recommended to delete the partition in the log directory that is known "+
					"to have failed recently.", f.tp, filepath.Join(d.path, f.folder), other)
			}
			places[f.tp] = filepath.Join(d.path, f.folder)
		}
		folders = append(folders, listed...)
	}
	return folders, nil
}

// listReadOnly is list for directories that are only read: the folders are given.
func (s *Set) listReadOnly() (folders []found) {
	for _, d := range s.dirs {
		d.beginReadOnly(s.opts.Logger)
		for _, f := range s.opts.ReadOnly[d.path] {
			folders = append(folders, found{dir: d, folder: f.Name, tp: f.Partition})
		}
	}
	return folders
}

func (s *Set) listDirectory(d *directory) ([]found, error) {
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		s.fail(d, fmt.Errorf("list log directory: %w", err))
		return nil, nil
	}
	var folders []found
	for _, e := range entries {
		if !e.IsDir() || e.Name() == MetadataFolder || e.Name() == remoteCacheFolder {
			continue
		}
		tp, mark, ok := parseFolder(e.Name())
		if !ok {
			return nil, &NameError{Dir: d.path, Name: e.Name()}
		}
		switch mark {
		case deleteMark:
			s.removeLater(d, filepath.Join(d.path, e.Name()), time.Minute)
		case strayMark, futureMark:
			s.opts.Logger.Warn("folder left alone: it holds no partition of this node", "dir", d.path,
				"folder", e.Name())
		default:
			folders = append(folders, found{dir: d, folder: e.Name(), tp: tp})
		}
	}
	return folders, nil
}

// loadFolder opens the log in one folder. An error of the disk takes the directory offline; other errors are
// returned.
func (s *Set) loadFolder(ctx context.Context, f found, assign Assign) error {
	s.progress.begun.Add(1)
	defer s.progress.done.Add(1)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.failed(f.dir) {
		return nil
	}
	path := filepath.Join(f.dir.path, f.folder)
	id, err := checkpoint.ReadPartitionMetadata(s.opts.FS, filepath.Join(path, checkpoint.PartitionMetadataFile))
	if err != nil && !isNotExist(err) {
		s.notLoaded(f, fmt.Errorf("read topic id of %s: %w", path, err))
		return nil
	}
	a := assign(f.tp, id)
	if a.TopicID == ([16]byte{}) {
		a.TopicID = id
	}
	log, err := commitlog.Open(s.logOptions(f, path, a))
	if err != nil {
		s.notLoaded(f, fmt.Errorf("load %s: %w", f.tp, err))
		return nil
	}
	if !a.Assigned {
		return s.strand(f, path, log)
	}
	s.mu.Lock()
	s.logs[f.tp] = &entry{log: log, dir: f.dir}
	s.mu.Unlock()
	return nil
}

// notLoaded takes the directory of a folder that cannot be read offline; one that is only read goes on without it.
func (s *Set) notLoaded(f found, err error) {
	if s.opts.ReadOnly == nil {
		s.fail(f.dir, err)
		return
	}
	s.opts.Logger.Error("partition cannot be read and is left out", "partition", f.tp.String(), "dir", f.dir.path,
		"error", err)
}

func (s *Set) logOptions(f found, path string, a Assignment) commitlog.Options {
	settings := s.settings()
	return commitlog.Options{
		FS: s.opts.FS, Dir: path, Topic: f.tp.Topic, Partition: f.tp.Partition, TopicID: a.TopicID, Config: a.Config,
		Clock: s.opts.Clock, Rand: s.opts.Rand, Logger: s.opts.Logger,
		RecoveryPoint: f.dir.recoveryPoints[f.tp], StartOffset: f.dir.startOffsets[f.tp], Clean: f.dir.clean.Found,
		Files: s.opts.Files, Pages: s.opts.Pages,
		Background: s.opts.Scheduler.Background, After: s.afterOnDisk, SyncAll: f.dir.syncAll(),
		Failed:                 func(err error) { s.fail(f.dir, err) },
		Metrics:                s.opts.Metrics,
		Memory:                 s.opts.Memory,
		ProducerIDExpirationMs: settings.ProducerIDExpirationMs,
		VerifyTransactions:     settings.VerifyTransactions,
	}
}

// afterOnDisk runs a task once a delay has passed, among those that take their time on the disk.
func (s *Set) afterOnDisk(delay time.Duration, task func()) {
	s.opts.Scheduler.After(delay, func() { s.opts.Scheduler.Background(task) })
}

// strand closes the log of a partition that does not belong here and marks its folder.
func (s *Set) strand(f found, path string, log *commitlog.Log) error {
	if err := log.Close(); err != nil {
		s.fail(f.dir, fmt.Errorf("close stray %s: %w", f.tp, err))
		return nil
	}
	marked := filepath.Join(f.dir.path, markedFolder(f.tp, s.opts.NewID(), strayMark))
	err := s.renameFolder(path, marked)
	if err == nil {
		err = s.opts.FS.SyncDir(f.dir.path)
	}
	if err != nil {
		s.fail(f.dir, err)
		return nil
	}
	s.opts.Logger.Warn("partition is not assigned to this node: its folder was renamed, nothing was removed",
		"partition", f.tp.String(), "folder", marked)
	return nil
}

func (s *Set) renameFolder(from, to string) error {
	if err := s.opts.FS.Rename(from, to); err != nil {
		return fmt.Errorf("rename folder of partition: %w", err)
	}
	return nil
}

func (s *Set) failed(d *directory) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return d.failure != nil
}

// HighWatermark is the high watermark of a partition in the checkpoint read at loading; 0 when it has no line.
func (s *Set) HighWatermark(tp checkpoint.TopicPartition) int64 {
	hw, _ := s.CheckpointedHighWatermark(tp)
	return hw
}

// CheckpointedHighWatermark is HighWatermark; known is false when the checkpoint has no line.
func (s *Set) CheckpointedHighWatermark(tp checkpoint.TopicPartition) (hw int64, known bool) {
	for _, d := range s.dirs {
		if hw, known = d.highWatermarks[tp]; known {
			return hw, true
		}
	}
	return 0, false
}

// CleanShutdown tells whether every directory had its clean marker when loading began, and the broker epoch in
// it, -1 when not known.
func (s *Set) CleanShutdown() (clean bool, brokerEpoch int64) {
	clean, brokerEpoch = true, -1
	for _, d := range s.dirs {
		clean = clean && d.clean.Found
		brokerEpoch = max(brokerEpoch, d.clean.BrokerEpoch)
	}
	if !clean {
		brokerEpoch = -1
	}
	return clean, brokerEpoch
}

// reportPace is how often a long loading says how far it is.
const reportPace = 5 * time.Second

// reportProgress logs how far loading is until the returned function is called.
func (s *Set) reportProgress(start time.Time) (stop func()) {
	var stopped atomic.Bool
	var report func()
	report = func() {
		if stopped.Load() {
			return
		}
		s.logProgress(start)
		s.opts.Scheduler.After(reportPace, report)
	}
	s.opts.Scheduler.After(reportPace, report)
	return func() { stopped.Store(true) }
}

func (s *Set) logProgress(start time.Time) {
	done, total := s.Progress()
	took := s.opts.Clock().Sub(start)
	attrs := []any{slog.Int64("done", done), slog.Int64("of", total), slog.Duration("took", took.Round(time.Second))}
	if read, bytes := s.recovered(); bytes > 0 {
		attrs = append(attrs, slog.Int64("recovered_bytes", read), slog.Int64("of_bytes", bytes))
	}
	if left, ok := s.timeLeft(took); ok {
		attrs = append(attrs, slog.Duration("left", left.Round(time.Second)))
	}
	s.opts.Logger.Info("loading partitions", attrs...)
}

// recovered is how many bytes recovery has read, of those that it is known to have to.
func (s *Set) recovered() (read, total int64) {
	m := s.opts.Metrics
	if m == nil {
		return 0, 0
	}
	total = m.RecoveryBytes.Load()
	return min(m.RecoveryBytesRead.Load(), total), total
}

// timeLeft estimates how long loading will go on: by the partitions done where all were closed in good order, else by
// the bytes read, taking the partitions not begun for as large as those that were.
func (s *Set) timeLeft(took time.Duration) (time.Duration, bool) {
	done, total := s.Progress()
	begun := s.progress.begun.Load()
	part := float64(done) / float64(max(total, 1))
	if read, bytes := s.recovered(); bytes > 0 && begun > 0 {
		part = float64(read) / (float64(bytes) / float64(begun) * float64(total))
	}
	if part <= 0 {
		return 0, false
	}
	return time.Duration(float64(took) * max(1-part, 0) / part), true
}

// Loading tells how far loading is; left is the time that it will probably take, 0 when that is not known.
type Loading struct {
	Partitions, PartitionsDone int64
	Bytes, BytesDone           int64 // that recovery reads, as far as it is known
	Left                       time.Duration
}

// Loading tells how far loading is.
func (s *Set) Loading() Loading {
	var l Loading
	l.PartitionsDone, l.Partitions = s.Progress()
	l.BytesDone, l.Bytes = s.recovered()
	if began := s.progress.began.Load(); began != nil {
		l.Left, _ = s.timeLeft(s.opts.Clock().Sub(*began))
	}
	return l
}
