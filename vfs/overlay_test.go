package vfs

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOverlay makes the same random changes to an overlay and to a file system in memory: both must show the same
// files, and the base must stay as it was.
func TestOverlay(t *testing.T) {
	base, model := NewMem(), NewMem()
	for _, m := range []*Mem{base, model} {
		for _, name := range []string{"/d/a", "/d/b", "/d/c"} {
			if err := m.MkdirAll("/d", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := WriteFileAtomic(m, name, []byte(strings.Repeat(name, 3000))); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := contents(t, base)
	over := Overlay(base)
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 2000 {
		change := randomChange(rng)
		got, want := change(over), change(model)
		if (got == nil) != (want == nil) || errors.Is(got, fs.ErrNotExist) != errors.Is(want, fs.ErrNotExist) {
			t.Fatalf("step %d: overlay says %v, memory %v", step, got, want)
		}
		if step%50 == 0 || step > 1990 {
			if got, want := contents(t, over), contents(t, model); got != want {
				t.Fatalf("step %d: the overlay differs", step)
			}
		}
	}
	if contents(t, base) != before {
		t.Error("the base was changed")
	}
}

func randomChange(rng *rand.Rand) func(FS) error {
	name := "/d/" + string(rune('a'+rng.IntN(5)))
	other := "/d/" + string(rune('a'+rng.IntN(5)))
	pos, size, flag := rng.Int64N(30000), rng.Int64N(30000), os.O_RDWR
	data := []byte(strings.Repeat(string(rune('A'+rng.IntN(26))), rng.IntN(9000)))
	if rng.IntN(2) == 0 {
		flag |= os.O_CREATE
	}
	switch rng.IntN(5) {
	case 0:
		return func(f FS) error { return f.Remove(name) }
	case 1:
		return func(f FS) error {
			if name == other {
				return nil
			}
			return f.Rename(name, other)
		}
	case 2:
		return func(f FS) error { return onFile(f, name, flag, func(h File) error { return h.Truncate(size) }) }
	}
	return func(f FS) error {
		return onFile(f, name, flag, func(h File) error { _, err := h.WriteAt(data, pos); return err })
	}
}

func onFile(f FS, name string, flag int, do func(File) error) error {
	h, err := f.OpenFile(name, flag, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(do(h), h.Close())
}

func contents(t *testing.T, f FS) string {
	t.Helper()
	entries, err := f.ReadDir("/d")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, e := range entries {
		data, err := ReadFile(f, filepath.Join("/d", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(e.Name() + "\n" + string(data) + "\n")
	}
	return out.String()
}

func TestLocked(t *testing.T) {
	for name, f := range map[string]FS{"os": OS(), "memory": NewMem(), "overlay": Overlay(NewMem())} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := f.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, ".lock")
			if l, err := Locked(f, file); l != nil || err != nil {
				t.Fatalf("absent file: %v, %v", l, err)
			}
			if _, err := f.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal("asking made the file")
			}
			if name == "overlay" {
				return
			}
			l, err := f.Lock(file)
			if err != nil {
				t.Fatal(err)
			}
			if held, err := Locked(f, file); held == nil || err != nil {
				t.Fatalf("held lock: %v, %v", held, err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if held, err := Locked(f, file); held != nil || err != nil {
				t.Fatalf("after release: %v, %v", held, err)
			}
		})
	}
}

// TestOverlayRenamesItsFolders moves a folder that was made in the overlay, with what is in it.
func TestOverlayRenamesItsFolders(t *testing.T) {
	o := Overlay(OS())
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(o.MkdirAll(filepath.Join(dir, "a.part", "deep"), 0o755))
	create(t, o, filepath.Join(dir, "a.part", "file"), "one")
	create(t, o, filepath.Join(dir, "a.part", "deep", "file"), "two")
	must(o.Rename(filepath.Join(dir, "a.part"), filepath.Join(dir, "a")))
	for name, want := range map[string]string{"a/file": "one", "a/deep/file": "two"} {
		got, err := ReadFile(o, filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if entries, err := o.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	if _, err := o.Stat(filepath.Join(dir, "a.part", "file")); err == nil {
		t.Error("the old folder is there")
	}
}

// TestOverlayForgets opens files for writing without a change, and forgets one that was changed.
func TestOverlayForgets(t *testing.T) {
	base := NewMem()
	if err := errors.Join(base.MkdirAll("/d", 0o755), WriteFileAtomic(base, "/d/a", []byte("old"))); err != nil {
		t.Fatal(err)
	}
	over := Overlay(base).(*overlay)
	f, err := over.OpenFile("/d/a", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := over.OpenFile("/d/a", os.O_RDWR, 0)
	if err := errors.Join(err, f.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if n := len(over.folders["/d"]); n != 0 {
		t.Errorf("%d files are kept that were only looked at", n)
	}
	if err := WriteFileAtomic(over, "/d/a", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(over, "/d/a"); string(got) != "new" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if Forget(base, "/d/a") || Forget(over, "/d/b") || !Forget(over, "/d/a") {
		t.Error("wrong about what there is to forget")
	}
	if got, err := ReadFile(over, "/d/a"); string(got) != "old" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if err := over.Rename("/d/a", "/d/b"); err != nil {
		t.Fatal(err)
	}
	if Forget(over, "/d/b") {
		t.Error("a file with another name was forgotten")
	}
}

// TestEachEntry lists folders of every kind of file system.
func TestEachEntry(t *testing.T) {
	dir, mem := t.TempDir(), NewMem()
	if err := mem.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, fsys := range []FS{OS(), mem} {
		if err := WriteFileAtomic(fsys, filepath.Join(dir, "a"), nil); err != nil {
			t.Fatal(err)
		}
		over := Overlay(fsys)
		list := func(fsys FS) (names string, err error) {
			err = EachEntry(fsys, dir, func(e fs.DirEntry) error { names += e.Name(); return nil })
			return names, err
		}
		for _, f := range []FS{fsys, over} {
			if got, err := list(f); got != "a" || err != nil {
				t.Errorf("%T: %q, %v", f, got, err)
			}
			if err := EachEntry(f, dir+"/none", nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%T: %v", f, err)
			}
		}
		if err := WriteFileAtomic(over, filepath.Join(dir, "b"), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := list(over); got != "ab" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}
