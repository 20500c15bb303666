package commitlog

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"tidemark/vfs"
)

// preallocated appends to a log of preallocated segments, rolls twice and leaves the files as a kill leaves them.
func preallocated(t *testing.T) *world {
	t.Helper()
	c := smallConfig()
	c.Preallocate, c.SegmentBytes = true, 4096
	w := newWorld(c)
	must(t, w.open())
	for i := range int64(3) {
		_, err := w.append(0, -1, []row{{ts: 1000 + i, value: "v"}})
		must(t, err)
		if i < 2 {
			must(t, w.log.Roll())
		}
	}
	return w
}

func grow(t *testing.T, fsys vfs.FS, name string, size int64) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	must(t, f.Truncate(size))
	must(t, f.Close())
}

// TestKillInARollLeavesNothing starts on what a kill in the middle of a roll leaves of preallocated segments: the new
// one holds zeros, the old one is not trimmed yet. Nothing is kept of it, and nothing is warned of.
func TestKillInARollLeavesNothing(t *testing.T) {
	for _, trimmed := range []bool{true, false} {
		var logged bytes.Buffer
		w := preallocated(t)
		end := w.log.EndOffset()
		must(t, w.log.Abandon())
		w.clean, w.logger = false, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		grow(t, w.mem, worldDir+"/00000000000000000003.log", 4096)
		if trimmed {
			info, err := w.mem.Stat(worldDir + "/00000000000000000001.log")
			must(t, err)
			grow(t, w.mem, worldDir+"/00000000000000000002.log", info.Size())
		}
		must(t, w.open())
		if w.log.EndOffset() != end {
			t.Errorf("trimmed %v: the log ends at %d, want %d", trimmed, w.log.EndOffset(), end)
		}
		must(t, w.check())
		for name := range files(t, w.mem, worldDir) {
			if strings.Contains(name, "cut-") {
				t.Errorf("trimmed %v: %s was kept", trimmed, name)
			}
		}
		if logged.Len() > 0 {
			t.Errorf("trimmed %v: %s", trimmed, logged.String())
		}
		must(t, w.close())
	}
}
