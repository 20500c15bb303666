package cleaner

import (
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// allocated is the memory that the table has, in bytes.
func (m *offsetMap) allocated() int64 { return int64(m.slots()) * slotBytes }

// spare is the memory that a table may have besides what it was given, in bytes.
const spare = 2 * chunkSlots * slotBytes

func TestOffsetMap(t *testing.T) {
	for _, capacity := range []int{1, 2, 15, 1000, 50_000, 200_000} {
		m := newOffsetMap(int64(capacity)*slotBytes, 1)
		key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
		for round := range 2 {
			for i := range capacity - 1 {
				if !m.put(key(i), int64(round*capacity+i)) {
					t.Fatalf("capacity %d: no room for key %d", capacity, i)
				}
			}
		}
		for i := range capacity - 1 {
			if got, want := m.get(key(i)), int64(capacity+i); got != want {
				t.Fatalf("capacity %d, key %d: got %d, want %d", capacity, i, got, want)
			}
		}
		if got := m.get([]byte("absent")); got != -1 {
			t.Errorf("absent key: got %d", got)
		}
		if !m.put(key(capacity), 7) || m.put(key(capacity), 8) || m.latest != 7 {
			t.Errorf("capacity %d: the map does not end where it is full: latest %d", capacity, m.latest)
		}
		// With a load factor of 1 a fifteenth more is taken.
		if most := int64(capacity)*slotBytes*16/15 + spare; m.allocated() > most {
			t.Errorf("capacity %d: %d bytes, at most %d", capacity, m.allocated(), most)
		}
	}
}

// TestOffsetMapMemory fills maps and watches that they never take more than they are given: what they have is added to
// and never made anew.
func TestOffsetMapMemory(t *testing.T) {
	for _, given := range []int64{0, 1, 1000, 100_000, 4 << 20, 16 << 20} {
		m := newOffsetMap(given, 0.9)
		most := max(given, spare)
		var key [8]byte
		var chunks []*slot
		for i := uint64(0); ; i++ {
			binary.LittleEndian.PutUint64(key[:], i)
			if !m.put(key[:], int64(i)) {
				break
			}
			if m.allocated() > most {
				t.Fatalf("%d bytes given: %d taken for %d keys", given, m.allocated(), m.size)
			}
			if len(m.chunks) == len(chunks) {
				continue
			}
			for j, c := range chunks {
				if c != &m.chunks[j][0] {
					t.Fatalf("chunk %d was made anew", j)
				}
			}
			for _, c := range m.chunks[len(chunks):] {
				chunks = append(chunks, &c[0])
			}
		}
		if want := int(float64(given/slotBytes) * 0.9); m.size != want {
			t.Errorf("%d bytes given: room for %d keys, want %d", given, m.size, want)
		}
	}
}

// TestOffsetMapGrowsWithContent watches that few keys take little memory of a large buffer.
func TestOffsetMapGrowsWithContent(t *testing.T) {
	m := newOffsetMap(128<<20, 0.9)
	if m.allocated() != 0 {
		t.Errorf("an empty map takes %d bytes", m.allocated())
	}
	var key [8]byte
	for i := range 100_000 {
		binary.LittleEndian.PutUint64(key[:], uint64(i))
		m.put(key[:], int64(i))
		if most := max(int64(i+1)*slotBytes*5/2, spare); m.allocated() > most {
			t.Fatalf("%d keys take %d bytes, at most %d", i+1, m.allocated(), most)
		}
	}
}

// TestOffsetMapModel puts chosen hashes, most of them near each other or at the ends, and compares with a map of Go.
func TestOffsetMapModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newOffsetMap(rapid.Int64Range(1, 40_000).Draw(t, "slots")*slotBytes, 0.9)
		model := map[[2]uint64]int64{}
		hashes := rapid.Custom(func(t *rapid.T) [2]uint64 {
			end := rapid.SampledFrom([]uint64{0, 1 << 63, ^uint64(0) - 9999}).Draw(t, "near")
			return [2]uint64{end + rapid.Uint64Range(0, 9999).Draw(t, "a"), rapid.Uint64Range(0, 2).Draw(t, "b")}
		})
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			for i, h := range rapid.SliceOfN(hashes, 1, 300).Draw(t, "hashes") {
				if m.size >= m.homes-m.homes/4 && m.homes < m.most {
					m.grow()
				}
				m.insert(slot{h[0], h[1], int64(i + 1)})
				model[h] = int64(i + 1)
			}
		}
		found := map[[2]uint64]int64{}
		var last slot
		free := -1
		for i := range m.slots() {
			s := *m.at(i)
			if s.offset == 0 {
				free = i
				continue
			}
			if len(found) > 0 && !last.less(s.a, s.b) {
				t.Fatalf("slot %d is not after the one before", i)
			}
			if home := m.home(s.a); home > i || home <= free {
				t.Fatalf("the key in slot %d, at home in %d, is not found", i, home)
			}
			found[[2]uint64{s.a, s.b}], last = s.offset, s
		}
		if len(found) != len(model) || m.size != len(model) {
			t.Fatalf("%d keys in the table, %d counted, want %d", len(found), m.size, len(model))
		}
		for h, offset := range model {
			if found[h] != offset {
				t.Fatalf("hash %x: %d, want %d", h, found[h], offset)
			}
		}
	})
}
