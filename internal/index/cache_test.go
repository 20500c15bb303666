package index

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tidemark/vfs"
)

// countingFS counts descriptors that are open.
type countingFS struct {
	vfs.FS
	mu        sync.Mutex
	open, top int
}

type countedFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.top = max(c.top, c.open)
	return countedFile{f, c}, nil
}

func (f countedFile) Close() error {
	f.fs.mu.Lock()
	f.fs.open--
	f.fs.mu.Unlock()
	return f.File.Close()
}

// 5000 partitions with three active files each, under a limit of 64 descriptors:
// every write arrives, however often the descriptors went.
func TestManyFilesFewDescriptors(t *testing.T) {
	const partitions, limit, rounds = 5000, 64, 3
	fsys := &countingFS{FS: vfs.NewMem()}
	const dir = "/"
	c := NewFileCache(fsys, limit)
	var files []*File
	for i := range partitions {
		for _, suffix := range []string{"log", "index", "timeindex"} {
			files = append(files, c.File(filepath.Join(dir, fmt.Sprintf("%d.%s", i, suffix)), os.O_RDWR|os.O_CREATE))
		}
	}
	for round := range byte(rounds) {
		for _, f := range files {
			if _, err := f.WriteAt([]byte{round + 1}, int64(round)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, f := range files {
		var b [rounds]byte
		if n, err := f.ReadAt(b[:], 0); n != rounds || b != [rounds]byte{1, 2, 3} {
			t.Fatalf("%s: % x %v", f.Name(), b, err)
		}
		if i%100 == 0 {
			must(t, f.Sync())
		}
	}
	// One descriptor more is open while the one that makes room for it is closed.
	if s := c.Stats(); s.Open > limit || fsys.top > limit+1 || s.Evictions == 0 {
		t.Errorf("%+v, at most %d open", s, fsys.top)
	}
	for _, f := range files {
		must(t, f.Close())
	}
	if s := c.Stats(); s.Open != 0 || fsys.open != 0 {
		t.Errorf("%+v, %d open after closing", s, fsys.open)
	}
}

// A file in use stays open, beyond the limit if need be.
func TestPinnedFilesStay(t *testing.T) {
	c := NewFileCache(vfs.OS(), 1)
	dir := t.TempDir()
	a := c.File(filepath.Join(dir, "a"), os.O_RDWR|os.O_CREATE)
	b := c.File(filepath.Join(dir, "b"), os.O_RDWR|os.O_CREATE)
	fa, err := a.Acquire()
	must(t, err)
	fb, err := b.Acquire()
	must(t, err)
	if c.Stats().Open != 2 {
		t.Errorf("%+v", c.Stats())
	}
	must(t, a.Close())
	if _, err := fa.WriteAt([]byte("x"), 0); err != nil {
		t.Errorf("closed while in use: %v", err)
	}
	a.Release()
	if _, err := fa.WriteAt([]byte("x"), 0); err == nil {
		t.Error("still open after the last user released it")
	}
	if _, err := fb.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	b.Release()
	if s := c.Stats(); s.Open != 1 {
		t.Errorf("%+v", s)
	}
}

// A file that was removed does not come back.
func TestNoResurrection(t *testing.T) {
	c := NewFileCache(vfs.OS(), 1)
	f := c.File(filepath.Join(t.TempDir(), "a"), os.O_RDWR|os.O_CREATE)
	_, err := f.WriteAt([]byte("x"), 0)
	must(t, err)
	must(t, f.Close())
	must(t, os.Remove(f.Name()))
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("created again")
	}
}

func TestPageCacheBound(t *testing.T) {
	const limit = 1 << 20
	c := NewCache(limit)
	for i := range int64(2000) {
		c.put(pageKey{1, i}, bytes.Repeat([]byte{byte(i)}, pageBytes))
	}
	s := c.Stats()
	if s.SizeBytes > limit || s.SizeBytes < limit*9/10 || s.Evictions == 0 {
		t.Errorf("%+v", s)
	}
	var hits int64
	for i := range int64(2000) {
		if data, ok := c.get(pageKey{1, i}, pageBytes); ok {
			hits++
			if data[17] != byte(i) {
				t.Fatalf("page %d has the bytes of another", i)
			}
		}
	}
	if s := c.Stats(); s.Hits != hits || s.Misses != 2000-hits || hits == 0 {
		t.Errorf("%+v, %d hits", s, hits)
	}
	none := NewCache(0)
	none.put(pageKey{1, 1}, make([]byte, 8))
	if _, ok := none.get(pageKey{1, 1}, 8); ok {
		t.Error("a cache of no bytes holds a page")
	}
}

// A page that an active index has filled up further is read again, and its longer
// form kept.
func TestPageGrows(t *testing.T) {
	o := testOptions(t, "x.index", 0, 1<<16)
	x := OpenOffsetIndex(o)
	for i := int64(1); i <= 1000; i++ {
		must(t, x.Append(i, i))
		if e, ok, err := x.Lookup(i); err != nil || !ok || e.Offset != i {
			t.Fatal(i, e, ok, err)
		}
	}
	before := o.Pages.Stats()
	for range 100 {
		if _, _, err := x.Lookup(999); err != nil {
			t.Fatal(err)
		}
	}
	after := o.Pages.Stats()
	if after.Misses != before.Misses || after.Hits == before.Hits || after.SizeBytes > 3*pageBytes {
		t.Errorf("%+v, then %+v", before, after)
	}
}

// A look-up in a large sealed index touches few pages.
func TestLookupTouchesFewPages(t *testing.T) {
	const n = 200_000
	o := testOptions(t, "x.index", 0, 8*n)
	data := make([]byte, 8*n)
	for i := range int64(n) {
		OffsetEntry{Offset: 3 * i, Pos: 1 + i}.encode(data[8*i:], 0)
	}
	must(t, os.WriteFile(o.Name, data, 0o644))
	x := OpenOffsetIndex(o)
	if _, err := x.Len(); err != nil {
		t.Fatal(err)
	}
	before := o.Pages.Stats()
	if e, _, err := x.Lookup(3*123_456 + 2); err != nil || e.Pos != 123_457 {
		t.Fatal(e, err)
	}
	// 391 pages: 9 steps to one of them, two looks at the warm part and the head.
	if got := o.Pages.Stats().Misses - before.Misses; got > 12 {
		t.Errorf("%d pages read", got)
	}
}

// TestNotes: a note is found at its position until it is cleared or pushed out, and a longer one takes its place.
func TestNotes(t *testing.T) {
	c := NewCache(64 << 10)
	var a, b, none Notes
	a.Open(c)
	b.Open(c)
	for _, n := range []*Notes{&a, &b, &none} {
		n.Put(n.Edition(), 7, []byte("seven"))
		n.Put(n.Edition(), 7, []byte("at seven"))
		n.Put(n.Edition(), 7, []byte("short"))
	}
	b.Put(b.Edition(), 7, []byte("of the other"))
	if got := a.Get(a.Edition(), 7); string(got) != "at seven" || a.Get(a.Edition(), 8) != nil || none.Get(0, 7) != nil {
		t.Errorf("%q", got)
	}
	before := a.Edition()
	a.Clear()
	a.Put(before, 8, []byte("too late"))
	if a.Get(a.Edition(), 7) != nil || a.Get(a.Edition(), 8) != nil || string(b.Get(b.Edition(), 7)) != "of the other" {
		t.Error("notes were not cleared, or those of another file were")
	}
	for i := range int64(1000) {
		a.Put(a.Edition(), i, make([]byte, 1000))
	}
	if s := c.Stats(); s.SizeBytes > 64<<10 || s.Evictions == 0 || s.Hits+s.Misses != 0 {
		t.Errorf("%+v", s)
	}
}
