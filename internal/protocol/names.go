package protocol

// Names makes strings of repeated names without allocating anew each time.
// What it keeps is bounded; when full it starts over. It
// belongs to one connection and is used by one goroutine at a time. A nil
// *Names keeps nothing.
type Names struct {
	kept  map[string]string
	bytes int
	last  *string // what pointer gave last
}

const (
	// maxNames and maxNamesBytes bound what one connection may keep alive.
	maxNames      = 4096
	maxNamesBytes = 256 << 10
)

// Get is string(b). The result does not alias b.
func (n *Names) Get(b []byte) string {
	if n == nil {
		return string(b)
	}
	if s, ok := n.kept[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) > maxNamesBytes {
		return s
	}
	if n.kept == nil || len(n.kept) >= maxNames || n.bytes+len(s) > maxNamesBytes {
		n.kept, n.bytes = make(map[string]string), 0
	}
	n.kept[s] = s
	n.bytes += len(s)
	return s
}

// pointer is Get behind a pointer, the same one while b stays the same.
func (n *Names) pointer(b []byte) *string {
	if n != nil && n.last != nil && *n.last == string(b) {
		return n.last
	}
	s := n.Get(b)
	if n != nil {
		n.last = &s
	}
	return &s
}
