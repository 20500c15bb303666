package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Overlay returns a file system that shows base and keeps every change in memory: nothing is ever written, created,
// renamed or removed below it. The bytes of base are read when they are asked for, so a large file that is changed at
// its end costs the changed pages only. Folders of base cannot be renamed, and a lock is granted when base has it free,
// without taking it there.
//
// It is for programs that read a directory which must not be touched with code that would mend it on the way.
func Overlay(base FS) FS { return &overlay{base: base, folders: make(map[string]overlayFolder)} }

type overlay struct {
	base FS

	mu      sync.Mutex
	folders map[string]overlayFolder // by path
}

// overlayFolder has the names in a folder that changed; nil: removed.
type overlayFolder map[string]*overlayNode

// overlayPage is the unit in which changed bytes are kept.
const overlayPage = 4096

// overlayNode is a file that was changed, made or renamed.
type overlayNode struct {
	mu        sync.Mutex
	from      string // the file of base whose bytes show through; "": none
	baseBytes int64  // how many of them do
	size      int64
	pages     map[int64][]byte // by number, whole
	modified  time.Time
	dir       bool
	opened    int  // files that use the node; guarded by overlay.mu
	kept      bool // it is not what base has: something was changed, or it has another name; guarded by mu
}

func (o *overlay) lookup(name string) (n *overlayNode, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.node(name)
}

// node is lookup with mu held.
func (o *overlay) node(name string) (n *overlayNode, changed bool) {
	if len(o.folders) == 0 {
		return nil, false
	}
	name = filepath.Clean(name)
	n, changed = o.folders[filepath.Dir(name)][filepath.Base(name)]
	return n, changed
}

func (o *overlay) set(name string, n *overlayNode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.setLocked(name, n)
}

