package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Mem is a file system in memory that knows what would survive a power loss:
// the bytes of a file as of its last Sync, and the entries of a folder as of its
// last SyncDir. [Mem.CrashClone] makes the disk that such a loss may leave.
//
// Names are cleaned; relative ones lie under the root. There are no links and
// permissions are not looked at. Files have no descriptor. An open file stays
// usable when it is renamed or removed.
type Mem struct {
	mu    sync.Mutex
	root  *memNode
	clock func() time.Time
	ticks atomic.Int64
	locks map[*memNode]bool
}

// NewMem returns an empty file system. Its times of modification count up from
// 1 January 2000, a millisecond at each change; see [Mem.SetClock].
func NewMem() *Mem {
	m := &Mem{locks: make(map[*memNode]bool)}
	start := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	m.clock = func() time.Time { return start.Add(time.Duration(m.ticks.Add(1)) * time.Millisecond) }
	m.root = m.newNode(true)
	return m
}

// SetClock makes now the source of times of modification.
func (m *Mem) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = now
}

// memNode is a file or a folder. All fields are guarded by Mem.mu.
type memNode struct {
	dir   bool
	mtime time.Time

	children map[string]*memNode // of a folder
	durable  map[string]*memNode // as of the last SyncDir

	data   memData // of a file
	synced memData // as of the last Sync
}

func (m *Mem) newNode(dir bool) *memNode {
	n := &memNode{dir: dir, mtime: m.clock(), data: newMemData(), synced: newMemData()}
	if dir {
		n.children, n.durable = map[string]*memNode{}, map[string]*memNode{}
	}
	return n
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// walk finds the node of a name.
func (m *Mem) walk(op, name string) (*memNode, error) {
	n := m.root
	for _, part := range splitPath(name) {
		if !n.dir {
			return nil, pathError(op, name, syscall.ENOTDIR)
		}
		next := n.children[part]
		if next == nil {
			return nil, pathError(op, name, fs.ErrNotExist)
		}
		n = next
	}
	return n, nil
}

// parent finds the folder that holds, or would hold, a name.
func (m *Mem) parent(op, name string) (*memNode, string, error) {
	parts := splitPath(name)
	if len(parts) == 0 {
		return nil, "", pathError(op, name, fs.ErrInvalid)
	}
	last := len(parts) - 1
	dir, err := m.walk(op, strings.Join(parts[:last], "/"))
	if err != nil {
		return nil, "", pathError(op, name, errors.Unwrap(err))
	}
	if !dir.dir {
		return nil, "", pathError(op, name, syscall.ENOTDIR)
	}
	return dir, parts[last], nil
}

func splitPath(name string) []string {
	return strings.FieldsFunc(filepath.ToSlash(filepath.Clean("/"+name)), func(r rune) bool { return r == '/' })
}

// Open opens a file or folder for reading.
func (m *Mem) Open(name string) (File, error) { return m.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file; of the flags it knows O_CREATE, O_EXCL, O_TRUNC and
// the access mode.
func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("open", name)
	if err != nil {
		return nil, err
	}
	n := dir.children[base]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, pathError("open", name, fs.ErrNotExist)
	case n == nil:
		n = m.newNode(false)
		dir.children[base] = n
		dir.mtime = n.mtime
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, pathError("open", name, fs.ErrExist)
	}
	writable := flag&(os.O_WRONLY|os.O_RDWR) != 0
	if n.dir && writable {
		return nil, pathError("open", name, syscall.EISDIR)
	}
	if flag&os.O_TRUNC != 0 && writable {
		n.data, n.mtime = newMemData(), m.clock()
	}
	return &memFile{m: m, node: n, name: name, read: flag&os.O_WRONLY == 0, write: writable}, nil
}

// ReadDir lists a folder, sorted by name.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk("open", name)
	if err != nil {
		return nil, err
	}
	if !n.dir {
		return nil, pathError("readdir", name, syscall.ENOTDIR)
	}
	list := make([]fs.DirEntry, 0, len(n.children))
	for base, child := range n.children {
		list = append(list, fs.FileInfoToDirEntry(child.info(base)))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// Stat describes a file or folder.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(filepath.Base(name)), nil
}

