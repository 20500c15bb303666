package faultfs

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"tidemark/vfs"
)

// A file that is replaced atomically holds the old or the new text, whichever
// call fails.
func TestEachFailure(t *testing.T) {
	var disk *vfs.Mem
	runs, renamed := 0, 0
	fresh := func() vfs.FS {
		disk = vfs.NewMem()
		if err := vfs.WriteFileAtomic(disk, "c", []byte("old")); err != nil {
			t.Fatal(err)
		}
		return disk
	}
	EachFailure(t, fresh, func(fsys vfs.FS) error {
		runs++
		err := vfs.WriteFileAtomic(fsys, "c", []byte("new"))
		got, readErr := vfs.ReadFile(disk, "c")
		if readErr != nil {
			return readErr
		}
		if string(got) != "old" && string(got) != "new" || (err == nil) != (string(got) == "new") {
			if string(got) == "new" {
				renamed++ // only the folder's sync failed
				return err
			}
			t.Errorf("run %d: %q, %v", runs, got, err)
		}
		return err
	})
	// Open, write, sync, rename, sync of the folder; then a run without failure.
	if runs != 6 || renamed != 1 {
		t.Errorf("%d runs, %d with the new text in spite of an error", runs, renamed)
	}
}

func TestEveryCallFails(t *testing.T) {
	disk := vfs.NewMem()
	if err := vfs.WriteFileAtomic(disk, "f", []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	open := false
	inj := Func(func(op Op, name string) error {
		if open {
			return nil
		}
		return &fs.PathError{Op: string(op), Path: name, Err: ErrInjected}
	})
	fsys := Wrap(disk, inj)
	open = true
	f, err := fsys.OpenFile("f", 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	open = false
	err1 := func(_ any, err error) error { return err }
	for op, err := range map[Op]error{
		Open: err1(fsys.Open("f")), ReadDir: err1(fsys.ReadDir("/")), Stat: err1(fsys.Stat("f")),
		MkdirAll: fsys.MkdirAll("d", 0), Remove: fsys.Remove("f"), RemoveAll: fsys.RemoveAll("f"),
		Rename: fsys.Rename("f", "g"), SyncDir: fsys.SyncDir("/"), Lock: err1(fsys.Lock("l")),
		Chtimes: fsys.Chtimes("f", time.UnixMilli(1)), ReadAt: err1(f.ReadAt(make([]byte, 1), 0)),
		WriteAt: err1(f.WriteAt([]byte("abcd"), 0)), Truncate: f.Truncate(0), Sync: f.Sync(),
	} {
		var pe *fs.PathError
		if !errors.Is(err, ErrInjected) || !errors.As(err, &pe) || pe.Op != string(op) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if got, _ := vfs.ReadFile(disk, "f"); string(got) != "ab345678" {
		t.Errorf("the failed write left %q, want half of it", got)
	}
}

func TestSticky(t *testing.T) {
	inj := &Nth{N: 2, Sticky: true, Match: func(op Op, _ string) bool { return op.Mutates() }}
	for i, want := range []bool{false, false, true, true} {
		op := WriteAt
		if i == 0 {
			op = ReadAt
		}
		if got := inj.Inject(op, "f") != nil; got != want {
			t.Errorf("call %d fails: %v", i, got)
		}
	}
}
