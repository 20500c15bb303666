package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// world is a log on an in-memory disk with what is known to be in it: the model that tests compare with.
type world struct {
	mem   *vfs.Mem
	fs    vfs.FS // mem, perhaps with faults
	cfg   Config
	nowMs int64
	log   *Log
	clean bool // how the log was closed last
	// logger is the log's; nil: silent
	logger *slog.Logger
	start  int64
	point  int64 // recovery point in the checkpoint
	many   int   // so many files are synced by one sync of all; 0: none are
	marked int32 // size of the batches that look-ups keep marks for: 1, all

	acked []row   // records that an append has acknowledged, by offset
	bases []int64 // base offsets of their batches
	seq   map[int64]int32
	later []func() // tasks put off, to run with "tick"
	hold  []held
}

// row is one record of the model.
type row struct {
	offset, ts int64
	value      string
}

// held is a slice in flight and the bytes it must give.
type held struct {
	slice Slice
	want  []byte
}

const worldDir = "/data/t-0"

func newWorld(cfg Config) *world {
	w := &world{mem: vfs.NewMem(), cfg: cfg, nowMs: 1_700_000_000_000, marked: 1, seq: make(map[int64]int32)}
	w.fs = w.mem
	w.mem.SetClock(w.clock)
	_ = w.mem.MkdirAll(worldDir, 0o755)
	_ = w.mem.SyncDir("/data")
	_ = w.mem.SyncDir("/")
	return w
}

// syncAll is Options.SyncAll.
func (w *world) syncAll() (func() error, error) {
	if w.many == 0 {
		return nil, nil
	}
	whole, err := vfs.OpenWhole(w.fs, worldDir)
	if err != nil {
		return nil, err
	}
	return whole.Sync, nil
}

func (w *world) clock() time.Time { return time.UnixMilli(w.nowMs) }

// smallConfig rolls and indexes often.
func smallConfig() Config {
	cfg := DefaultConfig()
	cfg.SegmentBytes, cfg.SegmentIndexBytes, cfg.IndexIntervalBytes = 1000, 240, 150
	cfg.RetentionMs = -1
	cfg.MessageTimestampAfterMaxMs = 1 << 62
	return cfg
}

func (w *world) open() error {
	syncAll, err := w.syncAll()
	if err != nil {
		return err
	}
	l, err := Open(Options{
		SyncAll: syncAll, Many: w.many,
		FS: w.fs, Dir: worldDir, Topic: "t", Config: w.cfg, Clock: w.clock, TopicID: [16]byte{1},
		MarkedBytes: w.marked, RecoveryPoint: w.point, StartOffset: w.start, Clean: w.clean,
		Files: index.NewFileCache(w.fs, 4), Pages: index.NewCache(64 << 10),
		After: func(_ time.Duration, task func()) { w.later = append(w.later, task) }, Logger: w.logger,
	})
	if err != nil {
		return err
	}
	w.log, w.clean = l, false
	l.UpdateHighWatermark(l.EndOffset())
	return nil
}

// close ends the log in good order and keeps what the checkpoints would.
func (w *world) close() error {
	if err := w.log.Close(); err != nil {
		return err
	}
	w.clean, w.point, w.start = true, w.log.RecoveryPoint(), w.log.StartOffset()
	return nil
}

// kill ends the log as a killed process does. The checkpoints are a while old.
func (w *world) kill() {
	w.start = w.log.StartOffset()
	w.point = min(w.point, w.log.EndOffset())
	_ = w.log.Abandon()
}

// newBatch makes a batch as a producer sends it.
func newBatch(codec record.Codec, pid int64, seq int32, rows []row) []byte {
	o := record.DefaultBuilderOptions()
	o.Codec = codec
	if pid >= 0 {
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = pid, 0, seq
	}
	b := record.NewBuilder(o)
	for _, r := range rows {
		if err := b.Append(r.ts, []byte("k"), []byte(r.value), nil); err != nil {
			panic(err)
		}
	}
	return bytes.Clone(b.Bytes())
}

// append produces one batch; rows get their offsets.
func (w *world) append(codec record.Codec, pid int64, rows []row) (AppendInfo, error) {
	info, err := w.log.AppendAsLeader(newBatch(codec, pid, w.seq[pid], rows), AppendOptions{})
	if err != nil {
		return info, err
	}
	for i := range rows {
		rows[i].offset = info.BaseOffset + int64(i)
	}
	w.acked, w.bases = append(w.acked, rows...), append(w.bases, info.BaseOffset)
	if pid >= 0 {
		w.seq[pid] += int32(len(rows))
	}
	w.log.UpdateHighWatermark(w.log.EndOffset())
	return info, nil
}

// truncated drops the batches from the one that holds an offset on.
func (w *world) truncated(to int64) {
	if i, found := slices.BinarySearch(w.bases, to); !found && i > 0 && w.lastOffset(i-1) >= to {
		to = w.bases[i-1]
	}
	w.bases = slices.DeleteFunc(w.bases, func(base int64) bool { return base >= to })
	w.acked = slices.DeleteFunc(w.acked, func(r row) bool { return r.offset >= to })
}

// lastOffset is the last offset of the i-th batch.
func (w *world) lastOffset(i int) int64 {
	last := w.bases[i]
	for _, r := range w.acked {
		if r.offset >= last && (i+1 == len(w.bases) || r.offset < w.bases[i+1]) {
			last = r.offset
		}
	}
	return last
}

