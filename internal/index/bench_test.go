package index

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

func filledOffsetIndex(b *testing.B, n int64, cacheBytes int64) *OffsetIndex {
	b.Helper()
	o := testOptions(b, "x.index", 0, 8*n)
	o.Pages = NewCache(cacheBytes)
	data := make([]byte, 8*n)
	for i := range n {
		OffsetEntry{Offset: 3 * i, Pos: 1 + i}.encode(data[8*i:], 0)
	}
	must(b, os.WriteFile(o.Name, data, 0o644))
	return OpenOffsetIndex(o)
}

// Random look-ups in a sealed index that fits the cache, and in one that does not.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int64{100, 10_000, 1_000_000} {
		for name, cacheBytes := range map[string]int64{"cached": 16 << 20, "uncached": 0} {
			b.Run(strconv.FormatInt(n, 10)+"/"+name, func(b *testing.B) {
				x := filledOffsetIndex(b, n, cacheBytes)
				rng := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					if _, _, err := x.Lookup(rng.Int64N(3 * n)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	o := testOptions(b, "x.index", 0, 8<<28)
	x := OpenOffsetIndex(o)
	for i := int64(1); b.Loop(); i++ {
		must(b, x.Append(i, i))
	}
}

// BenchmarkCollect is what a fetch asks of the index of a segment with 100 000 aborts: the aborts of its range.
func BenchmarkCollect(b *testing.B) {
	const n, apart = 100_000, 10
	o := testOptions(b, "x.txnindex", 0, 0)
	data := make([]byte, TxnEntrySize*n)
	for i := range int64(n) {
		t := AbortedTxn{ProducerID: i % 50, FirstOffset: apart * i, LastOffset: apart*i + 9, LastStableOffset: apart * i}
		txnEntry{AbortedTxn: t}.encode(data[TxnEntrySize*i:], 0)
	}
	must(b, os.WriteFile(o.Name, data, 0o644))
	x := OpenTxnIndex(o)
	for _, aborts := range []int64{1, 100, 10_000, n} {
		b.Run(strconv.FormatInt(aborts, 10), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				from := apart * rng.Int64N(n-aborts+1)
				found, _, err := x.Collect(from, from+apart*aborts)
				if err != nil || int64(len(found)) < aborts {
					b.Fatal(len(found), err)
				}
			}
			b.ReportMetric(TxnEntrySize*n, "B-file")
		})
	}
}
