package quorum

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/controller"
	"tidemark/internal/index"
	"tidemark/internal/metadata"
	"tidemark/vfs"
)

// Errors of a [Quorum].
var (
	// ErrClosed means that the quorum was closed.
	ErrClosed = errors.New("metadata quorum is closed")
	// ErrFailed means that the disk failed under the metadata log. The first
	// error that was met is wrapped beside it.
	ErrFailed = errors.New("metadata log failed")
	// ErrNotSoleVoter means that the metadata belongs to a quorum of several
	// nodes, or of another node. Nothing was written.
	ErrNotSoleVoter = errors.New("this node is not the only voter of the metadata quorum")
)

// Options say how the quorum is opened.
type Options struct {
	FS          vfs.FS
	LogDir      string        // the log directory with the folder of the metadata log
	DirectoryID metadata.UUID // of LogDir
	NodeID      int32
	Controller  *controller.Controller
	// Endpoints are where this node is reached as a controller; they are written
	// down and not used otherwise.
	Endpoints []metadata.Endpoint

	Clock  func() time.Time
	Random io.Reader    // of ids
	Logger *slog.Logger // nil: silent

	// Clean says that the log directory was closed in good order.
	Clean bool

	SegmentBytes      int32         // metadata.log.segment.bytes; 0: Kafka's default, and so on
	SegmentMs         int64         // metadata.log.segment.ms
	SnapshotBytes     int64         // metadata.log.max.record.bytes.between.snapshots
	SnapshotInterval  time.Duration // metadata.log.max.snapshot.interval.ms; negative: never by time
	MaxRetentionBytes int64         // metadata.max.retention.bytes; negative: no limit
	MaxRetention      time.Duration // metadata.max.retention.ms; negative: no limit

	// What package commitlog wants; all may be nil.
	Files      *index.FileCache
	Pages      *index.Cache
	Background func(task func())
	After      func(delay time.Duration, task func())
	Failed     func(error) // called once, when the disk failed
	Metrics    *commitlog.Metrics
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.SegmentBytes, 1<<30)
	setDefault(&o.SegmentMs, (7 * 24 * time.Hour).Milliseconds())
	setDefault(&o.SnapshotBytes, 20<<20)
	setDefault(&o.SnapshotInterval, time.Hour)
	setDefault(&o.MaxRetentionBytes, 100<<20)
	setDefault(&o.MaxRetention, 7*24*time.Hour)
	return o
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Quorum is this node as the only voter of the metadata quorum. Make it with
// [Open], end it with [Quorum.Close].
type Quorum struct {
	o   Options
	dir string
	log *commitlog.Log

	image atomic.Pointer[metadata.Image] // published
	epoch int32                          // of leadership

	turn        chan struct{} // holds a token while nobody decides, appends or publishes; guards what follows
	loader      *metadata.Loader
	voters      voters
	subscribers []*subscriber
	failure     error // ErrFailed or ErrClosed, wrapped
	snapshots   snapshotState

	closing sync.Once
}

// Open replays the metadata of a log directory, or formats it when there is
// none, and makes this node its leader. Errors: ErrNotSoleVoter,
// *[record.CorruptError], *[metadata.UnknownRecordError] and other errors of
// records that cannot be followed, and those of the disk.
func Open(o Options) (*Quorum, error) {
	o = o.withDefaults()
	q := &Quorum{o: o, dir: filepath.Join(o.LogDir, folder), turn: make(chan struct{}, 1)}
	if err := q.open(); err != nil {
		if q.log != nil {
			err = errors.Join(err, q.log.Abandon())
		}
		return nil, fmt.Errorf("open metadata log %s: %w", q.dir, err)
	}
	q.turn <- struct{}{}
	return q, nil
}

func (q *Quorum) open() error {
	began := q.o.Clock()
	if err := q.o.FS.MkdirAll(q.dir, 0o755); err != nil {
		return err
	}
	if err := q.o.FS.SyncDir(q.o.LogDir); err != nil {
		return err
	}
	state, known, err := readState(q.o.FS, q.dir)
	if err != nil {
		return err
	}
	if err := q.load(); err != nil {
		return err
	}
	if err := q.checkVoters(state, known); err != nil {
		return err
	}
	if err := controller.CheckFeatures(q.Image()); err != nil {
		return err
	}
	replayed := q.log.EndOffset()
	if err := q.lead(state); err != nil {
		return err
	}
	q.o.Logger.Info("metadata log is open", "dir", q.dir, "leader_epoch", q.epoch, "end_offset", q.log.EndOffset(),
		"replayed_to", replayed, "topics", q.Image().NumTopics(), "partitions", q.Image().NumPartitions(),
		"took", q.o.Clock().Sub(began))
	return nil
}

// Image is the newest image. It never blocks.
func (q *Quorum) Image() *metadata.Image { return q.image.Load() }

// LeaderEpoch is the epoch of this node's leadership.
func (q *Quorum) LeaderEpoch() int32 { return q.epoch }

// EndOffset is the offset that the next record will have.
func (q *Quorum) EndOffset() int64 { return q.log.EndOffset() }

// VoterDirectory is the id of the log directory by which the quorum knows this voter; zero with fixed voters, which it
// knows by their numbers alone.
func (q *Quorum) VoterDirectory() metadata.UUID {
	if q.voters.kraftVersion == 0 { // set once, when the log was opened
		return metadata.ZeroUUID
	}
	return q.o.DirectoryID
}

// Log is the metadata log; it must not be appended to.
func (q *Quorum) Log() *commitlog.Log { return q.log }

// Close ends the quorum after the command in progress. Later commands are
// refused with ErrClosed. A second call does nothing.
func (q *Quorum) Close() (err error) {
	q.closing.Do(func() {
		<-q.turn
		defer func() { q.turn <- struct{}{} }()
		failed := q.failure
		q.failure = ErrClosed
		if failed != nil {
			err = q.log.Abandon()
			return
		}
		err = q.log.Close()
	})
	return err
}
