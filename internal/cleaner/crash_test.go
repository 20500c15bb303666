package cleaner

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// fillForRounds writes what makes a round interesting: segments that go together, and some that become empty, with
// tombstones, producers, transactions of both ends, and an active segment.
func fillForRounds(w *world) error {
	steps := []func() error{
		func() error { return w.some(-1, record.None, false, kv{"a", value("1")}, kv{"b", value("1")}) },
		func() error {
			return w.some(5, record.Gzip, false, kv{"a", value("2")}, kv{"c", nil}, kv{"d", value("1")})
		},
		w.roll,
		func() error { return w.some(7, record.None, true, kv{"a", value("aborted")}) },
		func() error { return w.some(8, record.None, true, kv{"e", value("1")}) },
		func() error { return w.end(7, false) },
		w.roll,
		func() error { return w.some(-1, record.None, false, kv{"b", value("2")}) },
		w.roll,
		func() error { return w.end(8, true) },
		func() error { return w.some(5, record.None, false, kv{"d", value("2")}, kv{"b", value("3")}) },
		w.roll,
		func() error { return w.some(-1, record.None, false, kv{"z", value("active")}) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) some(id int64, codec record.Codec, transactional bool, rows ...kv) error {
	_, err := w.append(w.batchOptions(id, codec, transactional), rows...)
	return err
}

func (w *world) roll() error { return w.log.Roll() }

// survivors are the records that a round of fillForRounds leaves, by a run without trouble.
func survivors(t *testing.T, passes int) (before, after []row) {
	t.Helper()
	w := newWorld(t, smallLog())
	must(t, w.open())
	must(t, fillForRounds(w))
	before = rows(t, w.log)
	for range passes {
		pass(w)
		must(t, w.log.Roll())
	}
	return before, rows(t, w.log)
}

// checkSurvivors makes sure that a log has all records that must survive, and no others than it had, in order, and that
// nothing of an interrupted round is in the folder.
func checkSurvivors(t *testing.T, w *world, before, after []row) {
	t.Helper()
	got := rows(t, w.log)
	for i, r := range got {
		if i > 0 && r.offset <= got[i-1].offset {
			t.Errorf("offset %d after %d", r.offset, got[i-1].offset)
		}
		if !slices.Contains(before, r) {
			t.Errorf("%v was never written", r)
		}
	}
	for _, r := range after {
		if !slices.Contains(got, r) {
			t.Errorf("%v is lost", r)
		}
	}
	if end := before[len(before)-1].offset + 1; w.log.EndOffset() != end {
		t.Errorf("log end: got %d, want %d", w.log.EndOffset(), end)
	}
	if e, ok := w.log.Producer(5); !ok {
		t.Error("producer 5 is forgotten")
	} else if b, _ := e.LastBatch(); b.LastSequence != 4 {
		t.Errorf("last sequence of producer 5: got %d, want 4", b.LastSequence)
	}
	for _, name := range w.names() {
		if strings.HasSuffix(name, ".swap") || strings.HasSuffix(name, ".cleaned") || strings.HasSuffix(name, ".deleted") {
			t.Errorf("%s is left after a start", name)
		}
	}
}

// TestCrashAtEveryStep loses power before every change of the disk in a round, with different parts of what was not
// synced kept, starts on what is left, and compacts again.
func TestCrashAtEveryStep(t *testing.T) {
	before, after := survivors(t, 1)
	w := newWorld(t, smallLog())
	var clones []*vfs.Mem
	var steps []string
	watching := false
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, name string) error {
		if watching && op.Mutates() {
			for seed := range 4 {
				rng := rand.New(rand.NewPCG(uint64(len(clones)), uint64(seed)))
				clones = append(clones, w.mem.CrashClone(rng, []float64{0, 0.3, 0.7, 1}[seed]))
				steps = append(steps, fmt.Sprintf("%s %s, disk %d", op, strings.TrimPrefix(name, worldDir+"/"), seed))
			}
		}
		return nil
	}))
	must(t, w.open())
	must(t, fillForRounds(w))
	must(t, w.log.Flush())
	watching = true
	if !pass(w) {
		t.Fatal("nothing was compacted")
	}
	watching = false
	if len(clones) < 4*40 {
		t.Fatalf("%d clones", len(clones))
	}
	for i, clone := range clones {
		t.Run(steps[i], func(t *testing.T) {
			c := newWorld(t, smallLog())
			c.mem, c.fs = clone, clone
			c.mem.SetClock(c.clock)
			must(t, c.open())
			checkSurvivors(t, c, before, after)
			pass(c)
			if got := rows(t, c.log); show(got) != show(after) {
				t.Errorf("records after another round: got %s, want %s", show(got), show(after))
			}
			must(t, c.reopen(false))
			checkSurvivors(t, c, before, after)
		})
		if t.Failed() {
			t.Fatalf("files: %v", clone)
		}
	}
}

// TestEveryFailure lets the n-th call to the disk of a round fail, for every n: either the log has failed as a whole,
// or it goes on and is compacted when the disk is well again. What the next start finds is whole.
func TestEveryFailure(t *testing.T) {
	before, after := survivors(t, 1)
	for _, kind := range []struct {
		name string
		full bool
	}{{"error", false}, {"full disk", true}} {
		t.Run(kind.name, func(t *testing.T) {
			for n := int64(1); ; n++ {
				if !failNth(t, n, kind.full, before, after) {
					if n < 20 {
						t.Fatalf("a round makes %d calls only", n)
					}
					return
				}
				if t.Failed() {
					t.Fatalf("with call %d failing", n)
				}
			}
		})
	}
}

// failNth is one run; it is false when the round made fewer calls.
func failNth(t *testing.T, n int64, full bool, before, after []row) bool {
	t.Helper()
	w := newWorld(t, smallLog())
	calls, watching := int64(0), false
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, name string) error {
		if !watching || full && op != faultfs.WriteAt && op != faultfs.Truncate && op != faultfs.Open {
			return nil
		}
		if calls++; calls != n {
			return nil
		}
		if full {
			return &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOSPC}
		}
		return &fs.PathError{Op: string(op), Path: name, Err: faultfs.ErrInjected}
	}))
	must(t, w.open())
	must(t, fillForRounds(w))
	must(t, w.log.Flush())
	watching = true
	done := pass(w)
	watching = false
	if calls < n {
		if !done {
			t.Fatal("nothing was compacted without a failure")
		}
		return false
	}
	if broken := w.c.Uncleanable(); len(broken) > 0 {
		t.Errorf("call %d: a failure of the disk is taken for damage: %v", n, broken[0].Reason)
	}
	_, err := w.append(w.batchOptions(-1, record.None, false), kv{"z", value("active")})
	if err != nil && !errors.Is(err, commitlog.ErrFailed) {
		t.Errorf("append: %v", err)
	}
	if full && err != nil {
		t.Errorf("append after a full disk: %v", err)
	}
	want := before
	if err == nil {
		one := row{offset: before[len(before)-1].offset + 1, ts: w.nowMs, key: "z", value: "active"}
		want = append(slices.Clone(before), one)
	}
	w.fs = w.mem
	must(t, w.reopen(false))
	checkSurvivors(t, w, want, after)
	pass(w)
	w.tick()
	checkSurvivors(t, w, want, after)
	return true
}
