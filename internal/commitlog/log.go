package commitlog

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
)

// Log is the log of one partition. Make it with [Open], end it with [Log.Close] or [Log.Abandon].
type Log struct {
	o    Options
	name string // topic-partition
	env  *segment.Env

	cfg           atomic.Pointer[Config]
	view          atomic.Pointer[view]
	start         atomic.Int64
	highWatermark atomic.Int64
	firstUnstable atomic.Int64 // -1: no open transaction
	recoveryPoint atomic.Int64
	lastFlushMs   atomic.Int64
	cutTo         atomic.Int64 // the lowest end that a truncation made, for [Log.TruncatedTo]
	failure       atomic.Pointer[failure]
	epochs        *checkpoint.LeaderEpochs
	maxima        maxima
	passed        atomic.Pointer[passedOver] // of a log opened for reading only
	seals         seals
	skipped       sync.Map // base offsets of segments that a scrub could not read

	flushMu sync.Mutex // one flush at a time

	dropMu sync.Mutex // guards taken; held while files are renamed whose segments are off the list
	taken  []taken

	removalMu sync.Mutex // guards removals
	removals  []taken    // whose time has come

	closed     atomic.Bool
	full       atomic.Bool // the disk was full at the last append
	truncating atomic.Bool

	mu        sync.Mutex // the appends
	producers *producerstate.Manager
	later     []func() // to run when mu is unlocked
	rolled    []rolled // to be made durable in the background
	flushing  bool     // the background is at it, or will be
	// epochsLate says that the leader epochs have yet to be written.
	epochsLate bool

	opened []*segment.Segment // while Open has not come to its end
}

// view is what readers see: an immutable list of segments, in order, at least one, and where the log ends.
type view struct {
	segments []*segment.Segment
	end      int64  // log end offset
	endPos   int64  // bytes of batches in the last segment
	cuts     uint64 // counts the truncations: a reader that sees it change starts over
}

func (v *view) active() *segment.Segment { return v.segments[len(v.segments)-1] }

