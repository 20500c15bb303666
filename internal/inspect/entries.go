package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/vfs"
)

// entryReader walks an index file entry by entry in bounded memory.
type entryReader struct {
	file    vfs.File // nil: absent
	name    string
	width   int64
	size    int64
	padding int64 // zero bytes in whole entries at the end, as preallocation leaves
	n       int64 // entries before the padding
	next    int64
	buf     []byte
	bufFrom int64 // number of the first entry in buf
}

const entryChunk = 2048 // entries read at a time

// openEntries opens an index file; an absent one has a nil file. One that its owner cuts meanwhile, as at a roll, is
// opened again.
func openEntries(fsys vfs.FS, name string, width int64) (r *entryReader, err error) {
	for range looksInUse {
		if r, err = openEntriesOnce(fsys, name, width); !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
	}
	return r, err
}

func openEntriesOnce(fsys vfs.FS, name string, width int64) (*entryReader, error) {
	r := &entryReader{name: name, width: width}
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file, r.size = f, info.Size()
	r.n = r.size / width
	if err := r.measurePadding(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// measurePadding finds the zeros at the end, from the end on.
func (r *entryReader) measurePadding() error {
	end := r.n * r.width
	buf := make([]byte, min(32<<10/r.width*r.width, end))
	for end > 0 {
		part := buf[:min(int64(len(buf)), end)]
		if err := r.readFull(part, end-int64(len(part))); err != nil {
			return err
		}
		rest := int64(len(bytes.TrimRight(part, "\x00")))
		if rest > 0 {
			used := end - int64(len(part)) + rest
			r.n = (used + r.width - 1) / r.width
			break
		}
		end -= int64(len(part))
		r.n = end / r.width
	}
	r.padding = r.size/r.width*r.width - r.n*r.width
	return nil
}

func (r *entryReader) readFull(p []byte, pos int64) error {
	n, err := r.file.ReadAt(p, pos)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("read %s at %d: %w", r.name, pos, io.ErrUnexpectedEOF)
	}
	return err
}

func (r *entryReader) close() {
	if r.file != nil {
		_ = r.file.Close() // only read
	}
}

// tail is how many bytes behind the last whole entry there are.
func (r *entryReader) tail() int64 { return r.size % r.width }

// peek is the next entry's bytes, nil at the end or when they cannot be read.
func (r *entryReader) peek() []byte {
	if r.file == nil || r.next >= r.n {
		return nil
	}
	if at := r.next - r.bufFrom; at >= 0 && (at+1)*r.width <= int64(len(r.buf)) {
		return r.buf[at*r.width : (at+1)*r.width]
	}
	count := min(entryChunk, r.n-r.next)
	if int64(cap(r.buf)) < count*r.width {
		r.buf = make([]byte, count*r.width)
	}
	r.buf, r.bufFrom = r.buf[:count*r.width], r.next
	if err := r.readFull(r.buf, r.next*r.width); err != nil {
		r.n = r.next // cut by its owner meanwhile
		return nil
	}
	return r.buf[:r.width]
}

// offsetCursor walks an offset index.
type offsetCursor struct {
	*entryReader
	base int64
}

func (c *offsetCursor) entry() (e OffsetEntry, ok bool) {
	b := c.peek()
	if b == nil {
		return e, false
	}
	return OffsetEntry{
		Offset: c.base + int64(int32(binary.BigEndian.Uint32(b))), Pos: int64(int32(binary.BigEndian.Uint32(b[4:]))),
	}, true
}

// timeCursor walks a time index.
type timeCursor struct {
	*entryReader
	base int64
}

func (c *timeCursor) entry() (e TimeEntry, ok bool) {
	b := c.peek()
	if b == nil {
		return e, false
	}
	return TimeEntry{
		Timestamp: int64(binary.BigEndian.Uint64(b)), Offset: c.base + int64(int32(binary.BigEndian.Uint32(b[8:]))),
	}, true
}

// hasEntries reports whether the offset index of a segment holds an entry.
func hasEntries(fsys vfs.FS, dir string, base int64) bool {
	r, err := openEntries(fsys, filepath.Join(dir, segment.Name(base, segment.IndexSuffix)), index.OffsetEntrySize)
	if err != nil {
		return false
	}
	defer r.close()
	return r.n > 0
}
