package index

// Searches work on any function of an entry that does not decrease from entry to
// entry. On a damaged file they end as well, with some entry.

// warmBytes is the tail of an index that most look-ups end in: consumers read at
// the end of the log. It is searched by itself, so that those look-ups do not
// touch, and keep in memory, pages from all over the file.
//
// Kafka: AbstractIndex.warmEntries; answers do not depend on it.
const warmBytes = 8192

// floor finds the last entry whose key is ≤ target; -1 when there is none.
func (t *table[E]) floor(s state[E], key func(E) int64, target int64) (int64, error) {
	return t.search(s, key, target, false)
}

// ceil finds the first entry whose key is ≥ target; -1 when there is none.
func (t *table[E]) ceil(s state[E], key func(E) int64, target int64) (int64, error) {
	return t.search(s, key, target, true)
}

func (t *table[E]) search(s state[E], key func(E) int64, target int64, up bool) (int64, error) {
	if s.n == 0 {
		return -1, nil
	}
	r := t.reader(s)
	warm := max(0, s.n-1-warmBytes/t.entrySize)
	first, err := r.at(warm)
	if err != nil {
		return 0, err
	}
	lo, hi := warm, s.n-1
	if key(first) >= target {
		if first, err = r.at(0); err != nil {
			return 0, err
		}
		if key(first) > target {
			if up {
				return 0, nil
			}
			return -1, nil
		}
		lo, hi = 0, warm
	}
	i, exact, err := r.bisect(key, target, lo, hi)
	if err != nil || exact || !up {
		return i, err
	}
	if i == s.n-1 {
		return -1, nil
	}
	return i + 1, nil
}

// bisect finds the last entry in [lo, hi] whose key is ≤ target, given that the
// key of lo is; exact when it equals.
func (r *reader[E]) bisect(key func(E) int64, target, lo, hi int64) (i int64, exact bool, err error) {
	for lo < hi {
		mid := (lo + hi + 1) / 2
		e, err := r.at(mid)
		if err != nil {
			return 0, false, err
		}
		switch k := key(e); {
		case k > target:
			hi = mid - 1
		case k < target:
			lo = mid
		default:
			return mid, true, nil
		}
	}
	e, err := r.at(lo)
	return lo, err == nil && key(e) == target, err
}
