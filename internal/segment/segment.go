package segment

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/index"
	"tidemark/record"
)

// The suffixes of a segment's files.
const (
	LogSuffix     = ".log"
	IndexSuffix   = ".index"
	TimeSuffix    = ".timeindex"
	TxnSuffix     = ".txnindex"
	DeletedSuffix = ".deleted"
	CleanedSuffix = ".cleaned"
	SwapSuffix    = ".swap"
)

// Name is the name of a segment's file: the base offset in 20 digits and a suffix.
func Name(base int64, suffix string) string {
	digits := strconv.FormatInt(base, 10)
	return "00000000000000000000"[:max(0, 20-len(digits))] + digits + suffix
}

// Env is what the segments of one log share. Its fields do not change after the first use.
type Env struct {
	Files   *index.FileCache
	Pages   *index.Cache
	Logger  *slog.Logger
	Clock   func() time.Time
	Metrics *Metrics
	// MaxDecompressedBytes bounds what one batch may decompress to; 0: [record.DefaultMaxBytes].
	MaxDecompressedBytes int64
	Memory               record.Memory // that decompression takes its memory from; nil: not bounded together
	// MarkedBytes is the least size of a batch that look-ups by time keep marks for, an eighth of it when compressed;
	// 0: 16 KiB.
	MarkedBytes int32
	// Aborted tells the aborted transactions that end in a segment, from its batches, which each goes through, and
	// from the state of producers at its start. nil: transaction indexes are taken as they are.
	Aborted func(s *Segment, each func(Each) error) ([]index.AbortedTxn, error)
	// Seal gives the seal that was made for a segment, if any; it may have become void. nil: there are none.
	Seal func(base int64) (Seal, bool)

	dir     atomic.Pointer[string]
	lowered atomic.Int64 // counts the times that a largest timestamp was found to be damaged
}

// Lowered changes whenever the largest timestamp of a segment is found to be less than it was told before.
func (e *Env) Lowered() int64 { return e.lowered.Load() }

// Metrics count what segments do; all of them may be read at any time.
type Metrics struct {
	IndexesRebuilt    atomic.Int64 // offset and time indexes found missing or wrong and built again
	TxnIndexesRebuilt atomic.Int64 // transaction indexes found missing or wrong and built again
	BadBatches        atomic.Int64 // batches that a look-up by time could not decode and passed over
	Damages           atomic.Int64 // parts of logs found damaged
	DamagedBytes      atomic.Int64
	SealsVoid         atomic.Int64 // seals that did not match their segments
	Marked            atomic.Int64 // batches that a look-up by time did not read, for their marks told
}

// SetDir says where the files are, now and after the folder was renamed.
func (e *Env) SetDir(dir string) {
	if dir != "" {
		dir = filepath.Clean(dir)
	}
	e.dir.Store(&dir)
}

// join is the path of a file: [filepath.Join] for a folder whose path is as short as can be.
func (e *Env) join(name string) string {
	switch dir := e.Dir(); dir {
	case "", ".":
		return name
	case string(filepath.Separator):
		return dir + name
	default:
		return dir + string(filepath.Separator) + name
	}
}

// Dir is the folder of the files.
func (e *Env) Dir() string { return *e.dir.Load() }

// Config is the part of the topic configs that a segment obeys. It is fixed when the segment is made.
type Config struct {
	IndexIntervalBytes int64
	MaxIndexBytes      int64 // segment.index.bytes
	PreallocateBytes   int64 // length that a new .log file gets; 0: none
	JitterMs           int64 // by how much earlier than segment.ms the segment is rolled
}

// Present says which index files of a segment exist.
type Present uint32

// The members of a [Present].
const (
	HasIndex Present = 1 << iota
	HasTime
	HasTxn
)

