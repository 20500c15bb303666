package commitlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// claimWorlds are folders without seals whose segments are passed over by what their time indexes claim: of rising
// times, with times that go back within a segment, and with an outlier, in the first segment's middle or at its end.
func claimWorlds(t *testing.T) map[string]*world {
	worlds := make(map[string]*world)
	for name, times := range map[string][]int64{
		"rising":         {0, 10, 20, 1000, 1010, 1020, 2000, 2010, 2020, 3000, 3010},
		"back within":    {0, 20, 10, 1000, 1020, 1010, 2020, 2010, 2000, 3000, 3010},
		"outlier inside": {0, 90_000, 20, 1000, 1010, 1020, 2000, 2010, 2020, 3000, 3010},
		"outlier last":   {0, 10, 90_000, 1000, 1010, 1020, 2000, 2010, 2020, 3000, 3010},
		"all the same":   {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		cfg := smallConfig()
		cfg.IndexIntervalBytes, cfg.SegmentBytes = 0, 1<<20
		w := newWorld(cfg)
		must(t, w.open())
		for i, ms := range times {
			if i > 0 && i%3 == 0 {
				must(t, w.log.Roll())
			}
			_, err := w.append(record.None, -1, []row{{ts: t0 + ms, value: "v"}})
			must(t, err)
		}
		must(t, w.close())
		must(t, w.mem.Remove(worldDir+"/"+SealsFile))
		worlds[name] = w
	}
	return worlds
}

// TestPassOver looks up every time in folders with intact and with damaged time indexes: one flipped bit of any byte,
// entries cut off, zeros, no file, in one segment and in all of them. The answer is always that of the log.
func TestPassOver(t *testing.T) {
	damages := map[string]func(b []byte) []byte{
		"none": func(b []byte) []byte { return b },
		"gone": func([]byte) []byte { return nil },
		"torn": func(b []byte) []byte { return b[:len(b)-5] },
		"zero": func(b []byte) []byte { return make([]byte, len(b)) },
		"less": func(b []byte) []byte { return b[:max(len(b)-12, 0)] },
		"one":  func(b []byte) []byte { return b[:min(len(b), 12)] },
		"more": func(b []byte) []byte { return append(bytes.Clone(b), b[len(b)-12:]...) },
		"tail": func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 24)...) },
		"fits": func(b []byte) []byte { // between the segments around it
			b = bytes.Clone(b)
			if n := len(b) - 12; n >= 12 {
				binary.BigEndian.PutUint64(b[n:], binary.BigEndian.Uint64(b[n-12:])+1)
			}
			return b
		},
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	for at := 0; at < 36; at += step {
		damages[fmt.Sprintf("bit flip in byte %d", at)] = func(b []byte) []byte {
			b = bytes.Clone(b)
			if at < len(b) {
				b[at] ^= 1 << (at % 3)
			}
			return b
		}
	}
	for name, w := range claimWorlds(t) {
		indexes := files(t, w.mem, worldDir)
		for file := range indexes {
			if !strings.HasSuffix(file, segment.TimeSuffix) {
				delete(indexes, file)
			}
		}
		for damage, change := range damages {
			for file, content := range indexes {
				must(t, spoilFile(w.mem, file, change([]byte(content))))
				must(t, w.checkPassOver(name, damage, file))
				must(t, spoilFile(w.mem, file, []byte(content)))
			}
			for file, content := range indexes {
				must(t, spoilFile(w.mem, file, change([]byte(content))))
			}
			must(t, w.checkPassOver(name, damage, "all"))
			for file, content := range indexes {
				must(t, spoilFile(w.mem, file, []byte(content)))
			}
		}
	}
}

func spoilFile(fsys vfs.FS, file string, content []byte) error {
	if content == nil {
		return fsys.Remove(worldDir + "/" + file)
	}
	return vfs.WriteFileAtomic(fsys, worldDir+"/"+file, content)
}

// checkPassOver looks each time up in a log of its own.
func (w *world) checkPassOver(what ...string) error {
	for i, r := range append(slices.Clone(w.acked), row{ts: 0}, row{ts: 1 << 60}) {
		ts := r.ts + int64(i%2)
		l, err := OpenTolerant(Options{FS: w.mem, Dir: worldDir, Topic: "t", Config: w.cfg})
		if err != nil {
			return err
		}
		if err := l.PassOver(ts); err != nil {
			return err
		}
		found, ok, err := l.OffsetForTime(ts, l.EndOffset(), nil)
		if err != nil {
			return err
		}
		want := slices.IndexFunc(w.acked, func(r row) bool { return r.ts >= ts })
		if ok != (want >= 0) || ok && found.Offset != w.acked[want].offset {
			return fmt.Errorf("%q: look up %d: %v %+v, records %v", what, ts-t0, ok, found, w.acked)
		}
		if err := l.Abandon(); err != nil {
			return err
		}
	}
	return nil
}

// TestPassOverReadsLittle proves that intact, rising segments are passed over by their time indexes alone.
func TestPassOverReadsLittle(t *testing.T) {
	w := claimWorlds(t)["rising"]
	fsys := &openCounter{FS: w.mem}
	l, err := OpenTolerant(Options{FS: fsys, Dir: worldDir, Topic: "t", Config: w.cfg})
	must(t, err)
	fsys.opened = nil
	must(t, l.PassOver(t0+2005))
	slices.Sort(fsys.opened)
	want := []string{ // each file once; of the segment that is not passed over only the claim
		segment.Name(0, segment.IndexSuffix), segment.Name(0, segment.LogSuffix), segment.Name(0, segment.TimeSuffix),
		segment.Name(3, segment.IndexSuffix), segment.Name(3, segment.LogSuffix), segment.Name(3, segment.TimeSuffix),
		segment.Name(6, segment.TimeSuffix),
	}
	if !slices.Equal(fsys.opened, want) {
		t.Errorf("opened %q, want %q", fsys.opened, want)
	}
	must(t, l.Abandon())
}

// openCounter notes the names of the files that are opened.
type openCounter struct {
	vfs.FS
	mu     sync.Mutex
	opened []string
}

func (c *openCounter) Open(name string) (vfs.File, error) { return c.OpenFile(name, os.O_RDONLY, 0) }

func (c *openCounter) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	c.mu.Lock()
	c.opened = append(c.opened, filepath.Base(name))
	c.mu.Unlock()
	return c.FS.OpenFile(name, flag, perm)
}
