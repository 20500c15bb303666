package tidemark

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/logdir"
	"tidemark/vfs"
)

// Errors of a [Store] and its logs, to be asked for with errors.Is.
var (
	// ErrOfNode is returned by [Open] for a directory that belongs to a Kafka node: its metadata decides what is in it.
	ErrOfNode = errors.New("the directory belongs to a Kafka node: serve it, or open it for reading only")
	// ErrUnknownPartition is returned for a partition that the store does not hold.
	ErrUnknownPartition = logdir.ErrUnknownPartition
	// ErrReadOnly is returned for every change of a store that is open for reading only.
	ErrReadOnly = commitlog.ErrReadOnly
	// ErrLocked is wrapped by the error of [Open] when another process has the directory.
	ErrLocked = vfs.ErrLocked
	// ErrDiskFull is wrapped by the error of an append for which there was no room. Nothing was appended; later ones
	// succeed when there is room again.
	ErrDiskFull = commitlog.ErrDiskFull
	// ErrCorrupt is wrapped by the error of a read at an offset whose batch is damaged, and with it a
	// *record.CorruptError that tells where. What is behind can be read from a later offset on.
	ErrCorrupt = commitlog.ErrCorruptMessage
	// ErrClosed is returned by a store that is closed, and by its logs.
	ErrClosed = commitlog.ErrClosed
)

// OffsetOutOfRangeError is a read below the start or above the end of a log.
type OffsetOutOfRangeError = commitlog.OffsetOutOfRangeError

// Options say how a store is opened.
type Options struct {
	// Config are Kafka's topic configs, for every log of the store: segment.bytes, retention.ms, compression.type….
	// What is not given is Kafka's default; retention.ms, for one, is a week. They are not stored.
	Config map[string]string
	// Logger is told of recovery and of failures; nil: nobody.
	Logger *slog.Logger
	// FS is where the files are; nil: the operating system's.
	FS vfs.FS
}

// Partition names a log in a store.
type Partition struct {
	Topic  string
	Number int32
}

// Store is a log directory. Open it with [Open] or [OpenReadOnly].
type Store struct {
	dir      string
	fs       vfs.FS
	config   commitlog.Config
	set      *logdir.Set // nil: open for reading only
	schedule *schedule

	mu     sync.Mutex
	logs   map[Partition]*Log
	closed bool
}

