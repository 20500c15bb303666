package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A request on the wire:
//
//	bytes  0        4
//	      | size n | header and body, n bytes
//	      | i32    |
const sizeBytes = 4

const (
	// firstChunk is what a frame may take on the word of its size alone. It is
	// not counted in the budget.
	firstChunk = 16 << 10
	// nextChunk is how a frame larger than the connection has ever completed
	// is collected.
	nextChunk = 64 << 10
	// maxTrusted is the size up to which a frame is given all its memory at
	// once when the connection has completed one as large before.
	maxTrusted = 2 << 20
)

var errTruncated = errors.New("connection ended inside a frame")

// oversizedError is a size that is negative or above the limit.
type oversizedError struct{ size, limit int32 }

func (e *oversizedError) Error() string {
	return fmt.Sprintf("frame of %d bytes, the limit is %d", e.size, e.limit)
}

// frameReader cuts a stream into frames. The memory it takes for a frame is at
// most twice the bytes that have arrived of it, plus firstChunk+nextChunk, or
// for a frame up to maxTrusted no more than an earlier one of the connection.
type frameReader struct {
	in      *bufio.Reader
	limit   int32
	budget  *budget
	trusted int
	inside  bool // between the first byte of a frame and its last
}

// next reads a frame, without its size. The caller frees the buffer and gives
// its length back to the budget. Errors: io.EOF between frames, errTruncated,
// *oversizedError, that of ctx, those of the stream. After a timeout between
// frames it may be called again.
func (r *frameReader) next(ctx context.Context) (*buffer, error) {
	size, err := r.size()
	if err != nil {
		return nil, err
	}
	r.inside = true
	buf, err := r.body(ctx, size)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errTruncated
	}
	if err != nil {
		return nil, err
	}
	r.inside = false
	r.trusted = max(r.trusted, min(size, maxTrusted))
	return buf, nil
}

func (r *frameReader) size() (int, error) {
	head, err := r.in.Peek(sizeBytes)
	if errors.Is(err, io.EOF) && len(head) > 0 {
		return 0, errTruncated
	}
	if err != nil {
		r.inside = len(head) > 0
		return 0, err
	}
	size := int32(binary.BigEndian.Uint32(head))
	if size < 0 || size > r.limit {
		return 0, &oversizedError{size, r.limit}
	}
	_, err = r.in.Discard(sizeBytes)
	return int(size), err
}

// body reads the bytes of a frame after its size.
func (r *frameReader) body(ctx context.Context, size int) (*buffer, error) {
	first := newBuffer(min(size, firstChunk))
	if _, err := io.ReadFull(r.in, first.b); err != nil {
		first.free()
		return nil, err
	}
	if err := r.budget.acquire(ctx, int64(size)); err != nil {
		first.free()
		return nil, err
	}
	if size == len(first.b) {
		return first, nil
	}
	var whole *buffer
	var err error
	if size <= r.trusted {
		whole = newBuffer(size)
		n := copy(whole.b, first.b)
		first.free()
		if _, err = io.ReadFull(r.in, whole.b[n:]); err != nil {
			whole.free()
		}
	} else {
		whole, err = r.collect(first, size)
	}
	if err != nil {
		r.budget.release(int64(size))
		return nil, err
	}
	return whole, nil
}

// collect reads a frame in chunks and puts it together when all has arrived.
func (r *frameReader) collect(first *buffer, size int) (*buffer, error) {
	chunks := []*buffer{first}
	defer func() {
		for _, c := range chunks {
			c.free()
		}
	}()
	for got := len(first.b); got < size; {
		c := newBuffer(min(size-got, nextChunk))
		chunks = append(chunks, c)
		if _, err := io.ReadFull(r.in, c.b); err != nil {
			return nil, err
		}
		got += len(c.b)
	}
	whole := newBuffer(size)
	n := 0
	for _, c := range chunks {
		n += copy(whole.b[n:], c.b)
	}
	return whole, nil
}
