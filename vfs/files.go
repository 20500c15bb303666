package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadFile reads a whole file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f)
	return data, errors.Join(err, f.Close())
}

// ReadEnd reads the last len(p) bytes of a file into p, all of them when the file is shorter, and tells how long
// the file is. The bytes read are those of one moment only if nobody writes meanwhile; io.ErrUnexpectedEOF says that
// the file became shorter.
func ReadEnd(fsys FS, name string, p []byte) (end []byte, size int64, err error) {
	if r, ok := fsys.(endReader); ok {
		return r.readEnd(name, p)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	end, size, err = readEnd(f, p)
	return end, size, errors.Join(err, f.Close())
}

// endReader is a file system with a cheaper way to [ReadEnd].
type endReader interface {
	readEnd(name string, p []byte) (end []byte, size int64, err error)
}

func readEnd(f File, p []byte) (end []byte, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size = info.Size()
	end = p[:min(size, int64(len(p)))]
	n, err := f.ReadAt(end, size-int64(len(end)))
	switch {
	case n == len(end):
		return end, size, nil
	case err == nil || errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return nil, size, err
}

// ReadPart reads a part of a file from a position on, as much as there is of it. It is for programs that take one look
// at each of thousands of files.
func ReadPart(fsys FS, name string, p []byte, pos int64) (n int, err error) {
	if r, ok := fsys.(partReader); ok {
		return r.readPart(name, p, pos)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return 0, err
	}
	if n, err = f.ReadAt(p, pos); errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errors.Join(err, f.Close())
}

// partReader is a file system with a cheaper way to [ReadPart].
type partReader interface {
	readPart(name string, p []byte, pos int64) (n int, err error)
}

// EachEntry calls a function for what is in a folder, in no order, without holding all of it in memory where the file
// system can do without. It ends with the function's error.
func EachEntry(fsys FS, name string, each func(fs.DirEntry) error) error {
	if l, ok := fsys.(entryLister); ok {
		return l.eachEntry(name, each)
	}
	entries, err := fsys.ReadDir(name)
	for i := 0; i < len(entries) && err == nil; i++ {
		err = each(entries[i])
	}
	return err
}

// entryLister is a file system with a smaller way to [EachEntry].
type entryLister interface {
	eachEntry(name string, each func(fs.DirEntry) error) error
}

func readAll(f File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if errors.Is(err, io.EOF) { // it became shorter, or it was empty
		err = nil
	}
	return data[:n], err
}

// WriteFileAtomic replaces a file so that after a crash at any moment name
// holds either its old bytes or all of data: it writes name+".tmp", syncs it,
// renames it and syncs the folder. When it returns nil, data is durable.
//
// Kafka: its checkpoint files are written in the same steps and with the same
// name of the temporary file.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	if err := ReplaceFile(fsys, name, data); err != nil {
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// ReplaceFile is WriteFileAtomic without the sync of the folder: until the next
// one a power loss may bring back the old bytes, or take a new file away.
func ReplaceFile(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	if err := writeSynced(fsys, tmp, data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func writeSynced(fsys FS, name string, data []byte) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