// floor is the index of the last segment whose base is not above offset; -1 when there is none.
func (v *view) floor(offset int64) int {
	lo, hi := 0, len(v.segments)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v.segments[mid].BaseOffset() <= offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// endOf is the length of segment i in bytes.
func (v *view) endOf(i int) (int64, error) {
	if i == len(v.segments)-1 {
		return v.endPos, nil
	}
	return v.segments[i].Size()
}

// failure is the first error of the disk.
type failure struct{ err error }

// Metrics count what logs do; one may serve many logs. All of it may be read at any time.
type Metrics struct {
	Segment segment.Metrics

	LookupsByTime      atomic.Int64
	SegmentsConsidered atomic.Int64
	SegmentsSearched   atomic.Int64
	BytesScanned       atomic.Int64 // by look-ups by time
	Rolls              atomic.Int64
	Flushes            atomic.Int64
	SegmentsRecovered  atomic.Int64
	SegmentsDeleted    atomic.Int64
	SegmentsCompacted  atomic.Int64 // replaced by what compaction left of them
	RecoveryBytes      atomic.Int64 // of segments that recovery found to be read
	RecoveryBytesRead  atomic.Int64 // of these, what it has done with
	CutBytes           atomic.Int64 // cut by recovery and kept in cut-* files
	Seals              atomic.Int64 // segments sealed
	DiskFull           atomic.Int64 // changes refused because the disk was full
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = func() time.Time { return time.Time{} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Files == nil {
		o.Files = index.NewFileCache(o.FS, 64)
	}
	if o.Pages == nil {
		o.Pages = index.NewCache(1 << 20)
	}
	if o.Metrics == nil {
		o.Metrics = new(Metrics)
	}
	if o.Many == 0 {
		o.Many = 64
	}
	if o.ProducerIDExpirationMs == 0 {
		o.ProducerIDExpirationMs = defaultProducerExpirationMs
	}
	return o
}

// defaultProducerExpirationMs is Kafka's default of producer.id.expiration.ms.
const defaultProducerExpirationMs = 86_400_000

// newLog makes a log without segments.
func newLog(o Options) *Log {
	o = o.withDefaults()
	l := &Log{o: o, name: fmt.Sprintf("%s-%d", o.Topic, o.Partition)}
	l.o.Logger = o.Logger.With("partition", l.name)
	cfg := o.Config
	l.cfg.Store(&cfg)
	l.env = &segment.Env{
		Files: o.Files, Pages: o.Pages, Logger: l.o.Logger, Clock: o.Clock, Metrics: &o.Metrics.Segment,
		MaxDecompressedBytes: o.MaxDecompressedBytes, Memory: o.Memory, MarkedBytes: o.MarkedBytes,
		Aborted: l.abortedIn,
	}
	l.env.SetDir(o.Dir)
	l.seals.log = l
	l.env.Seal = l.seals.of
	l.firstUnstable.Store(-1)
	l.cutTo.Store(math.MaxInt64)
	l.lastFlushMs.Store(o.Clock().UnixMilli())
	return l
}

// Dir is the partition's folder at present.
func (l *Log) Dir() string { return l.env.Dir() }

// path is a file in the partition's folder.
func (l *Log) path(name string) string { return filepath.Join(l.env.Dir(), name) }

func (l *Log) now() int64 { return l.o.Clock().UnixMilli() }

// SetDir takes note that the partition's folder was renamed.
func (l *Log) SetDir(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.env.SetDir(dir)
	for _, s := range l.view.Load().segments {
		s.DirMoved()
	}
	l.producers.SetDir(dir)
	l.epochs.SetName(filepath.Join(dir, checkpoint.LeaderEpochFile))
}

// Config returns the configs in force.
func (l *Log) Config() Config { return *l.cfg.Load() }

// UpdateConfig puts other configs in force. What is laid down when a segment is made (index interval, index size,
// jitter, preallocation) changes with the next one.
func (l *Log) UpdateConfig(c Config) { l.cfg.Store(&c) }

// StartOffset is the log start offset: the first offset that readers may ask for.
func (l *Log) StartOffset() int64 { return l.start.Load() }

// EndOffset is the log end offset: the one that the next record gets.
func (l *Log) EndOffset() int64 { return l.view.Load().end }

// RecoveryPoint is the offset below which everything is durable.
func (l *Log) RecoveryPoint() int64 { return l.recoveryPoint.Load() }

// LastFlush is when the log was last made durable as a whole, or opened.
func (l *Log) LastFlush() time.Time { return time.UnixMilli(l.lastFlushMs.Load()) }

// UnflushedMessages is the number of offsets not yet durable.
func (l *Log) UnflushedMessages() int64 { return l.EndOffset() - l.RecoveryPoint() }

// SizeBytes is the total size of the segments. Segments that were not used yet are asked for their size once.
func (l *Log) SizeBytes() (int64, error) {
	total := int64(0)
	v := l.view.Load()
	for i := range v.segments {
		n, err := v.endOf(i)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Segments describes the segments, oldest first. It asks the disk for what is not known yet. In a log opened with
// [OpenTolerant], which nobody else may use meanwhile, it keeps no file open.
func (l *Log) Segments() ([]SegmentInfo, error) {
	v := l.view.Load()
	out := make([]SegmentInfo, 0, len(v.segments))
	for i, s := range v.segments {
		size, err := v.endOf(i)
		if err != nil {
			return nil, err
		}
		info, err := infoOf(s, size)
		if err != nil {
			return nil, err
		}
		if info.Active = i == len(v.segments)-1; info.Active {
			info.NextOffset = v.end
		} else {
			info.NextOffset = v.segments[i+1].BaseOffset()
		}
		out = append(out, info)
		if l.lookedInto() && !info.Active {
			if err := s.Rest(); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// infoOf tells what a segment knows of itself.
func infoOf(s *segment.Segment, size int64) (SegmentInfo, error) {
	modified, err := s.LastModified()
	if err != nil {
		return SegmentInfo{}, err
	}
	largest, err := s.Largest()
	if err != nil {
		return SegmentInfo{}, err
	}
	if largest < 0 {
		largest = modified.UnixMilli()
	}
	return SegmentInfo{
		BaseOffset: s.BaseOffset(), SizeBytes: size, LargestTimestamp: largest, LastModified: modified,
	}, nil
}

// ActiveProducers lists the producers that the log knows, by id.
func (l *Log) ActiveProducers() []producerstate.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.ActiveProducers()
}

// ExpireProducers forgets the producers without an open transaction that were idle too long, and returns how many.
func (l *Log) ExpireProducers(now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Expire(now.UnixMilli())
}

// writable says why the log takes no change. The caller holds mu.
func (l *Log) writable() error {
	if f := l.failure.Load(); f != nil {
		return fmt.Errorf("%w: %w", ErrFailed, f.err)
	}
	if l.closed.Load() {
		return ErrClosed
	}
	return nil
}

// fail takes note of an error of the disk and returns it as what callers see. The log refuses changes from now on.
func (l *Log) fail(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if l.failure.CompareAndSwap(nil, &failure{err}) {
		l.o.Logger.Error("log failed", "error", err)
		if l.o.Failed != nil {
			l.o.Failed(err)
		}
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// afterUnlock keeps a task for the time after mu is unlocked.
func (l *Log) afterUnlock(task func()) { l.later = append(l.later, task) }

// unlock unlocks mu and hands the tasks that came up to the background.
func (l *Log) unlock() {
	tasks := l.later
	l.later = nil
	l.mu.Unlock()
	l.background(tasks)
}

// lockAll keeps flushes and removals away too.
func (l *Log) lockAll() {
	l.flushMu.Lock()
	l.dropMu.Lock()
	l.mu.Lock()
}

// unlockAll ends lockAll.
func (l *Log) unlockAll() {
	tasks := l.later
	l.later = nil
	l.mu.Unlock()
	l.dropMu.Unlock()
	l.flushMu.Unlock()
	l.background(tasks)
}

// background runs tasks where [Options] say. The caller holds no lock.
func (l *Log) background(tasks []func()) {
	for _, t := range tasks {
		if l.o.Background != nil {
			l.o.Background(t)
		} else {
			t()
		}
	}
}

// after runs a task when a delay has passed, at once where no scheduler is given.
func (l *Log) after(ms int64, task func()) {
	if l.o.After == nil {
		task()
		return
	}
	l.o.After(time.Duration(min(ms, int64(1<<62)/1e6))*time.Millisecond, task)
}

// Close ends the indexes, writes a producer snapshot at the log end offset and makes everything durable: what a clean
// stop leaves. When it returns an error, the log directory must not be marked as closed in good order.
func (l *Log) Close() error { return l.close(true) }

// CloseUnsynced is Close for a caller that makes everything durable itself, by a sync of the whole file system, before
// it marks the log directory.
func (l *Log) CloseUnsynced() error { return l.close(false) }

func (l *Log) close(durable bool) error {
	l.lockAll()
	defer l.unlockAll()
	if l.closed.Load() {
		return ErrClosed
	}
	err := l.writable()
	if err == nil {
		if err = l.finish(durable); err != nil {
			err = l.fail("close log "+l.name, err)
		}
	}
	l.sealRolled(l.rolled, err == nil)
	l.rolled = nil
	l.closed.Store(true)
	l.releaseAll()
	return err
}

func (l *Log) finish(durable bool) error {
	if _, _, err := l.producers.Snapshot(durable); err != nil {
		return err
	}
	if err := l.epochs.Flush(); err != nil {
		return err
	}
	if err := l.view.Load().active().Finish(); err != nil || !durable {
		return err
	}
	segments := l.unflushed(l.EndOffset(), true)
	defer release(segments)
	if err := l.flushSegments(withRolled(segments, l.rolled)); err != nil {
		return err
	}
	if err := l.syncSnapshots(l.rolled); err != nil {
		return err
	}
	l.flushed(l.EndOffset())
	return l.o.FS.SyncDir(l.Dir())
}

// Abandon closes the log without leaving it in good order, as a crash would: the next opening must recover it.
func (l *Log) Abandon() error {
	l.lockAll()
	defer l.unlockAll()
	if l.closed.CompareAndSwap(false, true) {
		l.releaseAll()
	}
	return nil
}

// releaseAll drops the references of the view; files close when the last reader is done.
func (l *Log) releaseAll() {
	l.sealRolled(l.rolled, false)
	l.rolled = nil
	for _, one := range l.taken {
		one.segment.Release()
	}
	l.taken = nil
	for _, s := range l.view.Load().segments {
		s.Release()
	}
}
