package vfs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOSLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	l, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = OS().Lock(name)
	var locked *LockedError
	if !errors.As(err, &locked) || !errors.Is(err, ErrLocked) || locked.PID != os.Getpid() {
		t.Fatalf("second lock in this process: %v", err)
	}
	if out := lockElsewhere(t, name); !strings.Contains(out, "file is locked by process") {
		t.Fatalf("another process said %q", out)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err == nil {
		t.Error("closing twice gave no error")
	}
	if out := lockElsewhere(t, name); !strings.Contains(out, "got it") {
		t.Fatalf("after close another process said %q", out)
	}
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}

// lockElsewhere takes the lock in a child process (this test binary).
func lockElsewhere(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockChild$", "-test.v")
	cmd.Env = append(os.Environ(), "VFS_LOCK_CHILD="+name)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	return string(out)
}

func TestLockChild(t *testing.T) {
	name := os.Getenv("VFS_LOCK_CHILD")
	if name == "" {
		return // it is the child of TestOSLock only
	}
	if _, err := OS().Lock(name); err != nil {
		t.Log(err)
		return
	}
	t.Log("got it")
}

func TestWriteFileAtomic(t *testing.T) {
	for name, fsys := range map[string]FS{"os": OS(), "mem": NewMem()} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			if err := fsys.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "checkpoint")
			for _, text := range []string{"first, long", "2nd", ""} {
				if err := WriteFileAtomic(fsys, file, []byte(text)); err != nil {
					t.Fatal(err)
				}
				got, err := ReadFile(fsys, file)
				if err != nil || string(got) != text {
					t.Fatalf("read %q, %v; want %q", got, err, text)
				}
			}
			entries, err := fsys.ReadDir(dir)
			if err != nil || len(entries) != 1 || entries[0].Name() != "checkpoint" {
				t.Fatalf("folder holds %v, %v", entries, err)
			}
			if _, err := ReadFile(fsys, file+".none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("absent file: %v", err)
			}
		})
	}
}