func (o *overlay) setLocked(name string, n *overlayNode) {
	name = filepath.Clean(name)
	folder := o.folders[filepath.Dir(name)]
	if folder == nil {
		folder = make(overlayFolder)
		o.folders[filepath.Dir(name)] = folder
	}
	folder[filepath.Base(name)] = n
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Open opens a file for reading.
func (o *overlay) Open(name string) (File, error) { return o.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file; what is written to it stays in memory.
func (o *overlay) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	n, changed := o.lookup(name)
	writable := flag&(os.O_WRONLY|os.O_RDWR) != 0
	if !changed && !writable {
		return o.base.Open(name)
	}
	if n == nil {
		var err error
		if n, err = o.adopt(name, changed, flag); err != nil {
			return nil, err
		}
		n = o.useNew(name, n)
	} else if flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	} else {
		o.use(n)
	}
	f := &overlayFile{overlay: o, name: name, node: n}
	if n.from != "" {
		base, err := o.base.Open(n.from)
		if err != nil {
			o.unuse(name, n)
			return nil, err
		}
		f.base = base
	}
	if flag&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// readPart leaves a file that was not changed to base.
func (o *overlay) readPart(name string, p []byte, pos int64) (n int, err error) {
	if _, changed := o.lookup(name); !changed {
		return ReadPart(o.base, name, p, pos)
	}
	f, err := o.Open(name)
	if err != nil {
		return 0, err
	}
	if n, err = f.ReadAt(p, pos); errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errors.Join(err, f.Close())
}

// use counts a file that was opened.
func (o *overlay) use(n *overlayNode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n.opened++
}

// useNew is use of a node that is new, or of the one that somebody else has set meanwhile.
func (o *overlay) useNew(name string, n *overlayNode) *overlayNode {
	o.mu.Lock()
	defer o.mu.Unlock()
	if there, _ := o.node(name); there != nil {
		n = there
	} else {
		o.setLocked(name, n)
	}
	n.opened++
	return n
}

// unuse counts a file that was closed. Of one that was only read nothing is kept.
func (o *overlay) unuse(name string, n *overlayNode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n.opened--; n.opened > 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if there, _ := o.node(name); there == n && !n.kept {
		o.forgetLocked(name)
	}
}

// Forget drops what an overlay keeps of a file that was changed in place or made: base shows again. Files that were
// renamed or removed stay so. It reports whether there was something to drop; in other file systems there never is.
// Nobody may have the file open.
func Forget(fsys FS, name string) bool {
	o, ok := fsys.(*overlay)
	if !ok {
		return false
	}
	name = filepath.Clean(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	n, _ := o.node(name)
	if n == nil || n.dir || n.from != "" && n.from != name {
		return false
	}
	o.forgetLocked(name)
	return true
}

func (o *overlay) forgetLocked(name string) {
	dir := filepath.Dir(filepath.Clean(name))
	if delete(o.folders[dir], filepath.Base(name)); len(o.folders[dir]) == 0 {
		delete(o.folders, dir)
	}
}

// readEnd leaves a file that was not changed to base.
func (o *overlay) readEnd(name string, p []byte) (end []byte, size int64, err error) {
	if _, changed := o.lookup(name); !changed {
		return ReadEnd(o.base, name, p)
	}
	f, err := o.Open(name)
	if err != nil {
		return nil, 0, err
	}
	end, size, err = readEnd(f, p)
	return end, size, errors.Join(err, f.Close())
}

// adopt makes the node of a file of base, or of a new one.
func (o *overlay) adopt(name string, removed bool, flag int) (*overlayNode, error) {
	if !removed {
		info, err := o.base.Stat(name)
		if err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0 {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
		}
		if err == nil {
			size := info.Size()
			return &overlayNode{from: filepath.Clean(name), baseBytes: size, size: size, modified: info.ModTime()}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if flag&os.O_CREATE == 0 {
		return nil, notExist("open", name)
	}
	return &overlayNode{kept: true}, nil
}

// ReadDir lists a folder.
func (o *overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	listed, err := o.base.ReadDir(name)
	folder := filepath.Clean(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if own, _ := o.node(folder); err != nil && (own == nil || !own.dir) {
		return nil, err
	}
	if len(o.folders[folder]) == 0 {
		return listed, nil
	}
	listed = slices.DeleteFunc(slices.Clone(listed), func(e fs.DirEntry) bool {
		_, changed := o.folders[folder][e.Name()]
		return changed
	})
	for base, n := range o.folders[folder] {
		if n != nil && base != "." {
			listed = append(listed, fs.FileInfoToDirEntry(n.info(base)))
		}
	}
	slices.SortFunc(listed, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return listed, nil
}

// eachEntry leaves a folder without changes to base.
func (o *overlay) eachEntry(name string, each func(fs.DirEntry) error) error {
	o.mu.Lock()
	changed := len(o.folders[filepath.Clean(name)]) > 0
	o.mu.Unlock()
	if !changed {
		if _, changed = o.lookup(name); !changed {
			return EachEntry(o.base, name, each)
		}
	}
	entries, err := o.ReadDir(name)
	for i := 0; i < len(entries) && err == nil; i++ {
		err = each(entries[i])
	}
	return err
}

// Stat describes a file or folder.
func (o *overlay) Stat(name string) (fs.FileInfo, error) {
	n, changed := o.lookup(name)
	switch {
	case !changed:
		return o.base.Stat(name)
	case n == nil:
		return nil, notExist("stat", name)
	}
	return n.info(filepath.Base(name)), nil
}

// MkdirAll makes a folder and those above it.
func (o *overlay) MkdirAll(name string, _ fs.FileMode) error {
	for folder := filepath.Clean(name); ; folder = filepath.Dir(folder) {
		if _, err := o.Stat(folder); err == nil {
			return nil
		}
		o.set(folder, &overlayNode{dir: true, kept: true})
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

// Remove removes a file or an empty folder.
func (o *overlay) Remove(name string) error {
	if _, err := o.Stat(name); err != nil {
		return err
	}
	o.set(name, nil)
	return nil
}

// RemoveAll removes a file, or a folder with all in it.
func (o *overlay) RemoveAll(name string) error {
	info, err := o.Stat(name)
	if err != nil {
		return nil
	}
	if info.IsDir() {
		entries, err := o.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := o.RemoveAll(filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return o.Remove(name)
}

// Rename moves a file, replacing a file of the new name.
func (o *overlay) Rename(oldName, newName string) error {
	n, changed := o.lookup(oldName)
	if n == nil {
		if info, err := o.Stat(oldName); err == nil && info.IsDir() {
			return &fs.PathError{Op: "rename", Path: oldName, Err: errors.ErrUnsupported}
		}
		var err error
		if n, err = o.adopt(oldName, changed, os.O_RDWR); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.kept = true
	n.mu.Unlock()
	o.set(newName, n)
	o.set(oldName, nil)
	if n.dir {
		o.moveFolder(filepath.Clean(oldName), filepath.Clean(newName))
	}
	return nil
}

// moveFolder moves what is in a folder that was made here.
func (o *overlay) moveFolder(from, to string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	inside := from + string(filepath.Separator)
	for path, content := range maps.Clone(o.folders) {
		if path == from || strings.HasPrefix(path, inside) {
			o.folders[to+path[len(from):]] = content
			delete(o.folders, path)
		}
	}
}

// SyncDir does nothing: there is no disk.
func (o *overlay) SyncDir(string) error { return nil }

// Chtimes sets the time of modification.
func (o *overlay) Chtimes(name string, mtime time.Time) error {
	f, err := o.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	n := f.(*overlayFile).node
	n.mu.Lock()
	n.modified, n.kept = mtime, true
	n.mu.Unlock()
	return f.Close()
}

// Lock fails when somebody holds the lock in base, and takes nothing.
func (o *overlay) Lock(name string) (io.Closer, error) {
	held, err := Locked(o.base, name)
	if err != nil {
		return nil, err
	}
	if held != nil {
		return nil, held
	}
	return io.NopCloser(nil), nil
}

// Locked asks the base.
func (o *overlay) Locked(name string) (*LockedError, error) { return Locked(o.base, name) }

func (n *overlayNode) info(name string) fs.FileInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return overlayInfo{name: name, size: n.size, modified: n.modified, dir: n.dir}
}

type overlayInfo struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

func (i overlayInfo) Name() string       { return i.name }
func (i overlayInfo) Size() int64        { return i.size }
func (i overlayInfo) ModTime() time.Time { return i.modified }
func (i overlayInfo) IsDir() bool        { return i.dir }
func (i overlayInfo) Sys() any           { return nil }
func (i overlayInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
