package inspect

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sort"

	"tidemark/vfs"
)

// logView is a log as it will be when its bad parts are taken out and its patches made.
type logView struct {
	file    vfs.File
	spans   []span // in order
	patches []patch
	size    int64
}

// span is bytes of the old file that stay.
type span struct {
	from, to int64 // in the old file
	at       int64 // in the new one
}

// newLogView leaves out the ranges [from, to), which are in order and apart.
func newLogView(file vfs.File, size int64, without [][2]int64, patches []patch) *logView {
	v := &logView{file: file, patches: patches}
	pos := int64(0)
	keep := func(to int64) {
		if to > pos {
			v.spans = append(v.spans, span{pos, to, v.size})
			v.size += to - pos
		}
	}
	for _, w := range without {
		keep(w[0])
		pos = w[1]
	}
	keep(size)
	return v
}

// inPlace reports whether the new file is a beginning of the old one.
func (v *logView) inPlace() bool {
	return len(v.spans) == 0 || len(v.spans) == 1 && v.spans[0].from == 0
}

// ReadAt reads the new file.
func (v *logView) ReadAt(p []byte, off int64) (n int, err error) {
	if off >= v.size {
		return 0, io.EOF
	}
	if rest := v.size - off; int64(len(p)) > rest {
		p, err = p[:rest], io.EOF
	}
	i := sort.Search(len(v.spans), func(i int) bool { return v.spans[i].at+v.spans[i].to-v.spans[i].from > off })
	for n < len(p) {
		s := v.spans[i]
		old := s.from + off + int64(n) - s.at
		part := p[n:min(int64(len(p)), int64(n)+s.to-old)]
		got, readErr := v.file.ReadAt(part, old)
		if got < len(part) {
			if readErr == nil || errors.Is(readErr, io.EOF) {
				readErr = io.ErrUnexpectedEOF
			}
			return n + got, readErr
		}
		v.patch(part, old)
		n += len(part)
		i++
	}
	return n, err
}

// patch applies the patches to bytes of the old file from pos on.
func (v *logView) patch(p []byte, pos int64) {
	for _, c := range v.patches {
		for i, b := range c.data {
			if at := c.pos + int64(i) - pos; at >= 0 && at < int64(len(p)) {
				p[at] = b
			}
		}
	}
}

// viewFS is a file system in which one log looks as its view. Other changes stay in memory.
type viewFS struct {
	vfs.FS
	name string
	view *logView
}

func newViewFS(base vfs.FS, name string, view *logView) *viewFS {
	return &viewFS{FS: vfs.Overlay(base), name: filepath.Clean(name), view: view}
}

// Open opens the view, or another file.
func (f *viewFS) Open(name string) (vfs.File, error) { return f.OpenFile(name, 0, 0) }

// OpenFile opens the view, or another file.
func (f *viewFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if filepath.Clean(name) == f.name {
		return viewFile{f.view, f.view.file}, nil
	}
	return f.FS.OpenFile(name, flag, perm)
}

// Stat tells the size of the view.
func (f *viewFS) Stat(name string) (fs.FileInfo, error) {
	info, err := f.FS.Stat(name)
	if err == nil && filepath.Clean(name) == f.name {
		return sizedInfo{info, f.view.size}, nil
	}
	return info, err
}

type sizedInfo struct {
	fs.FileInfo
	size int64
}

func (i sizedInfo) Size() int64 { return i.size }

// viewFile is the view as a file that cannot be changed.
type viewFile struct {
	*logView
	old vfs.File
}

func (f viewFile) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (f viewFile) Truncate(int64) error               { return errors.ErrUnsupported }
func (f viewFile) Sync() error                        { return nil }
func (f viewFile) Close() error                       { return nil }
func (f viewFile) Fd() (uintptr, bool)                { return 0, false }
func (f viewFile) Stat() (fs.FileInfo, error) {
	info, err := f.old.Stat()
	if err != nil {
		return nil, err
	}
	return sizedInfo{info, f.size}, nil
}
