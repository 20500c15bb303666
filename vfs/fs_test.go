package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// each runs a test on both file systems, in a folder of its own.
func each(t *testing.T, f func(t *testing.T, fsys FS, dir string)) {
	t.Run("os", func(t *testing.T) { f(t, OS(), t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := NewMem()
		if err := m.MkdirAll("/data/x", 0o755); err != nil {
			t.Fatal(err)
		}
		f(t, m, "/data/x")
	})
}

func create(t testing.TB, fsys FS, name, text string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestFileBasics(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "f")
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("abc"), 5); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 9)
		if n, err := f.ReadAt(p, 1); n != 7 || err != io.EOF || string(p[:n]) != "\x00\x00\x00\x00abc" {
			t.Errorf("read %q, %v", p[:n], err)
		}
		if err := errors.Join(f.Truncate(7), f.Truncate(9), f.Sync()); err != nil {
			t.Fatal(err)
		}
		if n, err := f.ReadAt(p[:4], 5); n != 4 || err != nil || string(p[:4]) != "ab\x00\x00" {
			t.Errorf("read %q, %v", p[:n], err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != 9 || info.Name() != "f" || info.IsDir() {
			t.Errorf("stat %v, %v", info, err)
		}
		if err := fsys.Remove(name); err != nil {
			t.Fatal(err)
		}
		if n, err := f.ReadAt(p[:1], 5); n != 1 || err != nil {
			t.Errorf("read of a removed file: %d, %v", n, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(p, 0); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
		if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		a, b, sub := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "s", "u", "b")
		create(t, fsys, b, "bb")
		create(t, fsys, a, "a")
		if err := errors.Join(fsys.MkdirAll(sub, 0o755), fsys.MkdirAll(sub, 0o755), fsys.SyncDir(dir)); err != nil {
			t.Fatal(err)
		}
		create(t, fsys, filepath.Join(sub, "c"), "c")
		if got := names(t, fsys, dir); got != "[a b s]" {
			t.Errorf("folder holds %s", got)
		}
		when := time.UnixMilli(1700000000123)
		if err := errors.Join(fsys.Rename(a, b), fsys.Chtimes(b, when)); err != nil {
			t.Fatal(err)
		}
		info, err := fsys.Stat(b)
		if err != nil || info.Size() != 1 || !info.ModTime().Equal(when) || !info.Mode().IsRegular() {
			t.Errorf("stat %v, %v", info, err)
		}
		for what, err := range map[string]error{
			"stat of the old name":  statErr(fsys, a),
			"remove of no file":     fsys.Remove(a),
			"rename of no file":     fsys.Rename(a, b),
			"open of no file":       openErr(fsys, a, os.O_RDWR),
			"create in no folder":   openErr(fsys, filepath.Join(dir, "n", "f"), os.O_RDWR|os.O_CREATE),
			"sync of no folder":     fsys.SyncDir(filepath.Join(dir, "n")),
			"remove below no file":  fsys.Remove(filepath.Join(dir, "n", "f")),
			"times of no file":      fsys.Chtimes(a, when),
			"listing of no folder":  listErr(fsys, a),
			"rename to a no folder": fsys.Rename(b, filepath.Join(dir, "n", "f")),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := fsys.Remove(filepath.Join(dir, "s")); err == nil {
			t.Error("a folder with files in it was removed")
		}
		if err := openErr(fsys, b, os.O_RDWR|os.O_CREATE|os.O_EXCL); !errors.Is(err, fs.ErrExist) {
			t.Errorf("exclusive creation: %v", err)
		}
		if openErr(fsys, dir, os.O_RDWR) == nil || fsys.Rename(b, filepath.Join(dir, "s")) == nil ||
			fsys.MkdirAll(b, 0o755) == nil {
			t.Error("a folder and a file were taken for each other")
		}
		s := filepath.Join(dir, "s")
		err = errors.Join(fsys.RemoveAll(s), fsys.RemoveAll(s), fsys.Remove(b))
		if got := names(t, fsys, dir); got != "[]" || err != nil {
			t.Errorf("folder holds %s, %v", got, err)
		}
	})
}

func names(t *testing.T, fsys FS, dir string) string {
	t.Helper()
	list, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return fmt.Sprint(out)
}

func statErr(fsys FS, name string) error {
	_, err := fsys.Stat(name)
	return err
}

func listErr(fsys FS, name string) error {
	_, err := fsys.ReadDir(name)
	return err
}

func openErr(fsys FS, name string, flag int) error {
	f, err := fsys.OpenFile(name, flag, 0o644)
	if err == nil {
		err = f.Close()
	}
	return err
}

func TestLockBoth(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, ".lock")
		for range 2 {
			l, err := fsys.Lock(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fsys.Lock(name); !errors.Is(err, ErrLocked) {
				t.Errorf("second lock: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err == nil {
				t.Error("closing twice gave no error")
			}
		}
	})
}

// A file in memory behaves as a slice, whatever is written, cut and synced.
func TestMemFileModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMem()
		f, err := m.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		var model []byte
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				pos, n := rapid.IntRange(0, 10000).Draw(t, "pos"), rapid.IntRange(1, 9000).Draw(t, "n")
				p := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
				if _, err := f.WriteAt(p, int64(pos)); err != nil {
					t.Fatal(err)
				}
				if len(model) < pos+n {
					model = append(model, make([]byte, pos+n-len(model))...)
				}
				copy(model[pos:], p)
			case 2:
				n := rapid.IntRange(0, 20000).Draw(t, "size")
				if err := f.Truncate(int64(n)); err != nil {
					t.Fatal(err)
				}
				model = append(model, make([]byte, max(0, n-len(model)))...)[:n:n]
			case 3:
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadFile(m, "f")
			if err != nil || !bytes.Equal(got, model) {
				t.Fatalf("file differs from the model (%d and %d bytes), %v", len(got), len(model), err)
			}
		}
	})
}