// readAll decodes all records from the log start offset on.
func readAll(l *Log) ([]row, error) { return readFrom(l, l.StartOffset()) }

func readFrom(l *Log, from int64) ([]row, error) {
	var out []row
	for offset := from; offset < l.EndOffset(); {
		s, err := l.Read(offset, ReadOptions{MaxBytes: 300, MinOneBatch: true, UpTo: l.EndOffset()})
		if err != nil {
			return out, err
		}
		data, err := s.Bytes()
		s.Release()
		if err != nil {
			return out, err
		}
		if len(data) == 0 {
			return out, nil
		}
		for {
			h, entry, rest, err := record.NextEntry(data)
			if errors.Is(err, record.ErrShort) {
				break
			}
			if err != nil {
				return out, err
			}
			data = rest
			rows, err := decodeRows(entry, offset)
			if err != nil {
				return out, err
			}
			out, offset = append(out, rows...), h.NextOffset()
		}
	}
	return out, nil
}

func decodeRows(entry []byte, from int64) ([]row, error) {
	if !record.ValidCRC(entry) {
		return nil, errors.New("a batch with a wrong checksum was served")
	}
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out []row
	for it.Next() {
		if r := it.Record(); r.Offset >= from {
			out = append(out, row{r.Offset, r.Timestamp, string(r.Value)})
		}
	}
	return out, it.Err()
}

// visible is the part of the model that a log with these bounds must serve.
func (w *world) visible(start, end int64) []row {
	var out []row
	for _, r := range w.acked {
		if r.offset >= start && r.offset < end {
			out = append(out, r)
		}
	}
	return out
}

// check compares the log with the model: records, and the look-up of every interesting time.
func (w *world) check() error {
	got, err := readAll(w.log)
	if err != nil {
		return fmt.Errorf("read all: %w", err)
	}
	want := w.visible(w.log.StartOffset(), w.log.EndOffset())
	if !slices.Equal(got, want) {
		return fmt.Errorf("records:\n got  %v\n want %v", got, want)
	}
	return w.checkTimes(want)
}

func (w *world) checkTimes(rows []row) error {
	times := []int64{0, 1 << 60}
	for _, r := range rows {
		times = append(times, r.ts, r.ts+1)
	}
	for _, ts := range times {
		if ts < 0 {
			continue
		}
		found, ok, err := w.log.OffsetForTime(ts, w.log.EndOffset(), nil)
		if err != nil {
			return fmt.Errorf("look up %d: %w", ts, err)
		}
		i := slices.IndexFunc(rows, func(r row) bool { return r.ts >= ts })
		if ok != (i >= 0) || ok && (found.Offset != rows[i].offset || found.Timestamp != rows[i].ts) {
			return fmt.Errorf("look up %d: %v %+v, records %v", ts, ok, found, rows)
		}
	}
	return nil
}

// keepSlice starts a read that is to be checked later.
func (w *world) keepSlice(offset int64) error {
	s, err := w.log.Read(offset, ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: w.log.EndOffset()})
	if err != nil {
		return err
	}
	data, err := s.Bytes()
	w.hold = append(w.hold, held{s, data})
	return err
}

// checkSlices reads the slices in flight again and releases them.
func (w *world) checkSlices() error {
	defer func() { w.hold = nil }()
	for i := range w.hold {
		h := &w.hold[i]
		got, err := h.slice.Bytes()
		h.slice.Release()
		if err != nil {
			return fmt.Errorf("slice in flight: %w", err)
		}
		if !bytes.Equal(got, h.want) {
			return errors.New("the bytes of a slice in flight have changed")
		}
	}
	return nil
}

// tick runs the tasks that were put off.
func (w *world) tick() {
	tasks := w.later
	w.later = nil
	for _, t := range tasks {
		t()
	}
}

// dump prints the folder: files with their sizes, and what is in the indexes.
func (w *world) dump() (string, error) {
	entries, err := w.mem.ReadDir(worldDir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %d\n", e.Name(), info.Size())
		w.dumpIndex(&b, e.Name())
	}
	return b.String(), nil
}

func (w *world) dumpIndex(b *strings.Builder, name string) {
	base, kind, ok := splitName(name)
	if !ok {
		return
	}
	o := index.Options{
		Files: index.NewFileCache(w.mem, 1), Pages: index.NewCache(1 << 16),
		Name: filepath.Join(worldDir, name), BaseOffset: base, ReadOnly: true,
	}
	switch kind {
	case segment.IndexSuffix:
		x := index.OpenOffsetIndex(o)
		for i := 0; ; i++ {
			e, err := x.Entry(i)
			if err != nil || e.Pos == 0 {
				return
			}
			fmt.Fprintf(b, "  %d at %d\n", e.Offset, e.Pos)
		}
	case segment.TimeSuffix:
		x := index.OpenTimeIndex(o)
		for i := 0; ; i++ {
			e, err := x.Entry(i)
			if err != nil || e.Timestamp == 0 {
				return
			}
			fmt.Fprintf(b, "  %d -> %d\n", e.Timestamp, e.Offset)
		}
	}
}

// crash makes the world after a power loss: keep is the chance that a byte not synced is there all the same.
func (w *world) crash(rng *rand.Rand, keep float64) *world {
	after := *w
	after.mem = w.mem.CrashClone(rng, keep)
	after.fs, after.log, after.clean, after.hold, after.later = after.mem, nil, false, nil, nil
	after.mem.SetClock(after.clock)
	after.acked, after.bases = slices.Clone(w.acked), slices.Clone(w.bases)
	return &after
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
