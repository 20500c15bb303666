package record

import (
	"bytes"
	"fmt"
	"testing"
)

// ledger is a Memory that only counts.
type ledger struct{ acquired, released, most int64 }

func (l *ledger) Acquire(n int64) {
	l.acquired += n
	l.most = max(l.most, l.acquired-l.released)
}
func (l *ledger) Release(n int64) { l.released += n }

func TestDecompressionAcquiresAndReleases(t *testing.T) {
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		o := DefaultBuilderOptions()
		o.Codec = codec
		b := NewBuilder(o)
		for i := range 100 {
			if err := b.Append(int64(i), nil, bytes.Repeat([]byte("value"), 100), nil); err != nil {
				t.Fatal(err)
			}
		}
		batch := b.Bytes()
		for _, stopAfter := range []int{1000, 3} {
			t.Run(fmt.Sprintf("%v/%d", codec, stopAfter), func(t *testing.T) {
				var l ledger
				it, err := NewIterator(batch, IterOptions{Memory: &l})
				if err != nil {
					t.Fatal(err)
				}
				for n := 0; n < stopAfter && it.Next(); n++ {
					if codec != None && l.acquired == 0 {
						t.Fatal("nothing was acquired")
					}
				}
				it.Close()
				if l.acquired != l.released {
					t.Errorf("acquired %d bytes, released %d", l.acquired, l.released)
				}
				if codec == None && l.acquired != 0 {
					t.Errorf("acquired %d bytes for a body that is not compressed", l.acquired)
				}
			})
		}
		var l ledger
		damaged := bytes.Clone(batch)
		copy(damaged[HeaderSize:], "no stream of any codec")
		if it, err := NewIterator(damaged, IterOptions{Memory: &l}); err == nil {
			for it.Next() {
			}
			it.Close()
		}
		if l.acquired != l.released {
			t.Errorf("%v, damaged: acquired %d bytes, released %d", codec, l.acquired, l.released)
		}
	}
}
