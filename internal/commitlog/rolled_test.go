package commitlog

import (
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs/faultfs"
)

// openQueued opens the world's log with a queue for what is done in the background, and counts the syncs.
func openQueued(t *testing.T, w *world, many int) (queue *[]func(), syncs, whole *int) {
	t.Helper()
	queue, syncs, whole = new([]func()), new(int), new(int)
	var mu sync.Mutex // several files are synced at a time; who reads the counts waits for all of them
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		switch op {
		case faultfs.Sync, faultfs.SyncDir:
			*syncs++
		case faultfs.SyncAll:
			*whole++
		}
		return nil
	}))
	w.many = many
	syncAll, err := w.syncAll()
	must(t, err)
	w.log, err = Open(Options{
		FS: w.fs, Dir: worldDir, Topic: "t", Config: w.cfg, Clock: w.clock, Clean: true, SyncAll: syncAll, Many: many,
		Files: index.NewFileCache(w.fs, 4), Pages: index.NewCache(64 << 10),
		Background: func(task func()) { *queue = append(*queue, task) },
		After:      func(_ time.Duration, task func()) { w.later = append(w.later, task) },
	})
	must(t, err)
	return queue, syncs, whole
}

func rollTimes(t *testing.T, w *world, n int) {
	t.Helper()
	for range n {
		_, err := w.append(record.None, -1, []row{{ts: 1000, value: "v"}})
		must(t, err)
		must(t, w.log.Roll())
	}
}

// TestRollsAreMadeDurableTogether: many rolls are one task of the background, which syncs the file system once.
func TestRollsAreMadeDurableTogether(t *testing.T) {
	w := newWorld(smallConfig())
	queue, syncs, whole := openQueued(t, w, 8)
	rollTimes(t, w, 20)
	if len(*queue) != 1 || w.log.RecoveryPoint() != 0 {
		t.Fatalf("%d tasks, recovery point %d, want 1 and 0", len(*queue), w.log.RecoveryPoint())
	}
	*syncs = 0
	(*queue)[0]()
	if w.log.RecoveryPoint() != 20 || *whole == 0 || *syncs > 4 {
		t.Errorf("recovery point %d after %d syncs of all and %d others, want 20, some, 4 at most",
			w.log.RecoveryPoint(), *whole, *syncs)
	}
	if n, _ := w.log.Proven(); n < 20 {
		t.Errorf("%d segments are proven, want 20", n)
	}
	rollTimes(t, w, 1)
	if len(*queue) != 2 {
		t.Errorf("a roll after the task has %d tasks, want 2", len(*queue))
	}
	must(t, w.log.Close())
}

// TestCloseMakesRollsDurable: a stop comes before the background's turn, which then finds nothing to do.
func TestCloseMakesRollsDurable(t *testing.T) {
	w := newWorld(smallConfig())
	queue, _, _ := openQueued(t, w, 0)
	rollTimes(t, w, 5)
	must(t, w.log.Close())
	if w.log.RecoveryPoint() != 5 {
		t.Errorf("recovery point %d, want 5", w.log.RecoveryPoint())
	}
	(*queue)[0]()
	seals, err := ReadSeals(w.mem, worldDir)
	if must(t, err); len(seals) != 5 {
		t.Errorf("%d seals, want 5", len(seals))
	}
}

// TestDeletedSegmentsAreRemovedAtAPace: no step removes many files.
func TestDeletedSegmentsAreRemovedAtAPace(t *testing.T) {
	w := newWorld(smallConfig())
	w.cfg.RetentionMs = 1000
	queue, _, _ := openQueued(t, w, 8)
	const n = 3*removedAtOnce + 1
	rollTimes(t, w, n)
	(*queue)[0]()
	w.log.UpdateHighWatermark(w.log.EndOffset())
	got, err := w.log.DeleteOldSegments(time.UnixMilli(10_000))
	if must(t, err); got != n {
		t.Fatalf("%d deleted, want %d", got, n)
	}
	deleted := func() (count int) {
		for name := range files(t, w.mem, worldDir) {
			if strings.HasSuffix(name, segment.LogSuffix+segment.DeletedSuffix) {
				count++
			}
		}
		return count
	}
	steps, before := 0, deleted()
	if before != n {
		t.Fatalf("%d logs wait for their removal, want %d", before, n)
	}
	for len(w.later) > 0 {
		task := w.later[0]
		w.later = w.later[1:]
		task()
		if now := deleted(); before-now > removedAtOnce {
			t.Fatalf("%d segments were removed at once", before-now)
		} else {
			before = now
		}
		steps++
	}
	if before != 0 || steps < 4 {
		t.Errorf("%d logs are left after %d steps, want 0 after 4 or more", before, steps)
	}
	must(t, w.log.Close())
}