// Segment is one segment. Make it with [Create] or [Open].
type Segment struct {
	env  *Env
	base int64
	cfg  Config
	refs atomic.Int32

	size     atomic.Int64 // bytes of batches; -1: not known yet
	limit    atomic.Int64 // base offset of the next segment; 0: there is none
	openSize atomic.Int64 // of a growing segment: what was there when it was opened
	endsOK   atomic.Bool  // the indexes are in order and end where the log does
	verified atomic.Bool  // the indexes may be used
	trusted  atomic.Bool  // the indexes were compared as a whole, or made here: entries need no check against the log
	txnsOK   atomic.Bool  // the transaction index is right
	openTxn  atomic.Pointer[int64]
	sealed   atomic.Bool // there is a seal that holds
	dirty    dirt        // what changed since the last Flush
	growing  atomic.Bool // appended to
	present  atomic.Uint32
	opened   Present // what was there when the segment was opened
	// distrusted: the end of the time index may be missing, nothing was checked yet; see Distrust.
	distrusted atomic.Bool

	open atomic.Pointer[files]

	checkMu   sync.Mutex // one check or rebuild of the indexes at a time; guards what follows
	compared  bool       // with the log, as a whole
	sealAsked bool       // for the seal that may be there
	txnDoubt  string     // what speaks against the transaction index
	builtWith int64      // what seen was when the indexes were built

	damageMu sync.Mutex // guards spans and changes of damage
	damage   atomic.Pointer[damages]
	seen     atomic.Int64 // counts the damages noted
	spans    []span
	proven   atomic.Bool // all of the log is in spans

	notes index.Notes // marks of batches

	lateMu sync.Mutex         // guards late
	late   []index.AbortedTxn // for the transaction index, when the disk had no room

	mu       sync.Mutex // guards what follows and the opening of files
	suffix   string     // behind the plain names: "", ".deleted", or that of a replacement
	doomed   bool       // remove the files with the last reference
	nameless bool       // another file has taken the .log's name; its descriptor is pinned

	maxMu    sync.Mutex
	max      index.TimeEntry // largest batch timestamp and the last offset of the first batch that has it
	maxKnown bool

	writeMu      sync.Mutex // guards what follows; a rebuild of the indexes keeps the writer away with it
	indexedTo    int64      // position behind the last batch that Index was called for, or that was there at the start
	nextBatch    int64      // the least offset of the batch to come there
	accBytes     int64      // since the last index entry
	firstTs      int64      // largest timestamp of the first append
	firstTsKnown bool
	createdMs    int64
	prealloc     bool // the .log file is longer than its content
}

// files are a segment's files; descriptors come from the file cache.
type files struct {
	log     *index.File
	offsets *index.OffsetIndex
	times   *index.TimeIndex
	txns    *index.TxnIndex
}

func newSegment(env *Env, base int64, cfg Config) *Segment {
	s := &Segment{env: env, base: base, cfg: cfg}
	s.notes.Open(env.Pages)
	s.refs.Store(1)
	return s
}

// Open returns the segment of a .log file that exists, without looking at it.
func Open(env *Env, base int64, cfg Config, present Present) *Segment {
	s := newSegment(env, base, cfg)
	s.opened = present
	s.present.Store(uint32(present))
	s.size.Store(-1)
	s.createdMs = env.Clock().UnixMilli()
	return s
}

// Create makes the files of a new, empty segment that is to be appended to. The .index file comes with the first
// [Segment.Write].
func Create(env *Env, base int64, cfg Config) (*Segment, error) { return create(env, base, cfg, "") }

// create makes the files of an empty segment, whose names end in a suffix.
func create(env *Env, base int64, cfg Config, suffix string) (*Segment, error) {
	s := newSegment(env, base, cfg)
	s.suffix = suffix
	s.believe()
	s.growing.Store(true)
	s.dirty.Store(true)
	s.provenFrom(0)
	s.maxKnown, s.max = true, index.TimeEntry{Timestamp: -1, Offset: base}
	s.createdMs = env.Clock().UnixMilli()
	f := s.files()
	log := env.Files.File(f.log.Name(), os.O_RDWR|os.O_CREATE)
	if _, err := log.Acquire(); err != nil {
		return nil, fmt.Errorf("create segment %020d: %w", base, err)
	}
	defer log.Release()
	f.log = log
	if cfg.PreallocateBytes > 0 {
		if err := log.Truncate(cfg.PreallocateBytes); err != nil {
			return nil, fmt.Errorf("create segment %020d: %w", base, err)
		}
		s.prealloc = true
	}
	if err := f.times.Grow(); err != nil {
		return nil, fmt.Errorf("create segment %020d: %w", base, err)
	}
	s.found(HasTime)
	return s, nil
}

