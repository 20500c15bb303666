package inspect

import "math/bits"

// Histogram counts numbers of bytes in buckets: four to each power of two, so that a quantile is right within a fifth.
type Histogram struct {
	counts [256]int64
	n, sum int64
	max    int64
}

// Add counts a value n times.
func (h *Histogram) Add(value, n int64) {
	if n <= 0 {
		return
	}
	h.counts[bucket(value)] += n
	h.n += n
	h.sum += value * n
	h.max = max(h.max, value)
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// bucket numbers the buckets: values below 4 have their own.
func bucket(value int64) int {
	if value < 4 {
		return int(max(value, 0))
	}
	e := bits.Len64(uint64(value)) - 3
	return 4*e + int(value>>e)
}

// limit is the largest value of a bucket.
func limit(i int) int64 {
	if i < 8 {
		return int64(i)
	}
	e := i/4 - 1
	return int64(i-4*e+1)<<e - 1
}

// Distribution is a histogram for the output.
type Distribution struct {
	Count   int64    `json:"count"`
	Mean    int64    `json:"mean"`
	P50     int64    `json:"p50"`
	P90     int64    `json:"p90"`
	P99     int64    `json:"p99"`
	Max     int64    `json:"max"`
	Buckets []Bucket `json:"buckets,omitempty"`
}

// Bucket counts the values above the bucket before, up to UpTo.
type Bucket struct {
	UpTo  int64 `json:"upTo"`
	Count int64 `json:"count"`
}

// Distribution describes the counts.
func (h *Histogram) Distribution() Distribution {
	d := Distribution{Count: h.n, Max: h.max, P50: h.quantile(0.5), P90: h.quantile(0.9), P99: h.quantile(0.99)}
	if h.n > 0 {
		d.Mean = h.sum / h.n
	}
	for i, n := range h.counts {
		if n > 0 {
			d.Buckets = append(d.Buckets, Bucket{UpTo: min(limit(i), h.max), Count: n})
		}
	}
	return d
}

func (h *Histogram) quantile(q float64) int64 {
	want, seen := int64(q*float64(h.n)), int64(0)
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= want {
			return min(limit(i), h.max)
		}
	}
	return 0
}
