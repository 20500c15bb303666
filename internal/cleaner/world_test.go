package cleaner

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// world is a compacted log in memory and the cleaner that works on it, with a clock that a test moves.
type world struct {
	t     testing.TB
	mem   *vfs.Mem
	fs    vfs.FS // mem, perhaps with faults
	cfg   commitlog.Config
	nowMs int64
	log   *commitlog.Log
	c     *Cleaner
	later []func()
	clean bool
	start int64           // log start offset in the checkpoint
	out   strings.Builder // what was logged
	seq   map[int64]int32
}

const (
	worldRoot = "/data"
	worldDir  = "/data/t-0"
)

var worldName = checkpoint.TopicPartition{Topic: "t"}

// smallLog is a compacted topic with small segments, which is compacted whenever anything is dirty.
func smallLog() commitlog.Config {
	cfg := commitlog.DefaultConfig()
	cfg.CleanupPolicy = commitlog.CleanupCompact
	cfg.SegmentBytes, cfg.SegmentIndexBytes, cfg.IndexIntervalBytes = 1000, 1200, 150
	cfg.MinCleanableDirtyRatio, cfg.RetentionMs = 0, -1
	cfg.MessageTimestampAfterMaxMs = 1 << 62
	return cfg
}

func newWorld(t testing.TB, cfg commitlog.Config) *world {
	w := &world{t: t, mem: vfs.NewMem(), cfg: cfg, nowMs: 1_700_000_000_000, seq: make(map[int64]int32)}
	w.fs = w.mem
	w.mem.SetClock(w.clock)
	must(t, w.mem.MkdirAll(worldDir, 0o755))
	must(t, w.mem.SyncDir(worldRoot))
	must(t, w.mem.SyncDir("/"))
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) clock() time.Time { return time.UnixMilli(w.nowMs) }

func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&w.out, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// open opens the log and makes a cleaner for it.
func (w *world) open() error {
	l, err := commitlog.Open(commitlog.Options{
		FS: w.fs, Dir: worldDir, Topic: worldName.Topic, Config: w.cfg, Clock: w.clock, TopicID: [16]byte{1},
		Clean: w.clean, StartOffset: w.start, Files: index.NewFileCache(w.fs, 8), Pages: index.NewCache(64 << 10),
		Logger: w.logger(),
		After:  func(_ time.Duration, task func()) { w.later = append(w.later, task) },
	})
	if err != nil {
		return err
	}
	w.log, w.clean = l, false
	l.UpdateHighWatermark(l.EndOffset())
	w.c = New(Options{
		FS: w.fs, Config: DefaultConfig(), Clock: w.clock, Logger: w.logger(),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Logs:  func() []Partition { return []Partition{{Name: worldName, Log: w.log, Dir: worldRoot}} },
	})
	return nil
}

// reopen ends the log, as a clean stop or as a killed process does, and opens it again.
func (w *world) reopen(clean bool) error {
	w.start = w.log.StartOffset()
	if clean {
		if err := w.log.Close(); err != nil {
			return err
		}
	} else if err := w.log.Abandon(); err != nil {
		return err
	}
	w.clean, w.later = clean, nil
	return w.open()
}

// tick runs the tasks that were put off.
func (w *world) tick() {
	tasks := w.later
	w.later = nil
	for _, task := range tasks {
		task()
	}
}

// kv is a record; a nil value is a tombstone.
type kv struct {
	key   string
	value []byte
}

func value(format string, args ...any) []byte { return fmt.Appendf(nil, format, args...) }

// batchOptions are those of a batch of a producer; id -1: of none.
func (w *world) batchOptions(id int64, codec record.Codec, transactional bool) record.BuilderOptions {
	o := record.DefaultBuilderOptions()
	o.Codec, o.Transactional = codec, transactional
	if id >= 0 {
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = id, 0, w.seq[id]
	}
	return o
}

