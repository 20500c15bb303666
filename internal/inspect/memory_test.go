package inspect_test

import (
	"context"
	"io"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark"
	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
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
	dir, fsys := bigLog(t), vfs.OS()
	cfg, set, now := commitlog.DefaultConfig(), settings(t, fsys, nil), time.UnixMilli(1_796_000_000_000)
	at := target(t, fsys, dir)
	all := []inspect.Target{at}
	seen := 0
	for name, run := range map[string]func() error{
		"list": func() error { _, err := inspect.List(fsys, at, cfg, inspect.ListOptions{Scan: true}); return err },
		"cat": func() error {
			return inspect.Cat(fsys, at, cfg, inspect.CatOptions{}, func(inspect.Record) error { seen++; return nil })
		},
		"statistics": func() error { _, err := inspect.Compute(fsys, at, set, now, nil); return err },
		"transactions": func() error {
			_, err := inspect.Transactions(fsys, at, nil, func(inspect.Transaction) error { return nil })
			return err
		},
		"verify": func() error {
			_, err := inspect.Verify(context.Background(), fsys, all, inspect.VerifyOptions{Settings: set,
				Report: func(f inspect.Finding) { t.Errorf("finding in %s: %s", f.File, f.What) }})
			return err
		},
		"repair": func() error {
			_, err := inspect.Repair(context.Background(), fsys, all, inspect.RepairOptions{Settings: set})
			return err
		},
		"report": func() error {
			return inspect.Report(context.Background(), fsys, all,
				inspect.ReportOptions{Settings: set, Now: now, Zone: time.UTC}, io.Discard)
		},
		"export": func() error {
			_, err := inspect.Export(fsys, at, cfg, inspect.Range{}, filepath.Join(t.TempDir(), "out"), now, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			peak, err := peakMemory(run)
			if err != nil {
				t.Fatal(err)
			}
			if peak > mostMemory {
				t.Errorf("%d MiB of memory at most, for a log of %d MiB", peak>>20, bigLogBytes>>20)
			}
		})
	}
	if want := bigLogBytes / bigRecord / bigBatch * bigBatch; seen != want {
		t.Errorf("%d records were read, want %d", seen, want)
	}
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

// peakMemory is the most memory that there was beyond what is there before, garbage of at most a tenth included.
func peakMemory(run func() error) (bytes int64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	stop := proc.WatchMemory()
	err = run()
	return stop(), err
}