// Open opens a log directory for reading and appending, and makes it when it is absent. Logs that were not closed in
// good order are recovered; nothing that recovery cuts is lost, it is kept beside the log. Retention runs in the
// background.
//
// Errors: [ErrOfNode], [ErrLocked], a config that Kafka refuses, the disk's.
func Open(dir string, o Options) (*Store, error) {
	s, err := newStore(dir, o)
	if err != nil {
		return nil, err
	}
	if err := s.refuseNode(); err != nil {
		return nil, err
	}
	s.schedule = &schedule{stop: make(chan struct{})}
	s.set, err = logdir.Open(logdir.Options{
		FS: s.fs, Dirs: []string{dir}, Settings: logdir.DefaultSettings(), Clock: time.Now, Rand: mathrand.Uint64,
		NewID: newID, Scheduler: s.schedule, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	assign := func(_ checkpoint.TopicPartition, id [16]byte) logdir.Assignment {
		return logdir.Assignment{Assigned: true, TopicID: id, Config: s.config}
	}
	if err := s.set.Load(context.Background(), assign); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.takeOn(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// takeOn lets every log know that nobody else has to have its records.
func (s *Store) takeOn() error {
	for _, tp := range s.set.Partitions() {
		log, err := s.set.Log(tp)
		if err != nil {
			return err
		}
		log.UpdateHighWatermark(log.EndOffset())
	}
	return nil
}

// OpenReadOnly opens a log directory to look into it, also one that a broker has in use. Nothing in it is changed:
// indexes that are missing or wrong are mended in memory. A log ends where it ended when it was first asked for.
//
// Errors: a config that Kafka refuses; a partition's own folder instead of the directory around it; the disk's.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	s, err := newStore(dir, o)
	if err != nil {
		return nil, err
	}
	entries, err := s.fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isSegment(e.Name()) {
			return nil, fmt.Errorf("open %s: it is the folder of one partition: open the directory around it", dir)
		}
	}
	return s, nil
}

// isSegment recognises the name of a segment: 20 digits and ".log".
func isSegment(name string) bool {
	digits, ok := strings.CutSuffix(name, ".log")
	return ok && len(digits) == 20 && strings.Trim(digits, "0123456789") == ""
}

func newStore(dir string, o Options) (*Store, error) {
	if err := config.CheckTopicConfigs(o.Config); err != nil {
		return nil, err
	}
	node, err := config.NewNode(map[string]string{"process.roles": "broker", "node.id": "0",
		"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "1@localhost:9093"})
	if err != nil {
		return nil, err
	}
	c, err := node.Topic(o.Config)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, fs: o.FS, config: c, logs: map[Partition]*Log{}}
	if s.fs == nil {
		s.fs = vfs.OS()
	}
	return s, nil
}

// refuseNode refuses the directory of a node: what its metadata does not know it would put aside.
func (s *Store) refuseNode() error {
	for _, name := range []string{"meta.properties", logdir.MetadataFolder} {
		if _, err := s.fs.Stat(filepath.Join(s.dir, name)); err == nil {
			return fmt.Errorf("open %s: %s is there: %w", s.dir, name, ErrOfNode)
		}
	}
	return nil
}

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// Partitions lists the logs of the store, by topic and number.
//
// Errors: [ErrClosed]; the disk's, of a store that is open for reading only.
func (s *Store) Partitions() ([]Partition, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	var out []Partition
	if s.set != nil {
		for _, tp := range s.set.Partitions() {
			out = append(out, Partition{tp.Topic, tp.Partition})
		}
	} else {
		entries, err := s.fs.ReadDir(s.dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if p, ok := parsePartition(e.Name()); ok && e.IsDir() {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
	})
	return out, nil
}

// parsePartition reads the name of a partition's folder. Folders that wait for deletion have no such name.
func parsePartition(folder string) (p Partition, ok bool) {
	dash := strings.LastIndexByte(folder, '-')
	if dash <= 0 {
		return p, false
	}
	n, err := strconv.ParseInt(folder[dash+1:], 10, 32)
	return Partition{folder[:dash], int32(n)}, err == nil && n >= 0
}

// Create makes the log of a partition, or returns the one that exists.
//
// Errors: [ErrReadOnly], [ErrClosed]; a topic name that Kafka refuses or keeps for itself; the disk's.
func (s *Store) Create(topic string, partition int32) (*Log, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	if s.set == nil {
		return nil, ErrReadOnly
	}
	if topic+"-0" == logdir.MetadataFolder {
		return nil, fmt.Errorf("create %s-%d: a folder of that name holds the metadata of a node", topic, partition)
	}
	if err := config.CheckTopicName(topic); err != nil {
		return nil, err
	}
	if partition < 0 {
		return nil, fmt.Errorf("create %s-%d: a partition's number is not negative", topic, partition)
	}
	tp := checkpoint.TopicPartition{Topic: topic, Partition: partition}
	log, err := s.set.Create(tp, newID(), s.config)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", tp, err)
	}
	return s.keep(Partition{topic, partition}, log), nil
}

// Log is the log of a partition.
//
// Errors: [ErrUnknownPartition], [ErrClosed]; the disk's.
func (s *Store) Log(topic string, partition int32) (*Log, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	p := Partition{topic, partition}
	s.mu.Lock()
	known := s.logs[p]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	log, err := s.open(p)
	if err != nil {
		return nil, fmt.Errorf("log of %s-%d: %w", topic, partition, err)
	}
	return s.keep(p, log), nil
}

func (s *Store) open(p Partition) (*commitlog.Log, error) {
	tp := checkpoint.TopicPartition{Topic: p.Topic, Partition: p.Number}
	if s.set != nil {
		return s.set.Log(tp)
	}
	folder := filepath.Join(s.dir, tp.String())
	if _, err := s.fs.Stat(folder); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownPartition, err)
	}
	starts, err := checkpoint.ReadOffsets(s.fs, filepath.Join(s.dir, checkpoint.LogStartOffsetFile))
	if err != nil {
		return nil, err
	}
	return commitlog.OpenTolerant(commitlog.Options{FS: s.fs, Dir: folder, Topic: p.Topic, Partition: p.Number,
		Config: s.config, StartOffset: starts[tp]})
}

// keep remembers a log; of two that were opened at the same time the first stays.
func (s *Store) keep(p Partition, log *commitlog.Log) *Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[p] == nil {
		s.logs[p] = &Log{log: log, readOnly: s.set == nil}
	}
	return s.logs[p]
}

func (s *Store) checkOpen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("store %s: %w", s.dir, ErrClosed)
	}
	return nil
}

// Close makes everything durable, leaves the directory in good order and unlocks it. What is asked of the store or its
// logs later answers [ErrClosed]; further calls of Close do nothing.
//
// Errors: the disk's; the logs are recovered at the next opening then.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	if s.set == nil {
		return s.closeReadOnly()
	}
	s.schedule.end()
	return s.set.Close(-1)
}

func (s *Store) closeReadOnly() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range s.logs {
		errs = append(errs, l.log.Abandon())
	}
	maps.DeleteFunc(s.logs, func(Partition, *Log) bool { return true })
	return errors.Join(errs...)
}
