package index

import (
	"sync"
	"sync/atomic"
)

const (
	// pageBytes is the most that one page holds. A page holds whole entries, so a
	// time index, whose entries have 12 bytes, has pages of 4092.
	pageBytes = 4096
	// pageOverhead estimates what a page costs beside its bytes.
	pageOverhead = 128
	maxShards    = 16
)

// Cache holds index pages and [Notes] of all segments of the process, bounded in
// bytes, with replacement by the clock rule. A nil Cache holds nothing.
//
// Pages are keyed by generation: an index takes a new one when entries are
// removed or its file is replaced, so old pages are never seen again and fall out
// in time.
type Cache struct {
	shards                  []shard // a power of two of them
	generation              atomic.Uint64
	hits, misses, evictions atomic.Int64
}

// CacheStats counts what a [Cache] did. A look-up in an index counts one hit or
// miss for every page it touches; notes are not counted as such.
type CacheStats struct {
	Hits, Misses, Evictions int64
	SizeBytes               int64 // held now
	LimitBytes              int64
}

type pageKey struct {
	generation uint64
	page       int64
}

type page struct {
	key  pageKey
	data []byte // whole entries; never written after it is in the cache
	used bool
}

type shard struct {
	mu    sync.Mutex
	pages map[pageKey]*page
	ring  []*page
	hand  int
	size  int64
	limit int64
}

// NewCache makes a cache of at most sizeBytes; 0 or less holds nothing.
func NewCache(sizeBytes int64) *Cache {
	n := 1
	for n < maxShards && sizeBytes/int64(2*n) >= 16*pageBytes {
		n *= 2
	}
	c := &Cache{shards: make([]shard, n)}
	for i := range c.shards {
		c.shards[i].limit = max(sizeBytes, 0) / int64(n)
		c.shards[i].pages = make(map[pageKey]*page)
	}
	return c
}

// Stats reads the counters.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	s := CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Evictions: c.evictions.Load()}
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		s.SizeBytes += sh.size
		s.LimitBytes += sh.limit
		sh.mu.Unlock()
	}
	return s
}

// lastGeneration serves indexes without a cache: generations must differ there
// too, since readers notice removed entries by them.
var lastGeneration atomic.Uint64

func (c *Cache) newGeneration() uint64 {
	if c == nil {
		return lastGeneration.Add(1)
	}
	return c.generation.Add(1)
}

func (c *Cache) shard(k pageKey) *shard {
	h := (k.generation ^ uint64(k.page)*0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15
	return &c.shards[(h>>32)&uint64(len(c.shards)-1)]
}

// get returns a page of at least need bytes. Its bytes must not be changed.
func (c *Cache) get(k pageKey, need int) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	data, ok := c.find(k, need)
	if ok {
		c.hits.Add(1)
	} else {
		c.misses.Add(1)
	}
	return data, ok
}

// find is get without counting.
func (c *Cache) find(k pageKey, need int) ([]byte, bool) {
	sh := c.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	p := sh.pages[k]
	if p == nil || len(p.data) < need {
		return nil, false
	}
	p.used = true
	return p.data, true
}

// put keeps data, replacing a shorter page of the same key. The caller gives the
// slice away.
func (c *Cache) put(k pageKey, data []byte) {
	if c == nil {
		return
	}
	sh := c.shard(k)
	cost := int64(len(data)) + pageOverhead
	if cost > sh.limit {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if old := sh.pages[k]; old != nil {
		if len(old.data) < len(data) {
			sh.size += int64(len(data) - len(old.data))
			old.data = data
		}
		old.used = true
	} else {
		p := &page{key: k, data: data}
		sh.pages[k] = p
		sh.ring = append(sh.ring, p)
		sh.size += cost
	}
	c.evictions.Add(sh.shrink())
}

// shrink drops pages until the limit holds, and returns their number.
func (sh *shard) shrink() (n int64) {
	for sh.size > sh.limit && len(sh.ring) > 0 {
		if sh.hand >= len(sh.ring) {
			sh.hand = 0
		}
		p := sh.ring[sh.hand]
		if p.used {
			p.used = false
			sh.hand++
			continue
		}
		last := len(sh.ring) - 1
		sh.ring[sh.hand] = sh.ring[last]
		sh.ring[last] = nil
		sh.ring = sh.ring[:last]
		delete(sh.pages, p.key)
		sh.size -= int64(len(p.data)) + pageOverhead
		n++
	}
	return n
}
