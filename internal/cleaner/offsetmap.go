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
// The slots are one table with open addressing, in chunks: keys lie in the order of their hashes, each at its home or
// behind it with no free slot between. Where a key is at home grows with its hash, so the table becomes larger in
// place: chunks are added, the keys move to the end, and from there, in order, to their new places. It never takes
// more memory than what it has, and no more than the bytes that it is given, but for two chunks at most.
type offsetMap struct {
	seeds    [2]maphash.Seed
	chunks   [][]slot
	homes    int   // slots in which a key can be at home: the first ones
	most     int   // homes that the table may grow to
	capacity int   // keys that it takes
	size     int   // keys in it
	latest   int64 // the offset up to which the log is in the map; -1: nothing is
}

// slot is a key; offset is one more than the key's, 0 in a free slot.
type slot struct {
	a, b   uint64
	offset int64
}

const (
	chunkBits  = 12
	chunkSlots = 1 << chunkBits
	firstHomes = chunkSlots / 2
)

// newOffsetMap makes a map that takes as many keys as fit into bytes when a part loadFactor of it is used.
func newOffsetMap(bytes int64, loadFactor float64) *offsetMap {
	slots := int(max(min(bytes, maxMapBytes)/slotBytes, 0))
	m := &offsetMap{capacity: int(float64(slots) * loadFactor), latest: -1}
	// Two chunks are kept for the last one that is not full, and for keys behind the last home. A sixteenth of the
	// homes must stay free, or it takes too long to find one.
	m.most = max(slots-2*chunkSlots, m.capacity+m.capacity/15, 1)
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
	if m.size >= m.homes-m.homes/4 && m.homes < m.most {
		m.grow()
	}
	a, b := m.hash(key)
	m.insert(slot{a, b, offset + 1})
	m.latest = offset
	return true
}

// get is the offset of a key's latest record in the dirty part; -1 when it has none there.
func (m *offsetMap) get(key []byte) int64 {
	if m.size == 0 {
		return -1
	}
	a, b := m.hash(key)
	for i := m.home(a); i < m.slots(); i++ {
		switch s := m.at(i); {
		case s.offset == 0 || a < s.a:
			return -1
		case s.a == a && s.b == b:
			return s.offset - 1
		}
	}
	return -1
}

// utilization is the part of the capacity that is used.
func (m *offsetMap) utilization() float64 { return float64(m.size) / float64(max(m.capacity, 1)) }

func (m *offsetMap) slots() int { return len(m.chunks) << chunkBits }

func (m *offsetMap) at(i int) *slot { return &m.chunks[i>>chunkBits][i&(chunkSlots-1)] }

// home is the first slot in which a hash may be.
func (m *offsetMap) home(a uint64) int {
	high, _ := bits.Mul64(a, uint64(m.homes))
	return int(high)
}

func (m *offsetMap) addChunk() { m.chunks = append(m.chunks, make([]slot, chunkSlots)) }

// less tells whether the hash of s is before another.
func (s *slot) less(a, b uint64) bool { return s.a < a || s.a == a && s.b < b }

// insert puts a key into its place and those behind it one further, up to the next free slot.
func (m *offsetMap) insert(one slot) {
	i := m.home(one.a)
	for ; i < m.slots(); i++ {
		s := m.at(i)
		if s.a == one.a && s.b == one.b && s.offset != 0 {
			s.offset = one.offset
			return
		}
		if s.offset == 0 || !s.less(one.a, one.b) {
			break
		}
	}
	m.size++
	for ; i < m.slots(); i++ {
		s := m.at(i)
		*s, one = one, *s
		if one.offset == 0 {
			return
		}
	}
	m.addChunk()
	*m.at(i) = one
}

// grow makes the table half as large again, up to what it may have.
func (m *offsetMap) grow() {
	m.homes = min(max(m.homes+m.homes/2, firstHomes), m.most)
	used := m.slots()
	for m.slots() < m.homes {
		m.addChunk()
	}
	next := 0 // the first slot that is free for those that follow
	for i := m.moveBack(0, used); i < m.slots(); i++ {
		to := max(m.home(m.at(i).a), next)
		for to > i { // those that are left need more room
			m.addChunk()
			i = m.moveBack(i, m.slots()-chunkSlots)
		}
		one := *m.at(i)
		*m.at(i) = slot{}
		*m.at(to) = one
		next = to + 1
	}
}

// moveBack moves the keys in the slots from…to to the end of the table, in their order. It returns where they begin.
func (m *offsetMap) moveBack(from, to int) int {
	end := m.slots()
	for i := to - 1; i >= from; i-- {
		if s := m.at(i); s.offset != 0 {
			end--
			one := *s
			*s = slot{}
			*m.at(end) = one
		}
	}
	return end
}
