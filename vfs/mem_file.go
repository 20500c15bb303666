package vfs

import (
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

// memFile is an open file of a [Mem].
type memFile struct {
	m           *Mem
	node        *memNode
	name        string
	read, write bool
	closed      bool
}

// usable is called with the lock held.
func (f *memFile) usable(op string, allowed bool) error {
	if f.closed {
		return pathError(op, f.name, fs.ErrClosed)
	}
	if f.node.dir {
		return pathError(op, f.name, syscall.EISDIR)
	}
	if !allowed {
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, pos int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("read", f.read); err != nil {
		return 0, err
	}
	if pos < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	n := f.node.data.readAt(p, pos)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, pos int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("write", f.write); err != nil {
		return 0, err
	}
	if pos < 0 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	if len(p) == 0 {
		return 0, nil
	}
	f.node.data.writeAt(p, pos)
	f.node.mtime = f.m.clock()
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("truncate", f.write); err != nil {
		return err
	}
	if size < 0 {
		return pathError("truncate", f.name, fs.ErrInvalid)
	}
	f.node.data.resize(size)
	f.node.mtime = f.m.clock()
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("sync", true); err != nil {
		return err
	}
	f.node.synced = f.node.data.share()
	return nil
}

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return nil, pathError("stat", f.name, fs.ErrClosed)
	}
	return f.node.info(filepath.Base(f.name)), nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}

func (f *memFile) Fd() (uintptr, bool) { return 0, false }

// memInfo is a copy of what a node was when it was described.
type memInfo struct {
	name  string
	size  int64
	dir   bool
	mtime time.Time
}

func (n *memNode) info(name string) fs.FileInfo {
	return memInfo{name: name, size: n.data.size, dir: n.dir, mtime: n.mtime}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) ModTime() time.Time { return i.mtime }
func (i memInfo) Sys() any           { return nil }

func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
