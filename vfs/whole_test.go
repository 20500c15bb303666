package vfs

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func TestWholeOfMemMakesAllDurable(t *testing.T) {
	m := NewMem()
	if err := m.MkdirAll("a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeUnsynced(m, "a/b/f", "bytes"); err != nil {
		t.Fatal(err)
	}
	whole, err := OpenWhole(m, "a")
	if err != nil || whole == nil {
		t.Fatalf("got %v, %v", whole, err)
	}
	if err := whole.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(m.CrashClone(rand.New(rand.NewPCG(1, 1)), 0), "a/b/f")
	if string(got) != "bytes" || err != nil {
		t.Errorf("after a power loss: got %q, %v", got, err)
	}
}

func TestWholeOfSystem(t *testing.T) {
	dir := t.TempDir()
	whole, err := OpenWhole(OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if whole == nil {
		t.Skip("the file system of the temporary folder cannot be synced as a whole")
	}
	if err := writeUnsynced(OS(), filepath.Join(dir, "f"), "bytes"); err != nil {
		t.Fatal(err)
	}
	if err := whole.Sync(); err != nil {
		t.Error(err)
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}
	if err := whole.Sync(); err == nil {
		t.Error("a sync after Close has no error")
	}
	if _, err := OpenWhole(OS(), filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent folder has no error")
	}
}

func writeUnsynced(fsys FS, name, data string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(data), 0); err != nil {
		return err
	}
	return f.Close()
}
