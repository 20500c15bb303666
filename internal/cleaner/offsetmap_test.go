package cleaner

import (
	"fmt"
	"testing"
)

func TestOffsetMap(t *testing.T) {
	for _, capacity := range []int{1, 2, 15, 1000, 50_000} {
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
		slots := 0
		for _, s := range m.shards {
			slots += len(s.slots)
		}
		if most := capacity*2 + minShard<<shardBits; slots > most {
			t.Errorf("capacity %d: %d slots, at most %d", capacity, slots, most)
		}
	}
}
