package server

import (
	"math/bits"
	"sync"
)

// Buffers of up to 2 MiB come from pools by powers of two; larger ones are
// made to measure and left to the garbage collector.
const (
	minClass = 10 // 1 KiB
	maxClass = 21 // 2 MiB
)

// buffer is a piece of memory that goes back to its pool with free.
type buffer struct {
	b     []byte
	class int // 0: not from a pool
}

var pools [maxClass + 1]sync.Pool

// newBuffer gives a buffer of length n with unspecified contents.
func newBuffer(n int) *buffer {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if class > maxClass {
		return &buffer{b: make([]byte, n)}
	}
	if p, ok := pools[class].Get().(*buffer); ok {
		p.b = p.b[:n]
		return p
	}
	return &buffer{b: make([]byte, n, 1<<class), class: class}
}

// free gives the buffer back. Neither it nor its bytes may be used after.
func (p *buffer) free() {
	if p.class != 0 {
		pools[p.class].Put(p)
	}
}
