package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestReadGenerated uses every operation that reads on folders with changes of every kind. None fails. As long as the
// logs are what they were, all answers are, whatever happened to the files beside them; else a look-up gives a record
// that fits.
func TestReadGenerated(t *testing.T) {
	for name, tree := range map[string]golden.Tree{
		"10-clean-intact": golden.Before, "06-transactions-all-decided": golden.Dir0, "11-legacy-v1": golden.Dir0,
	} {
		t.Run(name, func(t *testing.T) {
			base, dir := load(t, golden.Load(t, name), tree)
			whole := readEverything(t, vfs.Overlay(base), dir, nil)
			eachChange(t, base, dir, 10, 64, func(fsys vfs.FS, file, what string, _ []byte) {
				got := readEverything(t, fsys, dir, whole.times)
				if !strings.HasSuffix(file, ".log") && got.text != whole.text {
					t.Errorf("%s, %s: other answers: %s", file, what, firstDifference(got.text, whole.text))
				}
			})
		})
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: %s, not %s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, not %d", len(a), len(b))
}

// everything is what the operations answered.
type everything struct {
	text  string
	times []int64 // of the records
}

// readEverything uses every operation that reads; times are looked up, or those of the records when there are none.
func readEverything(t *testing.T, fsys vfs.FS, dir string, times []int64) everything {
	t.Helper()
	at, cfg, out := target(t, fsys, dir), commitlog.DefaultConfig(), everything{times: times}
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := inspect.List(fsys, at, cfg, inspect.ListOptions{Scan: true})
	check("list", err)
	for _, committed := range []bool{false, true} {
		var b bytes.Buffer
		check("cat", inspect.Cat(fsys, at, cfg, inspect.CatOptions{Committed: committed}, func(r inspect.Record) error {
			fmt.Fprintf(&b, "%+v\n", r)
			if times == nil && !committed && r.Timestamp >= 0 {
				out.times = append(out.times, r.Timestamp, r.Timestamp+1)
			}
			return nil
		}))
		out.text += hash(b.Bytes()) + "\n"
	}
	for i, ts := range out.times {
		if i%23 == 0 || i == len(out.times)-1 {
			f, err := inspect.Find(fsys, at, cfg, inspect.Query{Time: &ts}, i%2 == 0)
			check("find", err)
			out.found(t, f)
			if f.Record != nil && f.Record.Timestamp < ts {
				t.Errorf("time %d is answered by %+v", ts, f.Record)
			}
		}
	}
	f, err := inspect.Find(fsys, at, cfg, inspect.Query{Max: true}, false)
	check("find the largest", err)
	out.found(t, f)
	for offset := f.Start; offset < f.End; offset += 41 {
		f, err := inspect.Find(fsys, at, cfg, inspect.Query{Offset: &offset}, true)
		check("find an offset", err)
		out.found(t, f)
	}
	var txns bytes.Buffer
	_, err = inspect.Transactions(fsys, at, nil, func(x inspect.Transaction) error {
		fmt.Fprintf(&txns, "%+v\n", x)
		return nil
	})
	check("transactions", err)
	out.text += hash(txns.Bytes()) + "\n"
	s := settings(t, fsys, nil)
	check("report", inspect.Report(context.Background(), fsys, []inspect.Target{at}, inspect.ReportOptions{
		Settings: s, Zone: time.UTC, Now: time.UnixMilli(1_796_000_000_000),
	}, new(bytes.Buffer)))
	copied, err := inspect.Export(fsys, at, cfg, inspect.Range{}, "/out", time.UnixMilli(1_796_000_000_000), nil)
	check("export", err)
	for _, f := range verify(t, fsys, copied.Dir) {
		if f.Kind == inspect.BadChecksum || f.Kind == inspect.BadBatch || strings.Contains(string(f.Kind), "index") {
			t.Errorf("the exported folder: %s", texts([]inspect.Finding{f}))
		}
	}
	return out
}

func (e *everything) found(t *testing.T, f *inspect.Found) {
	t.Helper()
	if (f.Record != nil) != (f.Type == "found") {
		t.Errorf("%s with %+v", f.Type, f.Record)
	}
	e.text += f.Type
	if f.Record != nil {
		e.text += fmt.Sprintf(" %d %d", f.Record.Offset, f.Record.Timestamp)
	}
	e.text += "\n"
}
