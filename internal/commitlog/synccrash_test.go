package commitlog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tidemark/vfs/faultfs"
)

// TestCrashesAtEverySync cuts the power before every call that makes something durable or gives a file another name,
// wherever in a step that is: what was durable by then is there, and the log opens.
func TestCrashesAtEverySync(t *testing.T) {
	for name, commands := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			for seed, keep := range []float64{0, 0.5, 1} {
				crashAtSyncs(t, newWorld(smallConfig()), commands, uint64(seed), keep)
			}
		})
	}
}

// TestCrashesWhereAllIsSyncedTogether is the same where flushes sync the file system and not each file.
func TestCrashesWhereAllIsSyncedTogether(t *testing.T) {
	for seed, keep := range []float64{0, 0.5, 1} {
		w := newWorld(smallConfig())
		w.many = 1
		crashAtSyncs(t, w, script, uint64(seed), keep)
	}
}

func crashAtSyncs(t *testing.T, w *world, commands []command, seed uint64, keep float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	step, clones := command{}, 0
	var mu sync.Mutex // several files are synced at a time
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, name string) error {
		if op != faultfs.Sync && op != faultfs.SyncDir && op != faultfs.SyncAll && op != faultfs.Rename {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		clones++
		if err := w.crashNow(rng, keep, step); err != nil {
			t.Errorf("seed %d keep %g: crash before %s %s in %q: %v", seed, keep, op, name, step.name, err)
		}
		return nil
	}))
	for _, step = range commands {
		_, _ = w.run(step) // TestScenarios looks at the outcome
		if t.Failed() {
			return
		}
	}
	if clones < 10 {
		t.Errorf("only %d crashes", clones)
	}
}

// crashNow opens what a power loss leaves at this moment, in the middle of a step. What an append under way has written
// may be there.
func (w *world) crashNow(rng *rand.Rand, keep float64, step command) error {
	after := w.crash(rng, keep)
	durable := int64(0)
	if w.log != nil {
		durable = w.log.RecoveryPoint()
		after.start = max(w.start, min(w.log.StartOffset(), durable))
	}
	if step.name == "truncate" {
		durable = 0 // how far it goes, and how far it has come, TestScenarios and TestCrashes look at
	}
	after.point = min(w.point, durable)
	if err := after.open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() { _ = after.log.Abandon() }()
	if lost := after.visible(after.log.EndOffset(), durable); len(lost) > 0 {
		return fmt.Errorf("what was durable is lost: %v", lost)
	}
	got, err := after.readAround()
	if err != nil {
		return err
	}
	end := int64(0)
	if n := len(w.acked); n > 0 {
		end = w.acked[n-1].offset + 1
	}
	after.truncated(after.log.EndOffset())
	if err := after.compareHoles(slices.DeleteFunc(slices.Clone(got), func(r row) bool { return r.offset >= end }),
		durable); err != nil {
		return err
	}
	return after.checkTimes(got)
}
