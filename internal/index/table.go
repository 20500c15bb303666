package index

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// Options name an index and say how to open it.
type Options struct {
	Files        *FileCache
	Pages        *Cache // nil: read without a cache
	Name         string // path
	BaseOffset   int64  // of the segment
	MaxSizeBytes int64  // of a preallocated file: segment.index.bytes; unused for the transaction index
	ReadOnly     bool   // never create and never write; the use of an absent file is fs.ErrNotExist
}

// entry is the codec of one kind of entry.
type entry[E any] interface {
	decode(b []byte, baseOffset int64) E
	encode(b []byte, baseOffset int64)
}

// table is an array of entries in a file: what the three indexes have in common.
type table[E entry[E]] struct {
	o           Options
	entrySize   int64
	preallocate bool // create with full size and zeros; else create at the first append
	file        *File

	wmu sync.Mutex // held by writers, and while loading

	mu sync.Mutex // guards st
	st state[E]
}

// state is what readers copy before they look.
type state[E any] struct {
	loaded     bool
	generation uint64 // changes whenever entries go away
	n          int64  // entries
	sizeBytes  int64  // of the file
	last       E      // if n > 0
}

func (t *table[E]) init(o Options, entrySize int64, preallocate bool) {
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	t.o, t.entrySize, t.preallocate = o, entrySize, preallocate
	t.file = o.Files.File(o.Name, flag)
}

// Name is the path at present.
func (t *table[E]) Name() string { return t.file.Name() }

