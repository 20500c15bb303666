package commitlog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// TestStartLooksAtTheLastSegmentOnly counts what a start after a clean stop asks of the disk.
func TestStartLooksAtTheLastSegmentOnly(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	for i := range int64(400) {
		_, err := w.append(0, -1, []row{{ts: 1000 + i, value: strings.Repeat("v", 300)}})
		must(t, err)
	}
	must(t, w.close())
	last := ""
	for name := range files(t, w.mem, worldDir) {
		if strings.HasSuffix(name, ".log") && name > last {
			last = name
		}
	}
	calls := make(map[string]int)
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, name string) error {
		base, _, numbered := splitName(filepath.Base(name))
		if numbered && fmt.Sprintf("%020d.log", base) != last && !strings.HasSuffix(name, ".snapshot") {
			t.Errorf("a start calls %s %s", op, name)
		}
		calls[string(op)]++
		return nil
	}))
	must(t, w.open())
	if calls["ReadDir"]+calls["readdir"] > 1 {
		t.Errorf("the folder was listed more than once: %v", calls)
	}
	total := 0
	for _, n := range calls {
		total += n
	}
	if total > 40 {
		t.Errorf("%d calls: %v", total, calls)
	}
	t.Logf("calls: %v", calls)
	w.fs = w.mem
	must(t, w.log.Abandon())
}

// TestManySegmentsFewDescriptors visits every segment of a log with a small descriptor cache.
func TestManySegmentsFewDescriptors(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	for i := range int64(600) {
		_, err := w.append(0, -1, []row{{ts: 1000 + i, value: strings.Repeat("v", 900)}})
		must(t, err)
	}
	must(t, w.close())
	open, most := 0, 0
	w.fs = countingFS{w.mem, &open, &most}
	must(t, w.open())
	must(t, w.check())
	if len(w.log.view.Load().segments) != 600 || most > 12 {
		t.Errorf("%d segments, at most %d descriptors at once", len(w.log.view.Load().segments), most)
	}
	must(t, w.log.Abandon())
	if open != 0 {
		t.Errorf("%d descriptors left open", open)
	}
}

// countingFS counts open files.
type countingFS struct {
	vfs.FS
	open, most *int
}

type countingFile struct {
	vfs.File
	open *int
}

func (c countingFS) Open(name string) (vfs.File, error) { return c.OpenFile(name, os.O_RDONLY, 0) }

func (c countingFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	*c.open++
	*c.most = max(*c.most, *c.open)
	return countingFile{f, c.open}, nil
}

func (f countingFile) Close() error {
	*f.open--
	return f.File.Close()
}
