package index

import (
	"os"
	"sync"
	"sync/atomic"

	"tidemark/vfs"
)

// FileCache bounds the number of descriptors that log segments keep open. It
// replaces by the clock rule: a file used since the hand last passed is spared.
//
// Files in use (between [File.Acquire] and [File.Release]) are never closed, so
// the limit is exceeded while more than that many are in use at once.
type FileCache struct {
	fsys  vfs.FS
	limit int

	mu   sync.Mutex
	ring []*File // files with an open descriptor
	hand int

	opens, evictions atomic.Int64
}

// FileStats counts what a [FileCache] did.
type FileStats struct {
	Open      int   // descriptors open now
	Limit     int   // descriptors wanted at most
	Opens     int64 // files opened since the start
	Evictions int64 // descriptors closed to make room
}

// NewFileCache makes a cache of at most limit descriptors on fsys; a limit below
// 1 counts as 1.
func NewFileCache(fsys vfs.FS, limit int) *FileCache {
	return &FileCache{fsys: fsys, limit: max(limit, 1)}
}

// FS is the file system that the files are opened on.
func (c *FileCache) FS() vfs.FS { return c.fsys }

// Stats reads the counters.
func (c *FileCache) Stats() FileStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return FileStats{Open: len(c.ring), Limit: c.limit, Opens: c.opens.Load(), Evictions: c.evictions.Load()}
}

// File names a file without touching the disk. flag is os.O_RDONLY or os.O_RDWR,
// with os.O_CREATE when the first use shall create an absent file.
func (c *FileCache) File(name string, flag int) *File {
	return &File{cache: c, name: name, flag: flag}
}

// add takes in a file that was just opened and closes others above the limit.
// The caller holds f.mu, which protects f from being chosen.
func (c *FileCache) add(f *File) {
	c.opens.Add(1)
	c.mu.Lock()
	f.slot = len(c.ring)
	c.ring = append(c.ring, f)
	victims := c.victims()
	c.mu.Unlock()
	for _, v := range victims {
		_ = v.closeLocked() // kept in v
		v.mu.Unlock()
		c.evictions.Add(1)
	}
}

// victims takes files out of the ring until the limit holds, and returns them
// locked. It gives up after two rounds: then the others are in use. Locks are
// only tried, because a File's lock comes before the cache's.
func (c *FileCache) victims() []*File {
	var out []*File
	for tries := 2 * len(c.ring); len(c.ring) > c.limit && tries > 0; tries-- {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		f := c.ring[c.hand]
		if !f.mu.TryLock() {
			c.hand++
			continue
		}
		if f.pins > 0 || f.used {
			f.used = false
			f.mu.Unlock()
			c.hand++
			continue
		}
		c.unlink(f)
		out = append(out, f)
	}
	return out
}

// unlink removes a file from the ring; the last one takes its slot.
func (c *FileCache) unlink(f *File) {
	last := c.ring[len(c.ring)-1]
	c.ring[f.slot] = last
	last.slot = f.slot
	c.ring[len(c.ring)-1] = nil
	c.ring = c.ring[:len(c.ring)-1]
}

func (c *FileCache) remove(f *File) {
	c.mu.Lock()
	c.unlink(f)
	c.mu.Unlock()
}

// File is a file whose descriptor comes and goes. It may be used by several
// goroutines at once.
//
// Bytes written through a descriptor that was closed since are as safe as any
// others: they are in the page cache of the system, and Sync through a new
// descriptor covers the whole file. A close that fails is reported by the next
// Sync.
type File struct {
	cache *FileCache
	slot  int // in cache.ring; guarded by cache.mu

	mu       sync.Mutex
	name     string
	flag     int
	fd       vfs.File // nil when closed
	pins     int
	used     bool  // since the clock's hand passed
	closing  bool  // close at the last Release
	closeErr error // of a descriptor closed with writes not yet synced
}

// Name is the path at present.
func (f *File) Name() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.name
}

// Acquire opens the file unless it is open, and keeps it open until Release.
// Errors are those of vfs.FS.OpenFile, fs.ErrNotExist among them.
func (f *File) Acquire() (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd == nil {
		fd, err := f.cache.fsys.OpenFile(f.name, f.flag, 0o644)
		if err != nil {
			return nil, err
		}
		// A later open must not bring back a file that was removed meanwhile.
		f.flag &^= os.O_CREATE | os.O_TRUNC | os.O_EXCL
		f.fd = fd
		f.cache.add(f)
	}
	f.pins++
	f.used, f.closing = true, false
	return f.fd, nil
}

// createOnNextUse lets the next opening create the file. A file that is open
// already is not touched.
func (f *File) createOnNextUse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flag |= os.O_CREATE
}

// Release ends one Acquire.
func (f *File) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pins <= 0 {
		panic("index: File.Release without Acquire: " + f.name)
	}
	f.pins--
	if f.pins == 0 && f.closing {
		_ = f.dropLocked() // kept in f
	}
}

// Close closes the descriptor, at once or when the last user releases it. The
// File stays usable: the next use opens it again. The error is that of a close
// that happened now.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd == nil {
		return nil
	}
	if f.pins > 0 {
		f.closing = true
		return nil
	}
	return f.dropLocked()
}

func (f *File) dropLocked() error {
	f.cache.remove(f)
	return f.closeLocked()
}

func (f *File) closeLocked() error {
	err := f.fd.Close()
	f.fd, f.closing = nil, false
	if err != nil && f.closeErr == nil {
		f.closeErr = err
	}
	return err
}

// ReadAt reads as io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	fd, err := f.Acquire()
	if err != nil {
		return 0, err
	}
	defer f.Release()
	return fd.ReadAt(p, off)
}

// WriteAt writes as io.WriterAt.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	fd, err := f.Acquire()
	if err != nil {
		return 0, err
	}
	defer f.Release()
	return fd.WriteAt(p, off)
}

// Truncate cuts the file to size bytes or extends it with zeros.
func (f *File) Truncate(size int64) error {
	fd, err := f.Acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	return fd.Truncate(size)
}

// Size is the length in bytes on disk.
func (f *File) Size() (int64, error) {
	fd, err := f.Acquire()
	if err != nil {
		return 0, err
	}
	defer f.Release()
	info, err := fd.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync makes all bytes written so far durable, whatever descriptor wrote them. It
// also reports, once and for all later calls, that closing a descriptor failed.
func (f *File) Sync() error {
	fd, err := f.Acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	if err := fd.Sync(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closeErr
}

// Rename moves the file on disk. Descriptors in use stay valid.
func (f *File) Rename(newName string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.cache.fsys.Rename(f.name, newName); err != nil {
		return err
	}
	f.name = newName
	return nil
}

// SetName tells that somebody else renamed the file or the folder it is in.
func (f *File) SetName(newName string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.name = newName
}
