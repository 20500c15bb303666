package vfs

import "io/fs"

// FreeBytes is how much may still be written to the disk of a folder; known is false where the file system cannot tell.
func FreeBytes(fsys FS, dir string) (n int64, known bool, err error) {
	if asked, ok := fsys.(interface {
		FreeBytes(dir string) (int64, bool, error)
	}); ok {
		return asked.FreeBytes(dir)
	}
	return 0, false, nil
}

// FreeBytes asks the system.
func (osFS) FreeBytes(dir string) (int64, bool, error) {
	n, err := freeBytes(dir)
	if err != nil {
		return 0, false, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return n, true, nil
}

// TotalBytes is the size of the disk of a folder; known is false where the file system cannot tell.
func TotalBytes(fsys FS, dir string) (n int64, known bool, err error) {
	if asked, ok := fsys.(interface {
		TotalBytes(dir string) (int64, bool, error)
	}); ok {
		return asked.TotalBytes(dir)
	}
	return 0, false, nil
}

// TotalBytes asks the system.
func (osFS) TotalBytes(dir string) (int64, bool, error) {
	n, err := totalBytes(dir)
	if err != nil {
		return 0, false, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return n, true, nil
}