// believe says that the indexes were made here.
func (s *Segment) believe() {
	s.endsOK.Store(true)
	s.verified.Store(true)
	s.trusted.Store(true)
	s.txnsOK.Store(true)
	s.compared = true
	s.builtWith = s.seen.Load()
}

func (s *Segment) has(p Present) bool { return Present(s.present.Load())&p != 0 }
func (s *Segment) found(p Present)    { s.present.Or(uint32(p)) }

// files opens nothing: it makes the objects that open at first use.
func (s *Segment) files() *files {
	if f := s.open.Load(); f != nil {
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filesLocked()
}

func (s *Segment) filesLocked() *files {
	if f := s.open.Load(); f != nil {
		return f
	}
	options := func(suffix string) index.Options {
		return index.Options{
			Files: s.env.Files, Pages: s.env.Pages, Name: s.pathLocked(suffix),
			BaseOffset: s.base, MaxSizeBytes: s.cfg.MaxIndexBytes,
		}
	}
	f := &files{
		log:     s.env.Files.File(s.pathLocked(LogSuffix), os.O_RDWR),
		offsets: index.OpenOffsetIndex(options(IndexSuffix)),
		times:   index.OpenTimeIndex(options(TimeSuffix)),
		txns:    index.OpenTxnIndex(options(TxnSuffix)),
	}
	s.open.Store(f)
	return f
}

func (s *Segment) pathLocked(suffix string) string {
	return s.env.join(Name(s.base, suffix) + s.suffix)
}

// BaseOffset is the offset that the files are named for; no batch of the segment lies below it.
func (s *Segment) BaseOffset() int64 { return s.base }

// SetLimit tells that another segment follows, from an offset on; 0: none does.
func (s *Segment) SetLimit(next int64) { s.limit.Store(next) }

// JitterMs is the jitter that the segment was made with.
func (s *Segment) JitterMs() int64 { return s.cfg.JitterMs }

// Acquire takes a reference. It is false when the segment is gone: the caller's list of segments is out of date.
func (s *Segment) Acquire() bool {
	for {
		n := s.refs.Load()
		if n <= 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Shared reports whether anyone but one owner holds a reference.
func (s *Segment) Shared() bool { return s.refs.Load() > 1 }

// Release drops a reference. The last one closes the files and, when the segment was doomed, removes them; a file
// that cannot be removed is logged, and removed by the next start.
func (s *Segment) Release() {
	n := s.refs.Add(-1)
	if n < 0 {
		panic(fmt.Sprintf("segment %020d: released too often", s.base))
	}
	if n > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.closeFilesLocked(); err != nil {
		s.env.Logger.Warn("close segment", "segment", s.base, "error", err)
	}
	if s.doomed {
		if err := s.removeLocked(); err != nil {
			s.env.Logger.Warn("remove deleted segment", "segment", s.base, "error", err)
		}
	}
}

// Size is the length of the segment's batches in bytes, trailing garbage of a crash included. Errors are the disk's.
func (s *Segment) Size() (int64, error) {
	if n := s.size.Load(); n >= 0 {
		return n, nil
	}
	s.mu.Lock()
	name := s.pathLocked(LogSuffix)
	s.mu.Unlock()
	info, err := s.env.Files.FS().Stat(name)
	if err != nil {
		return 0, err
	}
	s.size.CompareAndSwap(-1, info.Size())
	return s.size.Load(), nil
}

// LastModified is when the .log file was last changed.
func (s *Segment) LastModified() (time.Time, error) {
	s.mu.Lock()
	name := s.pathLocked(LogSuffix)
	s.mu.Unlock()
	info, err := s.env.Files.FS().Stat(name)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Log reads the .log file.
func (s *Segment) Log() io.ReaderAt { return s.files().log }

// LogName is the path of the .log file at present.
func (s *Segment) LogName() string { return s.files().log.Name() }