// Exists asks the disk whether the file is there.
func (t *table[E]) Exists() (bool, error) {
	_, err := t.o.Files.FS().Stat(t.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Rename moves the file on disk; an absent file gets the name when it is created.
func (t *table[E]) Rename(newName string) error {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	err := t.file.Rename(newName)
	if errors.Is(err, fs.ErrNotExist) {
		t.file.SetName(newName)
		return nil
	}
	return err
}

// SetName tells that somebody else renamed the file or its folder.
func (t *table[E]) SetName(newName string) { t.file.SetName(newName) }

// Remove deletes the file; an absent one is no error. A later use starts anew.
func (t *table[E]) Remove() error {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	t.setState(state[E]{})
	cerr := t.file.Close()
	err := t.o.Files.FS().Remove(t.Name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return cerr
}

// Close closes the descriptor and leaves the file as it is: Trim cuts it. The
// index may still be used.
func (t *table[E]) Close() error { return t.file.Close() }

// Len is the number of entries.
func (t *table[E]) Len() (int, error) {
	s, err := t.load()
	return int(s.n), err
}

// Sync makes the file durable. As any other use it creates an absent offset or
// time index first, as Kafka's flush of a segment does.
func (t *table[E]) Sync() error {
	s, err := t.load()
	if err != nil {
		return err
	}
	if !t.preallocate && s.generation == 0 {
		return nil // a transaction index without a file
	}
	return t.file.Sync()
}

func (t *table[E]) snapshot() state[E] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.st
}

func (t *table[E]) setState(s state[E]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.st = s
}

// load returns the state, from the disk at the first use.
func (t *table[E]) load() (state[E], error) {
	if s := t.snapshot(); s.loaded {
		return s, nil
	}
	t.wmu.Lock()
	defer t.wmu.Unlock()
	return t.loadLocked()
}

// loadLocked is load for holders of wmu.
func (t *table[E]) loadLocked() (state[E], error) {
	if s := t.snapshot(); s.loaded {
		return s, nil
	}
	s, err := t.open()
	if err != nil {
		return s, fmt.Errorf("open index: %w", err)
	}
	s.loaded = true
	t.setState(s)
	return s, nil
}

func (t *table[E]) open() (state[E], error) {
	size, err := t.file.Size()
	switch {
	case err == nil:
		return t.openExisting(size)
	case !errors.Is(err, fs.ErrNotExist) || t.o.ReadOnly:
		return state[E]{}, err
	case !t.preallocate:
		return state[E]{}, nil // generation 0: no file
	}
	t.file.createOnNextUse()
	if err := t.file.Truncate(t.fullSize()); err != nil {
		return state[E]{}, err
	}
	return state[E]{generation: t.o.Pages.newGeneration(), sizeBytes: t.fullSize()}, nil
}

// openExisting takes a file for full of entries, as nothing in it tells how many
// were written. Bytes behind the last whole entry do not count.
func (t *table[E]) openExisting(size int64) (state[E], error) {
	s := state[E]{generation: t.o.Pages.newGeneration(), n: size / t.entrySize, sizeBytes: size}
	if s.n == 0 {
		return s, nil
	}
	last, err := t.at(s, s.n-1)
	s.last = last
	return s, err
}

// fullSize is the largest multiple of the entry size within the limit.
func (t *table[E]) fullSize() int64 { return t.o.MaxSizeBytes / t.entrySize * t.entrySize }

// capacity is the number of entries the file has room for.
func (t *table[E]) capacity(s state[E]) int64 { return s.sizeBytes / t.entrySize }

// at reads entry i of a state, 0 ≤ i < s.n, through the cache.
func (t *table[E]) at(s state[E], i int64) (E, error) { return t.reader(s).at(i) }

// reader reads entries of one state. It asks the cache once for entries of one
// page that follow each other.
type reader[E entry[E]] struct {
	t    *table[E]
	s    state[E]
	page int64 // number of the page in data
	data []byte
}

func (t *table[E]) reader(s state[E]) *reader[E] { return &reader[E]{t: t, s: s} }

// at reads entry i, 0 ≤ i < s.n.
func (r *reader[E]) at(i int64) (e E, err error) {
	size := r.t.entrySize
	perPage := pageBytes / size
	page, from := i/perPage, i%perPage*size
	if r.page != page || int64(len(r.data)) < from+size {
		if r.data, err = r.t.page(r.s, page, from+size); err != nil {
			return e, err
		}
		r.page = page
	}
	return e.decode(r.data[from:from+size], r.t.o.BaseOffset), nil
}

// page returns a page, of need bytes at least and none behind the state's entries
// unless the cache has them.
func (t *table[E]) page(s state[E], page, need int64) ([]byte, error) {
	key := pageKey{s.generation, page}
	if data, ok := t.o.Pages.get(key, int(need)); ok {
		return data, nil
	}
	perPage := pageBytes / t.entrySize
	data := make([]byte, min(s.n-page*perPage, perPage)*t.entrySize)
	if err := t.readFull(data, page*perPage*t.entrySize); err != nil {
		return nil, err
	}
	t.o.Pages.put(key, data)
	return data, nil
}

// readFull reads exactly len(p) bytes; a file that ends before is damaged.
func (t *table[E]) readFull(p []byte, off int64) error {
	n, err := t.file.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return &CorruptError{Name: t.Name(), Entry: (off + int64(n)) / t.entrySize, Kind: Torn,
			Reason: fmt.Sprintf("the file ends at byte %d, before its last entry", off+int64(n))}
	}
	return fmt.Errorf("read index: %w", err)
}

// read runs look on a consistent state, again when entries went away meanwhile.
func (t *table[E]) read(look func(s state[E]) error) error {
	for {
		s, err := t.load()
		if err != nil {
			return err
		}
		err = look(s)
		if t.snapshot().generation == s.generation {
			return err
		}
	}
}

// entryAt is Entry of the indexes.
func (t *table[E]) entryAt(i int) (e E, err error) {
	err = t.read(func(s state[E]) error {
		if i < 0 || int64(i) >= s.n {
			return fmt.Errorf("index %s has %d entries, not entry %d", t.Name(), s.n, i)
		}
		var err error
		e, err = t.at(s, int64(i))
		return err
	})
	return e, err
}

// append writes an entry behind the last; spare slots stay free.
func (t *table[E]) append(s state[E], e E, spare int64) error {
	if s.n >= t.capacity(s)-spare && t.preallocate {
		return ErrFull
	}
	buf := make([]byte, t.entrySize)
	e.encode(buf, t.o.BaseOffset)
	pos := s.n * t.entrySize
	if _, err := t.file.WriteAt(buf, pos); err != nil {
		return fmt.Errorf("append to index: %w", err)
	}
	s.n++
	s.last = e
	s.sizeBytes = max(s.sizeBytes, pos+t.entrySize)
	t.setState(s)
	return nil
}

// keep drops all entries from number n on. The file keeps its size.
func (t *table[E]) keep(s state[E], n int64) error {
	if n >= s.n {
		return nil
	}
	s.generation = t.o.Pages.newGeneration()
	s.n = n
	var zero E
	s.last = zero
	if n > 0 {
		last, err := t.at(s, n-1)
		if err != nil {
			return err
		}
		s.last = last
	}
	t.setState(s)
	return nil
}

// resize sets the file's size, never below its entries.
func (t *table[E]) resize(s state[E], size int64) error {
	size = max(size, s.n*t.entrySize)
	if size == s.sizeBytes {
		return nil
	}
	if err := t.file.Truncate(size); err != nil {
		return fmt.Errorf("resize index: %w", err)
	}
	s.sizeBytes = size
	t.setState(s)
	return nil
}

// write runs change with the state, excluding other writers.
func (t *table[E]) write(change func(s state[E]) error) error {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	s, err := t.loadLocked()
	if err != nil {
		return err
	}
	return change(s)
}

// preallocated is what the offset and the time index share beyond a table: a file
// that is larger than its entries while its segment is active.
type preallocated[E entry[E]] struct{ table[E] }

// Grow gives the file its full size, as the index of an active segment has it.
// The entries stay.
func (t *preallocated[E]) Grow() error {
	return t.write(func(s state[E]) error { return t.resize(s, t.fullSize()) })
}

// Trim cuts the file to its entries, as the index of a closed segment has it.
func (t *preallocated[E]) Trim() error {
	return t.write(func(s state[E]) error { return t.resize(s, 0) })
}

// Reset drops all entries and makes the file a new one of full size, all zeros,
// whatever was in it: the start of a rebuild.
func (t *preallocated[E]) Reset() error {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	t.file.createOnNextUse()
	if err := t.file.Truncate(0); err != nil {
		return fmt.Errorf("reset index: %w", err)
	}
	s := state[E]{loaded: true, generation: t.o.Pages.newGeneration()}
	t.setState(s)
	return t.resize(s, t.fullSize())
}

// CanHold says whether an offset is within 2^31-1 of the base offset.
func (t *preallocated[E]) CanHold(offset int64) bool { return fitsInt32(offset - t.o.BaseOffset) }

func fitsInt32(rel int64) bool { return rel >= 0 && rel <= 1<<31-1 }
