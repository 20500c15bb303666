package record

// Memory is a budget of bytes that decompression takes its memory from; see
// [IterOptions]. Implementations must be safe for concurrent use.
type Memory interface {
	// Acquire takes n bytes, waiting until that many are free. A request for more
	// than the whole budget gets the whole.
	Acquire(n int64)
	// Release gives n bytes back.
	Release(n int64)
}

const (
	// streamMemory is what the state of a codec that works in pieces takes.
	streamMemory = 256 << 10
	// expansion is how many times its size a body is taken to decompress to, where
	// it is decompressed at once.
	expansion = 8
)

// memoryFor estimates what decompressing a body takes. It is what is acquired;
// IterOptions.MaxBytes bounds what is really taken.
func memoryFor(c Codec, bodyBytes int, maxBytes int64) int64 {
	if c != Zstd {
		return min(streamMemory, maxBytes)
	}
	return min(max(streamMemory, expansion*int64(bodyBytes)), maxBytes)
}

// hold acquires memory for a body and notes how much, so that release gives it
// back.
func (w *window) hold(m Memory, bodyBytes int) {
	if m == nil {
		return
	}
	w.memory, w.held = m, memoryFor(w.codec, bodyBytes, w.left)
	m.Acquire(w.held)
}

func (w *window) letGo() {
	if w.memory != nil {
		w.memory.Release(w.held)
		w.memory = nil
	}
}
