// Package faultfs makes file system calls fail, so that tests see what code
// does about it.
//
// An [Injector] decides for each call whether it fails. [EachFailure] runs a
// scenario again and again with its first, second, third … call failing, until
// it ran through without a failure.
//
// Concurrency: a wrapped FS is as safe as the one inside; an Injector is called
// from several goroutines at once.
package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/vfs"
)

// ErrInjected is what a failing call returns, inside a *fs.PathError.
var ErrInjected = errors.New("injected failure")

// Op is a kind of call.
type Op string

// The calls, of FS and of File. Close, Fd and File.Stat never fail.
const (
	Open      Op = "open" // Open and OpenFile
	ReadDir   Op = "readdir"
	Stat      Op = "stat"
	MkdirAll  Op = "mkdir"
	Remove    Op = "remove"
	RemoveAll Op = "removeall"
	Rename    Op = "rename"
	SyncDir   Op = "syncdir"
	Chtimes   Op = "chtimes"
	Lock      Op = "lock"
	ReadAt    Op = "read"
	WriteAt   Op = "write"
	Truncate  Op = "truncate"
	Sync      Op = "sync"
	SyncAll   Op = "syncall" // Whole.Sync; OpenWhole never fails
)

// Mutates reports whether the call changes the disk.
func (op Op) Mutates() bool {
	switch op {
	case ReadDir, Stat, Lock, ReadAt:
		return false
	}
	return true
}

// Injector returns nil to let a call through, or the error with which it fails;
// the call is then not made. It may block, to order goroutines.
type Injector interface {
	Inject(op Op, name string) error
}

// Func makes a function an Injector.
type Func func(op Op, name string) error

// Inject calls f.
func (f Func) Inject(op Op, name string) error { return f(op, name) }

// Wrap returns fsys with each call asked of inj first. A failing WriteAt writes
// the first half of its bytes, as a full disk does.
func Wrap(fsys vfs.FS, inj Injector) vfs.FS { return &faultFS{fsys, inj} }

// Nth lets call number n (from 1) among those that match fail, and all after it
// when sticky is set: a disk that is gone.
type Nth struct {
	N      int64
	Sticky bool
	Match  func(op Op, name string) bool // nil matches every call

	calls atomic.Int64
}

// Inject counts the call.
func (f *Nth) Inject(op Op, name string) error {
	if f.Match != nil && !f.Match(op, name) {
		return nil
	}
	if n := f.calls.Add(1); n == f.N || (f.Sticky && n > f.N) {
		return &fs.PathError{Op: string(op), Path: name, Err: ErrInjected}
	}
	return nil
}

// Fired reports whether a call has failed.
func (f *Nth) Fired() bool { return f.N > 0 && f.calls.Load() >= f.N }

// maxFailures stops an EachFailure whose scenario never ends.
const maxFailures = 100_000

// EachFailure calls scenario with a file system whose n-th call fails, for n =
// 1, 2, … until a run makes fewer than n calls. fresh gives the file system for
// each run. scenario must check for itself that what is on the disk is right;
// an error that does not come from the injected failure, or none in the last
// run, ends the test. A run may succeed in spite of a failure.
func EachFailure(t testing.TB, fresh func() vfs.FS, scenario func(fsys vfs.FS) error) {
	t.Helper()
	EachFailureOf(t, nil, fresh, scenario)
}

// EachFailureOf is EachFailure over the calls that match only.
func EachFailureOf(t testing.TB, match func(Op, string) bool, fresh func() vfs.FS, scenario func(vfs.FS) error) {
	t.Helper()
	for n := int64(1); n <= maxFailures; n++ {
		inj := &Nth{N: n, Match: match}
		err := scenario(Wrap(fresh(), inj))
		if err != nil && !errors.Is(err, ErrInjected) {
			t.Fatalf("failure %d: %v", n, err)
		}
		if !inj.Fired() {
			if err != nil {
				t.Fatalf("without a failure: %v", err)
			}
			return
		}
	}
	t.Fatalf("still failing after %d calls", maxFailures)
}

type faultFS struct {
	fs  vfs.FS
	inj Injector
}

func (f *faultFS) Open(name string) (vfs.File, error) {
	if err := f.inj.Inject(Open, name); err != nil {
		return nil, err
	}
	return f.wrap(name)(f.fs.Open(name))
}

func (f *faultFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := f.inj.Inject(Open, name); err != nil {
		return nil, err
	}
	return f.wrap(name)(f.fs.OpenFile(name, flag, perm))
}

func (f *faultFS) wrap(name string) func(vfs.File, error) (vfs.File, error) {
	return func(file vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		return &faultFile{file, name, f.inj}, nil
	}
}

func (f *faultFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.inj.Inject(ReadDir, name); err != nil {
		return nil, err
	}
	return f.fs.ReadDir(name)
}

func (f *faultFS) Stat(name string) (fs.FileInfo, error) {
	if err := f.inj.Inject(Stat, name); err != nil {
		return nil, err
	}
	return f.fs.Stat(name)
}

func (f *faultFS) MkdirAll(name string, perm fs.FileMode) error {
	if err := f.inj.Inject(MkdirAll, name); err != nil {
		return err
	}
	return f.fs.MkdirAll(name, perm)
}

func (f *faultFS) Remove(name string) error {
	if err := f.inj.Inject(Remove, name); err != nil {
		return err
	}
	return f.fs.Remove(name)
}

func (f *faultFS) RemoveAll(name string) error {
	if err := f.inj.Inject(RemoveAll, name); err != nil {
		return err
	}
	return f.fs.RemoveAll(name)
}

func (f *faultFS) Rename(oldName, newName string) error {
	if err := f.inj.Inject(Rename, oldName); err != nil {
		return err
	}
	return f.fs.Rename(oldName, newName)
}

func (f *faultFS) SyncDir(name string) error {
	if err := f.inj.Inject(SyncDir, name); err != nil {
		return err
	}
	return f.fs.SyncDir(name)
}

func (f *faultFS) Chtimes(name string, mtime time.Time) error {
	if err := f.inj.Inject(Chtimes, name); err != nil {
		return err
	}
	return f.fs.Chtimes(name, mtime)
}

// OpenWhole is vfs.OpenWhole of the file system inside.
func (f *faultFS) OpenWhole(dir string) (vfs.Whole, error) {
	whole, err := vfs.OpenWhole(f.fs, dir)
	if whole == nil || err != nil {
		return nil, err
	}
	return &faultWhole{whole, dir, f.inj}, nil
}

type faultWhole struct {
	vfs.Whole
	dir string
	inj Injector
}

func (f *faultWhole) Sync() error {
	if err := f.inj.Inject(SyncAll, f.dir); err != nil {
		return err
	}
	return f.Whole.Sync()
}

func (f *faultFS) Lock(name string) (io.Closer, error) {
	if err := f.inj.Inject(Lock, name); err != nil {
		return nil, err
	}
	return f.fs.Lock(name)
}

type faultFile struct {
	vfs.File
	name string
	inj  Injector
}

func (f *faultFile) ReadAt(p []byte, pos int64) (int, error) {
	if err := f.inj.Inject(ReadAt, f.name); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, pos)
}

func (f *faultFile) WriteAt(p []byte, pos int64) (int, error) {
	if err := f.inj.Inject(WriteAt, f.name); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], pos) // the injected error counts
		return n, err
	}
	return f.File.WriteAt(p, pos)
}

func (f *faultFile) Truncate(size int64) error {
	if err := f.inj.Inject(Truncate, f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultFile) Sync() error {
	if err := f.inj.Inject(Sync, f.name); err != nil {
		return err
	}
	return f.File.Sync()
}
