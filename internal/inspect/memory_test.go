package inspect_test

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark"
	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/proc"
	"tidemark/vfs"
)

// The log is this much larger than what an operation may take for it.
const (
	bigLogBytes = 96 << 20
	mostMemory  = 24 << 20
	bigRecord   = 1 << 10
	bigBatch    = 768 // records
)

// TestConstantMemory runs every operation over a log much larger than the memory it may take.
func TestConstantMemory(t *testing.T) {
	dir := bigLog(t)
	seen := 0
	for name, run := range operations(t, dir, func(inspect.Record) error { seen++; return nil }) {
		t.Run(name, func(t *testing.T) {
			if peak := peakOf(t, run); peak > mostMemory {
				t.Errorf("%d MiB of memory at most, for a log of %d MiB", peak>>20, bigLogBytes>>20)
			}
		})
	}
	if want := bigLogBytes / bigRecord / bigBatch * bigBatch; seen != want {
		t.Errorf("%d records were read, want %d", seen, want)
	}
}

// The most memory that a segment more may take: its base offset and its files' names, what verify and stats tell of it,
// or a segment that is open for look-ups. Garbage counts too.
const (
	fewSegments    = 500
	manySegments   = 2500
	mostPerSegment = 1 << 10
)

// TestMemoryOfSegments compares what operations take for few and for many segments.
func TestMemoryOfSegments(t *testing.T) {
	few, many := manySegmentsLog(t, fewSegments), manySegmentsLog(t, manySegments)
	each := func(inspect.Record) error { return nil }
	small, large := operations(t, few, each), operations(t, many, each)
	for name := range small {
		t.Run(name, func(t *testing.T) {
			more := (peakOf(t, large[name]) - peakOf(t, small[name])) / (manySegments - fewSegments)
			t.Logf("%d bytes a segment", more)
			if more > mostPerSegment {
				t.Errorf("%d bytes of memory a segment", more)
			}
		})
	}
}

// A log with an index entry for each of its small batches: a third of its size once they are made.
const (
	entriesLogBytes = 24 << 20
	entriesSegment  = 2 << 20
	mostForEntries  = 5 << 20
)

// TestMemoryOfMendedIndexes reads a log without indexes: each is made in memory, for as long as its segment is read.
func TestMemoryOfMendedIndexes(t *testing.T) {
	segments := entriesLogBytes / entriesSegment
	if testing.Short() {
		segments = 2 // all take a minute with the race detector
	}
	dir := entriesLog(t, segments)
	cfg := commitlog.DefaultConfig()
	cfg.IndexIntervalBytes = 1
	fsys, at := vfs.OS(), target(t, vfs.OS(), dir)
	late := int64(1) << 60
	for name, run := range map[string]func() error{
		"list": func() error {
			_, err := inspect.List(fsys, at, cfg, inspect.ListOptions{})
			return err
		},
		"find": func() error {
			_, err := inspect.Find(fsys, at, cfg, inspect.Query{Time: &late}, true)
			return err
		},
		"largest": func() error {
			_, err := inspect.Find(fsys, at, cfg, inspect.Query{Max: true}, false)
			return err
		},
		"cat": func() error {
			return inspect.Cat(fsys, at, cfg, inspect.CatOptions{}, func(inspect.Record) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			peak := peakOf(t, run)
			t.Logf("%d KiB", peak>>10)
			if peak > mostForEntries {
				t.Errorf("%d KiB of memory at most", peak>>10)
			}
		})
	}
}

