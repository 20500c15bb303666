package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"

	"tidemark/internal/protocol"
	"tidemark/vfs"
)

const (
	// copyBelow is the size under which a file range is copied: reading it into
	// memory and writing all with one call is cheaper than sendfile.
	copyBelow = 32 << 10
	// sendChunk is how much of a file goes out at a time. Each has its own
	// deadline and check for cold pages.
	sendChunk = 1 << 20
	// copyChunk is the buffer for copying from files.
	copyChunk = 64 << 10
	// flushAbove is how many bytes are gathered before they are written.
	flushAbove = 256 << 10
)

var errShortFile = errors.New("file ends inside a response")

// write answers in the order of the requests until the connection ends, but for what the reader writes itself.
func (c *conn) write() {
	taken := make([]*exchange, 0, maxTake)
	for {
		if taken = c.take(taken[:0]); len(taken) == 0 {
			return
		}
		c.respond(taken)
	}
}

// respond writes the responses of exchanges that were taken.
func (c *conn) respond(taken []*exchange) {
	end, err := c.writeAll(c.out, taken)
	if err != nil {
		c.fail(writeReason(err), err)
	}
	c.written(taken)
	clear(taken)
	if end != nil {
		c.fail(closeReason(end.Err), end.Err)
	}
}

// writeAll writes responses, up to one that closes the connection, which it
// returns.
func (c *conn) writeAll(w *partWriter, taken []*exchange) (*protocol.Response, error) {
	var end *protocol.Response
	for _, x := range taken {
		if !x.resp.NoReply && (!x.resp.Close || len(x.resp.Body) > 0) {
			if err := w.frame(x); err != nil {
				w.drop()
				return nil, err
			}
		}
		if x.resp.Close {
			end = &protocol.Response{Err: x.resp.Err}
			break
		}
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	for _, x := range taken {
		if x.sent > 0 {
			now := c.srv.opts.Now()
			c.used.Store(now.UnixNano())
			took := now.Sub(x.Received)
			c.srv.opts.Metrics.ResponseSent(x.Header.Key, x.Header.Version, x.sent, took)
		}
	}
	return end, nil
}

func closeReason(err error) CloseReason {
	var malformed *protocol.MalformedError
	if errors.As(err, &malformed) {
		return BadFrame
	}
	return HandlerClosed
}

func writeReason(err error) CloseReason {
	switch {
	case errors.Is(err, errShortFile):
		return ShortFile
	case isTimeout(err):
		return WriteTimeout
	case isReset(err), errors.Is(err, net.ErrClosed):
		return ClientClosed
	}
	return WriteFailed
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// partWriter gathers bytes and writes them with as few calls as it can.
type partWriter struct {
	conn    *conn
	raw     syscall.RawConn // nil: no sendfile
	gather  [][]byte        // what is to be written
	rest    net.Buffers     // gather while it is being written
	size    int64           // its bytes
	scratch []*buffer       // what of gather is to be freed when written
}

func newPartWriter(c *conn, raw syscall.RawConn) *partWriter {
	w := &partWriter{conn: c}
	if canSendfile {
		w.raw = raw
	}
	return w
}

// frame adds a response: size, header, body.
func (w *partWriter) frame(x *exchange) error {
	head := protocol.AppendResponseHeader(x.head[:sizeBytes], x.Header)
	size := int64(len(head)-sizeBytes) + x.resp.Body.SizeBytes()
	if size > math.MaxInt32 {
		return fmt.Errorf("response of %d bytes does not fit a frame", size)
	}
	binary.BigEndian.PutUint32(head, uint32(size))
	x.sent = sizeBytes + size
	if err := w.bytes(head); err != nil {
		return err
	}
	for _, p := range x.resp.Body {
		var err error
		if p.File != nil {
			err = w.file(p.File, p.Pos, p.N)
		} else {
			err = w.bytes(p.Bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *partWriter) bytes(b []byte) error {
	w.gather = append(w.gather, b)
	if w.size += int64(len(b)); w.size > flushAbove {
		return w.flush()
	}
	return nil
}

// file adds n bytes of f from pos on.
func (w *partWriter) file(f vfs.File, pos, n int64) error {
	fd, ok := f.Fd()
	for n > 0 {
		chunk := min(n, sendChunk)
		sent := int64(0)
		var err error
		if ok && w.raw != nil && chunk >= copyBelow && resident(fd, pos, chunk) {
			sent, err = w.send(fd, pos, chunk)
		}
		if err == nil && sent == 0 {
			sent = min(n, copyChunk)
			err = w.copy(f, pos, sent)
		}
		if err != nil {
			return err
		}
		pos, n = pos+sent, n-sent
	}
	return nil
}

// send writes what is gathered and then a range of a file by sendfile, or none
// of it where that does not work.
func (w *partWriter) send(fd uintptr, pos, n int64) (int64, error) {
	if err := w.flush(); err != nil {
		return 0, err
	}
	if err := w.extendDeadline(); err != nil {
		return 0, err
	}
	return sendfile(w.raw, fd, pos, n)
}

// copy reads a range of a file and adds it.
func (w *partWriter) copy(f vfs.File, pos, n int64) error {
	b := newBuffer(int(n))
	if err := w.readAt(f, b.b, pos); err != nil {
		b.free()
		return err
	}
	w.scratch = append(w.scratch, b)
	return w.bytes(b.b)
}

// readAt reads a file, one of a bounded number at a time where the pages may
// have to come from a disk.
func (w *partWriter) readAt(f vfs.File, b []byte, pos int64) error {
	if fd, ok := f.Fd(); ok && !resident(fd, pos, int64(len(b))) {
		w.conn.srv.diskReads <- struct{}{}
		defer func() { <-w.conn.srv.diskReads }()
	}
	n, err := f.ReadAt(b, pos)
	switch {
	case n == len(b):
		return nil
	case err == nil, errors.Is(err, io.EOF):
		return errShortFile
	}
	return fmt.Errorf("read for a response: %w", err)
}

// flush writes what is gathered.
func (w *partWriter) flush() error {
	if len(w.gather) == 0 {
		return nil
	}
	defer w.drop()
	if err := w.extendDeadline(); err != nil {
		return err
	}
	w.rest = w.gather // WriteTo consumes it
	_, err := w.rest.WriteTo(w.conn.net)
	return err
}

// drop forgets what is gathered.
func (w *partWriter) drop() {
	clear(w.gather)
	w.gather, w.size = w.gather[:0], 0
	for _, b := range w.scratch {
		b.free()
	}
	clear(w.scratch)
	w.scratch = w.scratch[:0]
}

func (w *partWriter) extendDeadline() error {
	if wait := w.conn.srv.opts.IdleTimeout; wait > 0 {
		return w.conn.net.SetWriteDeadline(w.conn.srv.opts.Now().Add(wait))
	}
	return nil
}
