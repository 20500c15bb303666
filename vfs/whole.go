package vfs

import "io"

// Whole is a file system as a whole. Close it when it is not needed any more.
type Whole interface {
	// Sync makes durable all that was written to the file system before: the bytes of files, by whatever descriptor,
	// and the entries of folders. Its cost grows with what is dirty and not with the number of files, others' files
	// included. The error is of the disk, also one that writing back met since the Whole was opened or last synced.
	Sync() error
	io.Closer
}

// OpenWhole returns the file system that a folder is on; nil where it cannot be synced as a whole, or would not tell
// of errors. Errors are the disk's.
func OpenWhole(fsys FS, dir string) (Whole, error) {
	if opener, ok := fsys.(interface {
		OpenWhole(dir string) (Whole, error)
	}); ok {
		return opener.OpenWhole(dir)
	}
	return nil, nil
}

// OpenWhole asks the system.
func (osFS) OpenWhole(dir string) (Whole, error) { return openWhole(dir) }

// OpenWhole returns all of the file system, wherever dir is.
func (m *Mem) OpenWhole(string) (Whole, error) { return memWhole{m}, nil }

type memWhole struct{ m *Mem }

func (w memWhole) Sync() error {
	w.m.SyncAll()
	return nil
}

func (memWhole) Close() error { return nil }