// entriesLog writes segments of small batches, without indexes.
func entriesLog(t *testing.T, segments int) string {
	t.Helper()
	dir, offset, b := filepath.Join(t.TempDir(), "entries-0"), int64(0), new(record.Builder)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for range segments {
		base, data := offset, make([]byte, 0, entriesSegment+1<<10)
		for ; len(data) < entriesSegment; offset++ {
			o := record.DefaultBuilderOptions()
			o.BaseOffset = offset
			b.Reset(o)
			if err := b.Append(1_790_000_000_000+offset, nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			data = append(data, b.Bytes()...)
		}
		if err := os.WriteFile(filepath.Join(dir, segment.Name(base, segment.LogSuffix)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// operations are all operations that read, over the log in a folder; each gets the records of cat.
func operations(t *testing.T, dir string, each func(inspect.Record) error) map[string]func() error {
	fsys, cfg, now := vfs.OS(), commitlog.DefaultConfig(), time.UnixMilli(1_796_000_000_000)
	set, at := settings(t, fsys, nil), target(t, fsys, dir)
	all := []inspect.Target{at}
	find := func(q inspect.Query) func() error {
		return func() error { _, err := inspect.Find(fsys, at, cfg, q, true); return err }
	}
	late, first := int64(1)<<60, int64(0)
	return map[string]func() error{
		"list": func() error {
			o := inspect.ListOptions{Scan: true, Segment: func(inspect.SegmentInfo) error { return nil }}
			_, err := inspect.List(fsys, at, cfg, o)
			return err
		},
		"find":    find(inspect.Query{Time: &late}),
		"offset":  find(inspect.Query{Offset: &first}),
		"largest": find(inspect.Query{Max: true}),
		"cat":     func() error { return inspect.Cat(fsys, at, cfg, inspect.CatOptions{}, each) },
		"statistics": func() error {
			_, err := inspect.Compute(fsys, at, set, now, nil)
			return err
		},
		"transactions": func() error {
			_, err := inspect.Transactions(fsys, at, nil, func(inspect.Transaction) error { return nil })
			return err
		},
		"cache": func() error {
			_, err := inspect.CacheResidency(fsys, at, func(inspect.FileResidency) error { return nil })
			return err
		},
		"verify": func() error {
			_, err := inspect.Verify(context.Background(), fsys, all, inspect.VerifyOptions{Settings: set})
			return err
		},
		"repair": func() error {
			_, err := inspect.Repair(context.Background(), fsys, all, inspect.RepairOptions{Settings: set})
			return err
		},
		"report": func() error {
			return inspect.Report(context.Background(), fsys, all,
				inspect.ReportOptions{Settings: set, Now: now, Zone: time.UTC, MaxPartitions: 1}, io.Discard)
		},
		"export": func() error {
			_, err := inspect.Export(fsys, at, cfg, inspect.Range{}, filepath.Join(t.TempDir(), "out"), now, nil)
			return err
		},
	}
}

// manySegmentsLog writes a log of so many segments of one record, as Kafka would, and returns its folder.
func manySegmentsLog(t *testing.T, n int) string {
	t.Helper()
	dir, b := filepath.Join(t.TempDir(), "many-0"), new(record.Builder)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		offset, at := int64(i), int64(1_790_000_000_000+i)
		o := record.DefaultBuilderOptions()
		o.BaseOffset, o.LeaderEpoch = offset, 0
		b.Reset(o)
		if err := b.Append(at, nil, []byte("value"), nil); err != nil {
			t.Fatal(err)
		}
		times := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(at)), 0)
		for suffix, data := range map[string][]byte{
			segment.LogSuffix: b.Bytes(), segment.IndexSuffix: nil, segment.TimeSuffix: times,
		} {
			if err := os.WriteFile(filepath.Join(dir, segment.Name(offset, suffix)), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// bigLog writes a log and returns its folder.
func bigLog(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	store, err := tidemark.Open(data, tidemark.Options{Config: map[string]string{"segment.bytes": strconv.Itoa(16 << 20)}})
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Create("big", 0)
	if err != nil {
		t.Fatal(err)
	}
	records := make([]tidemark.Record, bigBatch)
	value := []byte(strings.Repeat("v", bigRecord))
	for i := range bigLogBytes / bigRecord / bigBatch {
		for j := range records {
			records[j] = tidemark.Record{Value: value, Time: time.UnixMilli(1_790_000_000_000 + int64(i*bigBatch+j))}
		}
		if _, err := log.Append(records...); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(data, "big-0")
}

// peakOf is the most memory that there was beyond what is there before, garbage of at most a tenth included.
func peakOf(t *testing.T, run func() error) (bytes int64) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	stop := proc.WatchMemory()
	err := run()
	bytes = stop()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