// MkdirAll makes a folder and those above it.
func (m *Mem) MkdirAll(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, part := range splitPath(name) {
		next := n.children[part]
		if next == nil {
			next = m.newNode(true)
			n.children[part] = next
			n.mtime = next.mtime
		}
		if !next.dir {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Remove removes a file or an empty folder.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n := dir.children[base]
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if len(n.children) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(dir.children, base)
	dir.mtime = m.clock()
	return nil
}

// RemoveAll removes a file, or a folder with all in it.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("removeall", name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	delete(dir.children, base)
	dir.mtime = m.clock()
	return nil
}

// Rename moves a file or folder, replacing a file or an empty folder.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, err := m.parent("rename", oldName)
	if err != nil {
		return err
	}
	n := from.children[oldBase]
	if n == nil {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	to, newBase, err := m.parent("rename", newName)
	if err != nil {
		return err
	}
	if err := replaceable(n, to.children[newBase]); err != nil {
		return pathError("rename", newName, err)
	}
	delete(from.children, oldBase)
	to.children[newBase] = n
	from.mtime = m.clock()
	to.mtime = from.mtime
	return nil
}

func replaceable(n, target *memNode) error {
	switch {
	case target == nil || target == n:
	case target.dir && !n.dir:
		return syscall.EISDIR
	case !target.dir && n.dir:
		return syscall.ENOTDIR
	case len(target.children) > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// SyncDir makes the entries of a folder durable: the names, not the bytes of
// the files.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk("sync", name)
	if err != nil {
		return err
	}
	if !n.dir {
		return pathError("sync", name, syscall.ENOTDIR)
	}
	n.durable = maps.Clone(n.children)
	return nil
}

// Chtimes sets the time of modification.
func (m *Mem) Chtimes(name string, mtime time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk("chtimes", name)
	if err != nil {
		return err
	}
	n.mtime = mtime
	return nil
}

// Lock takes a lock that another holder of this Mem cannot have.
func (m *Mem) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	n := f.(*memFile).node
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[n] {
		return nil, &LockedError{Name: name}
	}
	m.locks[n] = true
	return &memLock{m: m, node: n}, nil
}

type memLock struct {
	m    *Mem
	node *memNode
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if !l.m.locks[l.node] {
		return fs.ErrClosed
	}
	delete(l.m.locks, l.node)
	return nil
}

// SyncAll makes everything durable, as the start of a scenario.
func (m *Mem) SyncAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.root.syncAll()
}

func (n *memNode) syncAll() {
	if !n.dir {
		n.synced = n.data.share()
		return
	}
	n.durable = maps.Clone(n.children)
	for _, child := range n.children {
		child.syncAll()
	}
}

// CrashClone returns a disk as a power loss now might leave it: all that was
// synced, and of the rest each change with probability keep (0 to 1), drawn from
// rng. A change is a block of 512 bytes of a file, its size, or an entry of a
// folder. The receiver stays as it is, and the clone shares nothing with it:
// what a dead program still does cannot reach it. All of the clone is durable;
// no lock is held.
//
// A file whose folder was not synced may be lost with its synced bytes. A rename
// within a folder without SyncDir leaves the old name, the new one or both, but
// not none, as journalling file systems do.
func (m *Mem) CrashClone(rng *rand.Rand, keep float64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.ticks.Store(m.ticks.Load())
	kept := func() bool { return rng.Float64() < keep }
	c.root = crashNode(m.root, kept, map[*memNode]*memNode{})
	return c
}

func crashNode(n *memNode, kept func() bool, done map[*memNode]*memNode) *memNode {
	if c := done[n]; c != nil {
		return c // a file with two names keeps one content
	}
	c := &memNode{dir: n.dir, mtime: n.mtime}
	done[n] = c
	if !n.dir {
		c.data = n.data.crash(&n.synced, kept)
		c.synced = c.data.share()
		return c
	}
	c.children = map[string]*memNode{}
	for _, base := range unionKeys(n.children, n.durable) {
		child := n.durable[base]
		if n.children[base] != child && kept() {
			child = n.children[base]
		}
		if child != nil {
			c.children[base] = crashNode(child, kept, done)
		}
	}
	crashRenames(n, c, kept, done)
	c.durable = maps.Clone(c.children)
	return c
}

// crashRenames gives the old name back to what would be lost between two names.
func crashRenames(n, c *memNode, kept func() bool, done map[*memNode]*memNode) {
	renamed := map[*memNode]bool{}
	for _, child := range n.children {
		renamed[child] = true
	}
	for _, base := range unionKeys(n.durable, nil) {
		child := n.durable[base]
		if renamed[child] && done[child] == nil && c.children[base] == nil {
			c.children[base] = crashNode(child, kept, done)
		}
	}
}

// unionKeys is in order, so that one seed gives one disk.
func unionKeys(a, b map[string]*memNode) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// String lists the tree with sizes, for messages of tests.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	m.root.print(&b, "")
	return b.String()
}

func (n *memNode) print(b *strings.Builder, path string) {
	if !n.dir {
		fmt.Fprintf(b, "%s %d\n", path, n.data.size)
		return
	}
	for _, base := range unionKeys(n.children, nil) {
		n.children[base].print(b, path+"/"+base)
	}
}
