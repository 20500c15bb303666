package protocol

import (
	"tidemark/vfs"
)

// Part is a piece of a response body: bytes in memory or a range of a file. The
// zero Part is empty.
type Part struct {
	Bytes []byte
	// File, when not nil, makes the part N bytes of it from Pos on; Bytes is
	// then ignored. The range must stay readable until the response was
	// released.
	File   vfs.File
	Pos, N int64
}

// BytesPart is a part in memory. b is aliased until the response was released.
func BytesPart(b []byte) Part { return Part{Bytes: b} }

// FilePart is n bytes of f from pos on.
func FilePart(f vfs.File, pos, n int64) Part { return Part{File: f, Pos: pos, N: n} }

// SizeBytes is the number of bytes the part adds to a frame.
func (p Part) SizeBytes() int64 {
	if p.File != nil {
		return p.N
	}
	return int64(len(p.Bytes))
}

// Parts is a response body in order.
type Parts []Part

// SizeBytes is the number of bytes of all parts.
func (p Parts) SizeBytes() (n int64) {
	for i := range p {
		n += p[i].SizeBytes()
	}
	return n
}