// append appends one batch and returns its base offset.
func (w *world) append(o record.BuilderOptions, rows ...kv) (int64, error) {
	b := record.NewBuilder(o)
	for i, r := range rows {
		header := []record.RecordHeader{{Key: []byte("n"), Value: []byte{byte(i)}}}
		if err := b.Append(w.nowMs+int64(i), []byte(r.key), r.value, header); err != nil {
			return 0, err
		}
	}
	info, err := w.log.AppendAsLeader(bytes.Clone(b.Bytes()), commitlog.AppendOptions{})
	if err != nil {
		return 0, err
	}
	if o.ProducerID >= 0 {
		w.seq[o.ProducerID] += int32(len(rows))
	}
	w.log.UpdateHighWatermark(w.log.EndOffset())
	return info.BaseOffset, nil
}

// mustAppend appends a batch of no producer.
func (w *world) mustAppend(rows ...kv) int64 {
	w.t.Helper()
	at, err := w.append(w.batchOptions(-1, record.None, false), rows...)
	must(w.t, err)
	return at
}

// end ends a transaction of a producer.
func (w *world) end(id int64, commit bool) error {
	o := record.DefaultBuilderOptions()
	o.ProducerID, o.ProducerEpoch = id, 0
	marker, err := record.EndTxnMarker(o, w.nowMs, record.EndTxn{Commit: commit})
	if err != nil {
		return err
	}
	_, err = w.log.AppendAsLeader(marker, commitlog.AppendOptions{Origin: commitlog.OriginCoordinator})
	w.log.UpdateHighWatermark(w.log.EndOffset())
	return err
}

// row is a record found in a log.
type row struct {
	offset, ts int64
	key, value string
	tombstone  bool
	control    bool
}

func (r row) String() string {
	switch {
	case r.control:
		return fmt.Sprintf("%d:marker", r.offset)
	case r.tombstone:
		return fmt.Sprintf("%d:%s!", r.offset, r.key)
	default:
		return fmt.Sprintf("%d:%s=%s", r.offset, r.key, r.value)
	}
}

// batches reads all batches of a log.
func batches(t testing.TB, log *commitlog.Log) []record.Batch {
	t.Helper()
	var out []record.Batch
	for offset := log.StartOffset(); offset < log.EndOffset(); {
		s, err := log.Read(offset, commitlog.ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: log.EndOffset()})
		must(t, err)
		data, err := s.Bytes()
		s.Release()
		must(t, err)
		if len(data) == 0 {
			break
		}
		for len(data) > 0 {
			_, entry, rest, err := record.NextEntry(data)
			must(t, err)
			if !record.ValidCRC(entry) {
				t.Fatalf("batch at offset %d has a wrong checksum", record.Batch(entry).BaseOffset())
			}
			b := record.Batch(bytes.Clone(entry))
			out, data, offset = append(out, b), rest, b.NextOffset()
		}
	}
	return out
}

// rows reads all records of a log, markers too.
func rows(t testing.TB, log *commitlog.Log) []row {
	t.Helper()
	var out []row
	for _, b := range batches(t, log) {
		it, err := record.NewIterator(b, record.IterOptions{})
		must(t, err)
		for it.Next() {
			r := it.Record()
			out = append(out, row{offset: r.Offset, ts: r.Timestamp, key: string(r.Key), value: string(r.Value),
				tombstone: r.Value == nil, control: b.IsControl()})
		}
		must(t, it.Err())
	}
	return out
}

func show(rows []row) string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.String()
	}
	return strings.Join(out, " ")
}

// dirty is the first dirty offset in the checkpoint.
func (w *world) dirty() int64 {
	w.t.Helper()
	all, err := checkpoint.ReadOffsets(w.fs, worldRoot+"/"+checkpoint.CleanerOffsetFile)
	must(w.t, err)
	return all[worldName]
}

// names lists the files of the partition.
func (w *world) names() []string {
	w.t.Helper()
	entries, err := w.mem.ReadDir(worldDir)
	must(w.t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}
