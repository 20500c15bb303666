package cleaner

import (
	"hash/maphash"
	"math/bits"
)

// slotBytes is what one key takes in an offset map, as in Kafka: a hash of 16 bytes and an offset.
const slotBytes = 24

// maxMapBytes bounds the map of one thread, as in Kafka.
const maxMapBytes = 1<<31 - 1

// offsetMap maps keys to offsets, by their hashes alone: two keys of one hash would be taken for one. Both halves of
// the hash have seeds of their own, drawn for each map, so that nobody can make such keys.
//
// Kafka: hashes are MD5. Which records survive does not depend on it.
//
// The map grows with its content, shard by shard, so that growing needs little memory besides.
type offsetMap struct {
	seeds    [2]maphash.Seed
	shards   []shard
	capacity int   // keys that it takes
	size     int   // keys in it
	latest   int64 // the offset up to which the log is in the map; -1: nothing is
}

// shard is a table with open addressing.
type shard struct {
	slots []slot
	n     int
	share int // slots that the table may have before it has to be almost full to grow
}

// slot is a key; offset is one more than the key's, 0 in a free slot.
type slot struct {
	a, b   uint64
	offset int64
}

const (
	shardBits = 6
	minShard  = 16 // slots of a shard's first table
)

// newOffsetMap makes a map that takes as many keys as fit into bytes when a part loadFactor of it is used.
func newOffsetMap(bytes int64, loadFactor float64) *offsetMap {
	slots := max(min(bytes, maxMapBytes)/slotBytes, 0)
	m := &offsetMap{shards: make([]shard, 1<<shardBits), capacity: int(float64(slots) * loadFactor), latest: -1}
	for i := range m.shards { // keys do not spread evenly
		m.shards[i].share = int(slots>>shardBits + slots>>(shardBits+5) + minShard)
	}
	m.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	return m
}

func (m *offsetMap) hash(key []byte) (a, b uint64) {
	return maphash.Bytes(m.seeds[0], key), maphash.Bytes(m.seeds[1], key)
}

// put notes the offset of a key's latest record. It is false, and nothing is noted, when the map is full: also for a
// key that it has.
func (m *offsetMap) put(key []byte, offset int64) bool {
	if m.size >= m.capacity {
		return false
	}
	a, b := m.hash(key)
	if m.shards[a>>(64-shardBits)].put(a, b, offset+1) {
		m.size++
	}
	m.latest = offset
	return true
}

// get is the offset of a key's latest record in the dirty part; -1 when it has none there.
func (m *offsetMap) get(key []byte) int64 {
	a, b := m.hash(key)
	return m.shards[a>>(64-shardBits)].get(a, b) - 1
}

// utilization is the part of the capacity that is used.
func (m *offsetMap) utilization() float64 { return float64(m.size) / float64(max(m.capacity, 1)) }

// find is the slot that holds a hash, or the free one that is to take it.
func (s *shard) find(a, b uint64) *slot {
	high, _ := bits.Mul64(a<<shardBits, uint64(len(s.slots)))
	for i := int(high); ; {
		one := &s.slots[i]
		if one.offset == 0 || one.a == a && one.b == b {
			return one
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
}

func (s *shard) get(a, b uint64) int64 {
	if s.n == 0 {
		return 0
	}
	return s.find(a, b).offset
}

// put reports whether the hash is new.
func (s *shard) put(a, b uint64, offset int64) bool {
	if full := len(s.slots) - len(s.slots)/4; s.n >= full {
		s.grow()
	}
	one := s.find(a, b)
	fresh := one.offset == 0
	*one = slot{a, b, offset}
	if fresh {
		s.n++
	}
	return fresh
}

// grow makes the table half as large again, up to its share; then only when a sixteenth of it is free.
func (s *shard) grow() {
	old := s.slots
	size := max(len(old)+len(old)/2, minShard)
	switch {
	case len(old) < s.share:
		size = min(size, s.share)
	case s.n < len(old)-len(old)/16:
		return
	default:
		size = len(old) + len(old)/8
	}
	s.slots = make([]slot, size)
	for _, one := range old {
		if one.offset != 0 {
			*s.find(one.a, one.b) = one
		}
	}
}
