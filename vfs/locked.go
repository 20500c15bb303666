package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Locked asks, without taking it or changing anything, whether somebody holds the lock of a file (see [FS.Lock]): nil
// when nobody does or the file is absent. Of the locks of this process only those taken through [FS.Lock] are known.
func Locked(fsys FS, name string) (*LockedError, error) {
	if asked, ok := fsys.(interface {
		Locked(name string) (*LockedError, error)
	}); ok {
		return asked.Locked(name)
	}
	return nil, nil
}

// Locked asks the system.
func (osFS) Locked(name string) (*LockedError, error) {
	held.Lock()
	defer held.Unlock()
	info, err := osFS{}.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, l := range held.locks {
		if os.SameFile(l.info, info) {
			return &LockedError{Name: name, PID: syscall.Getpid()}, nil
		}
	}
	f, err := osFS{}.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, _ := f.Fd()
	probe := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(fd, syscall.F_GETLK, &probe); err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	if probe.Type == syscall.F_UNLCK {
		return nil, nil
	}
	return &LockedError{Name: name, PID: int(probe.Pid)}, nil
}

// Locked looks at the file's node.
func (m *Mem) Locked(name string) (*LockedError, error) {
	if _, err := m.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	l, err := m.Lock(name)
	if err != nil {
		if lockedErr, ok := errors.AsType[*LockedError](err); ok {
			return lockedErr, nil
		}
		return nil, err
	}
	return nil, l.Close()
}
