package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// OS returns the file system of the operating system.
//
// Lock takes the kind of lock that the Java virtual machine takes (a POSIX
// record lock over the whole file), so that Kafka and Tidemark keep each other
// out of a log directory.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Open(name string) (File, error) { return osFS{}.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile does without what os.OpenFile does for files that can be waited for, five system calls each: those here
// are on a disk.
func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	fd, err := openOS(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{os.NewFile(uintptr(fd), name)}, nil
}

func openOS(name string, flag int, perm fs.FileMode) (fd int, err error) {
	err = uninterrupted("open", name, func() (err error) {
		fd, err = syscall.Open(name, flag|syscall.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

// uninterrupted repeats a system call that a signal broke off.
func uninterrupted(op, name string, call func() error) error {
	for {
		switch err := call(); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return &fs.PathError{Op: op, Path: name, Err: err}
		default:
			return nil
		}
	}
}

const smallestPage = 4096

// readEnd is for programs that look into thousands of small files: one shorter than p takes three system calls, if p is
// no longer than a page. (A read of several pages may end short because one of them cannot be read.)
func (osFS) readEnd(name string, p []byte) (end []byte, size int64, err error) {
	fd, err := openOS(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	defer syscall.Close(fd)
	n := 0
	read := func(p []byte, off int64) error {
		return uninterrupted("read", name, func() (err error) {
			n, err = syscall.Pread(fd, p, off)
			return err
		})
	}
	if len(p) <= smallestPage {
		if err := read(p, 0); err != nil {
			return nil, 0, err
		}
		if n < len(p) {
			return p[:n], int64(n), nil
		}
	}
	var info syscall.Stat_t
	if err := uninterrupted("stat", name, func() error { return syscall.Fstat(fd, &info) }); err != nil {
		return nil, 0, err
	}
	p = p[:min(info.Size, int64(len(p)))]
	if err := read(p, info.Size-int64(len(p))); err != nil {
		return nil, 0, err
	}
	if n < len(p) {
		return nil, info.Size, io.ErrUnexpectedEOF
	}
	return p, info.Size, nil
}

// readPart takes three system calls.
func (osFS) readPart(name string, p []byte, pos int64) (n int, err error) {
	fd, err := openOS(name, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	for n < len(p) {
		got := 0
		err := uninterrupted("read", name, func() (err error) {
			got, err = syscall.Pread(fd, p[n:], pos+int64(n))
			return err
		})
		if err != nil || got == 0 {
			return n, err
		}
		n += got
	}
	return n, nil
}

func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// entriesAtOnce is how many entries of a folder are in memory at a time.
const entriesAtOnce = 1024

func (osFS) eachEntry(name string, each func(fs.DirEntry) error) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		some, err := d.ReadDir(entriesAtOnce)
		for _, e := range some {
			if err := each(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (osFS) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (osFS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }
func (osFS) Remove(name string) error                     { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                  { return os.RemoveAll(name) }
func (osFS) Rename(oldName, newName string) error         { return os.Rename(oldName, newName) }

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) Chtimes(name string, mtime time.Time) error {
	return os.Chtimes(name, time.Time{}, mtime)
}

type osFile struct{ *os.File }

// Fd hides os.File.Fd, which has one result.
func (f osFile) Fd() (uintptr, bool) { return f.File.Fd(), true }

// LockedError says who holds the lock that [FS.Lock] was asked for. It wraps
// ErrLocked.
type LockedError struct {
	Name string
	PID  int // holder's process, 0 when unknown
}

// Error names the file and its holder.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: %v", e.Name, ErrLocked)
	}
	return fmt.Sprintf("lock %s: %v by process %d", e.Name, ErrLocked, e.PID)
}

// Unwrap returns ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }

// held lists the locks of this process. A record lock belongs to the process,
// so the kernel would grant it twice here, and would drop it at the first close
// of any descriptor of the file: a file in the list is not opened again.
var held struct {
	sync.Mutex
	locks []*osLock
}

type osLock struct {
	file *os.File
	info fs.FileInfo
}

func (osFS) Lock(name string) (io.Closer, error) {
	held.Lock()
	defer held.Unlock()
	if info, err := os.Stat(name); err == nil {
		for _, l := range held.locks {
			if os.SameFile(l.info, info) {
				return nil, &LockedError{Name: name, PID: os.Getpid()}
			}
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l, err := lockOpen(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	held.locks = append(held.locks, l)
	return l, nil
}

func lockOpen(f *os.File) (*osLock, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	whole := syscall.Flock_t{Type: syscall.F_WRLCK}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, &LockedError{Name: f.Name(), PID: lockHolder(f)}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return &osLock{file: f, info: info}, nil
}

// lockHolder asks the kernel for the process that holds the lock, 0 if it
// cannot say (the holder went away, or is on another machine).
func lockHolder(f *os.File) int {
	probe := syscall.Flock_t{Type: syscall.F_WRLCK}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &probe)
	if err != nil || probe.Type == syscall.F_UNLCK {
		return 0
	}
	return int(probe.Pid)
}

// Close releases the lock; the file stays.
func (l *osLock) Close() error {
	held.Lock()
	defer held.Unlock()
	for i, other := range held.locks {
		if other == l {
			held.locks = append(held.locks[:i], held.locks[i+1:]...)
			return l.file.Close()
		}
	}
	return os.ErrClosed
}
