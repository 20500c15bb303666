package index

import "sync/atomic"

// Notes are bytes that a [Cache] holds besides pages, within its bound: what was worked out from parts of one file, by
// the position of the part. They may be dropped at any time. The zero Notes hold nothing. Safe for concurrent use.
//
// Whoever reads the file to make a note asks for the Edition first, so that a note on what was there before a Clear is
// not found after it.
type Notes struct {
	cache   *Cache
	edition atomic.Uint64
}

// Open has the notes kept in a cache; in none if it is nil.
func (n *Notes) Open(c *Cache) {
	n.cache = c
	n.Clear()
}

// Clear drops all notes.
func (n *Notes) Clear() { n.edition.Store(n.cache.newGeneration()) }

// Edition changes with each Clear.
func (n *Notes) Edition() uint64 { return n.edition.Load() }

// Get returns the note on the part at a position, nil when there is none. It must not be changed.
func (n *Notes) Get(edition uint64, pos int64) []byte {
	if n.cache == nil {
		return nil
	}
	data, _ := n.cache.find(pageKey{edition, pos}, 0)
	return data
}

// Put keeps a note, which the caller gives away, unless there is one of at least its length.
func (n *Notes) Put(edition uint64, pos int64, data []byte) { n.cache.put(pageKey{edition, pos}, data) }
