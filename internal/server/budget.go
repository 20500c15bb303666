package server

import (
	"container/list"
	"context"
	"sync"
)

// budget bounds the request bytes that all connections hold together. Claims
// are granted whole and first come, first served. A claim above the limit is
// granted when nothing else is held, so a frame of any permitted size gets
// through.
type budget struct {
	limit int64 // ≤ 0: none

	mu      sync.Mutex
	used    int64
	waiting list.List // of *claim
}

type claim struct {
	n       int64
	granted chan struct{}
}

// acquire waits until n bytes may be held, or for the end of ctx, whose error
// it returns.
func (b *budget) acquire(ctx context.Context, n int64) error {
	b.mu.Lock()
	if b.waiting.Len() == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	c := &claim{n: n, granted: make(chan struct{})}
	e := b.waiting.PushBack(c)
	b.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.granted: // at the same moment
		b.put(n)
	default:
		b.waiting.Remove(e)
		b.grant()
	}
	return ctx.Err()
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	b.mu.Lock()
	b.put(n)
	b.mu.Unlock()
}

func (b *budget) put(n int64) {
	b.used -= n
	b.grant()
}

func (b *budget) fits(n int64) bool {
	return b.limit <= 0 || b.used == 0 || b.used+n <= b.limit
}

// grant serves those who wait, in order.
func (b *budget) grant() {
	for e := b.waiting.Front(); e != nil; e = b.waiting.Front() {
		c := e.Value.(*claim)
		if !b.fits(c.n) {
			return
		}
		b.used += c.n
		close(c.granted)
		b.waiting.Remove(e)
	}
}
