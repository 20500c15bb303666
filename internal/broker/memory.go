package broker

import (
	"context"

	"golang.org/x/sync/semaphore"

	"tidemark/internal/config"
)

// One budget, tidemark.memory.bytes, is parted between what grows with load: half of it for requests that wait or are
// worked on (queued.max.request.bytes, if set, goes before), a quarter for decompression, an eighth for pages of
// indexes and marks in large batches. The last eighth is what connections and fetch sessions take.
const (
	requestShare    = 2 // one part in so many
	decompressShare = 4
	pageShare       = 8
)

// queuedBytes bounds the bytes of requests in memory.
func queuedBytes(c *config.Broker) int64 {
	if c.QueuedMaxRequestBytes > 0 {
		return c.QueuedMaxRequestBytes
	}
	return c.MemoryBytes / requestShare
}

// decompression is the budget of bytes for decompression. It implements record.Memory.
type decompression struct {
	size int64
	free *semaphore.Weighted
}

func newDecompression(c *config.Broker) *decompression {
	size := c.MemoryBytes / decompressShare
	return &decompression{size: size, free: semaphore.NewWeighted(size)}
}

// Acquire takes n bytes, at most the whole budget, waiting for them.
func (d *decompression) Acquire(n int64) {
	// Without a deadline, and for no more than there is, Acquire does not fail.
	_ = d.free.Acquire(context.Background(), min(n, d.size))
}

// Release gives n bytes back.
func (d *decompression) Release(n int64) { d.free.Release(min(n, d.size)) }
