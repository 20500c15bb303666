package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync/atomic"
)

// overlayFile is an open file of an overlay; base has the bytes that were not changed.
type overlayFile struct {
	overlay *overlay
	name    string
	node    *overlayNode
	base    File // nil: no bytes of base show through
	closed  atomic.Bool
}

// Close closes the file of base.
func (f *overlayFile) Close() error {
	if !f.closed.Swap(true) {
		f.overlay.unuse(f.name, f.node)
	}
	if f.base == nil {
		return nil
	}
	return f.base.Close()
}

// Stat describes the file.
func (f *overlayFile) Stat() (fs.FileInfo, error) { return f.node.info(filepath.Base(f.name)), nil }

// Fd is that of base while no byte was changed: who reads at most Stat's size through it sees the right ones, also of
// what is added later. There is none after a change.
func (f *overlayFile) Fd() (uintptr, bool) {
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if f.base == nil || len(n.pages) > 0 || n.size > n.baseBytes {
		return 0, false
	}
	return f.base.Fd()
}

// Sync does nothing.
func (f *overlayFile) Sync() error { return nil }

// ReadAt reads changed pages and, between them, base.
func (f *overlayFile) ReadAt(p []byte, off int64) (int, error) {
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if off < 0 || off >= n.size {
		return 0, io.EOF
	}
	var end error
	if rest := n.size - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	if len(n.pages) == 0 {
		baseBytes := n.baseBytes
		n.mu.Unlock() // a slow disk holds up nobody
		err := f.readBase(p, off, baseBytes)
		n.mu.Lock()
		if err != nil {
			return 0, err
		}
		return len(p), end
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		number, in := at/overlayPage, int(at%overlayPage)
		part := p[done:min(len(p), done+overlayPage-in)]
		if page := n.pages[number]; page != nil {
			copy(part, page[in:])
		} else if err := f.readBase(part, at, n.baseBytes); err != nil {
			return done, err
		}
		done += len(part)
	}
	return len(p), end
}

// readBase reads the bytes of base, baseBytes of which show through, and zeros behind them.
func (f *overlayFile) readBase(p []byte, off, baseBytes int64) error {
	visible := min(max(baseBytes-off, 0), int64(len(p)))
	clear(p[visible:])
	if visible == 0 || f.base == nil {
		clear(p)
		return nil
	}
	n, err := f.base.ReadAt(p[:visible], off)
	if int64(n) < visible && errors.Is(err, io.EOF) { // cut by somebody else meanwhile
		clear(p[n:])
		return nil
	}
	if int64(n) == visible {
		return nil
	}
	return err
}

// WriteAt changes pages in memory.
func (f *overlayFile) WriteAt(p []byte, off int64) (int, error) {
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = true
	if n.pages == nil {
		n.pages = make(map[int64][]byte)
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		number, in := at/overlayPage, int(at%overlayPage)
		page := n.pages[number]
		if page == nil {
			page = make([]byte, overlayPage)
			if err := f.readBase(page, number*overlayPage, n.baseBytes); err != nil {
				return done, err
			}
			n.pages[number] = page
		}
		done += copy(page[in:], p[done:])
	}
	n.size = max(n.size, off+int64(len(p)))
	return len(p), nil
}

// Truncate cuts or extends the file in memory.
func (f *overlayFile) Truncate(size int64) error {
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = n.kept || size != n.size
	if size < n.size {
		n.baseBytes = min(n.baseBytes, size)
		for number, page := range n.pages {
			switch start := number * overlayPage; {
			case start >= size:
				delete(n.pages, number)
			case start+overlayPage > size:
				clear(page[size-start:])
			}
		}
	}
	n.size = size
	return nil
}
