package producerstate

// longMap maps producer ids to values and iterates in the order that Java's
// HashMap<Long, V> has after the same calls. A snapshot lists the producers in
// that order, and equal state must give equal bytes.
//
// The order is that of buckets, and within a bucket that of insertion. It depends
// on the number of buckets, which only grows, so removed entries leave a trace.
// Not followed: a bucket of nine and more entries in a table of 64 buckets and
// more, which Java turns into a tree. Producer ids are given out in sequence, so
// buckets stay short; if not, the snapshot is as valid, in another order.
type longMap[V any] struct {
	buckets []*longNode[V] // a power of two of them
	size    int
}

type longNode[V any] struct {
	key   int64
	value V
	next  *longNode[V]
}

const (
	longMapBuckets = 16
	treeLength     = 8  // bucket length at which Java thinks of a tree,
	treeBuckets    = 64 // but doubles a smaller table instead
)

func (m *longMap[V]) bucket(key int64) int {
	h := uint32(key) ^ uint32(uint64(key)>>32)
	h ^= h >> 16
	return int(h & uint32(len(m.buckets)-1))
}

func (m *longMap[V]) get(key int64) (v V, ok bool) {
	if len(m.buckets) == 0 {
		return v, false
	}
	for n := m.buckets[m.bucket(key)]; n != nil; n = n.next {
		if n.key == key {
			return n.value, true
		}
	}
	return v, false
}

func (m *longMap[V]) put(key int64, v V) {
	if len(m.buckets) == 0 {
		m.buckets = make([]*longNode[V], longMapBuckets)
	}
	length := 0
	at := &m.buckets[m.bucket(key)]
	for ; *at != nil; at = &(*at).next {
		if (*at).key == key {
			(*at).value = v
			return
		}
		length++
	}
	*at = &longNode[V]{key: key, value: v}
	if length >= treeLength && len(m.buckets) < treeBuckets {
		m.grow()
	}
	m.size++
	if m.size > len(m.buckets)/4*3 {
		m.grow()
	}
}

// grow doubles the table; entries of a bucket keep their order.
func (m *longMap[V]) grow() {
	old := m.buckets
	m.buckets = make([]*longNode[V], 2*len(old))
	for _, n := range old {
		var low, high *longNode[V]
		lowEnd, highEnd := &low, &high
		i := 0
		for ; n != nil; n = n.next {
			if i = m.bucket(n.key); i < len(old) {
				*lowEnd, lowEnd = n, &n.next
			} else {
				*highEnd, highEnd = n, &n.next
			}
		}
		*lowEnd, *highEnd = nil, nil
		if low != nil {
			m.buckets[m.bucket(low.key)] = low
		}
		if high != nil {
			m.buckets[m.bucket(high.key)] = high
		}
	}
}

// all iterates in order. The map must not change meanwhile.
func (m *longMap[V]) all(yield func(int64, V) bool) {
	for _, n := range m.buckets {
		for ; n != nil; n = n.next {
			if !yield(n.key, n.value) {
				return
			}
		}
	}
}

// removeIf removes the entries that drop is true for, and returns their number.
// The table keeps its size.
func (m *longMap[V]) removeIf(drop func(V) bool) (removed int) {
	for i := range m.buckets {
		for at := &m.buckets[i]; *at != nil; {
			if !drop((*at).value) {
				at = &(*at).next
				continue
			}
			*at = (*at).next
			removed++
		}
	}
	m.size -= removed
	return removed
}

// clear removes all entries. The table keeps its size.
func (m *longMap[V]) clear() {
	clear(m.buckets)
	m.size = 0
}
