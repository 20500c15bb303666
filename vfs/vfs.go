// Package vfs is the seam between Tidemark and the file system.
//
// Every byte that the storage packages read or write passes through an FS, so
// that a test can run the same code on memory, lose what was not synced
// ([Mem.CrashClone]) or let the n-th call fail (package vfs/faultfs).
//
// Concurrency: an FS and a File may be used by several goroutines at once.
// ReadAt and WriteAt take explicit positions; there is no shared file offset.
//
// Durability: WriteAt and Truncate reach the page cache only. Sync makes one
// file's bytes durable, SyncDir makes the creation, renaming and removal of the
// entries of one folder durable.
//
// Errors of the disk are *fs.PathError, possibly wrapped.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// ErrLocked is returned by [FS.Lock] when another process or another holder in
// this process has the lock.
var ErrLocked = errors.New("file is locked")

// FS is a file system. Names are operating system paths.
type FS interface {
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenFile opens a file with the os.O_… flags given; perm is used when the
	// file is created.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// ReadDir lists a folder, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file or folder, following links.
	Stat(name string) (fs.FileInfo, error)
	// MkdirAll makes a folder and those above it; an existing one is no error.
	MkdirAll(name string, perm fs.FileMode) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// RemoveAll removes a file or a folder with all below it; an absent one is
	// no error.
	RemoveAll(name string) error
	// Rename moves a file or folder, replacing a file of the new name.
	Rename(oldName, newName string) error
	// SyncDir makes the entries of a folder durable.
	SyncDir(name string) error
	// Chtimes sets the time of last modification of a file.
	Chtimes(name string, mtime time.Time) error
	// Lock takes an exclusive advisory lock on a file, creating it if absent,
	// and holds it until the result is closed. It does not wait: a held lock is
	// an error that wraps ErrLocked.
	Lock(name string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Stat describes the open file.
	Stat() (fs.FileInfo, error)
	// Truncate cuts the file to size bytes, or extends it with zeros (sparse
	// where the file system can).
	Truncate(size int64) error
	// Sync makes the bytes of the file durable. A failed Sync must not be tried
	// again: the kernel may have dropped the dirty pages.
	Sync() error
	// Fd is the descriptor for calls such as sendfile, and ok false where there
	// is none. It stays valid until Close.
	Fd() (fd uintptr, ok bool)
}
