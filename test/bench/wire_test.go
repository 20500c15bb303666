//go:build oracle

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	protocol "tidemark/internal/wire"
	"tidemark/record"
)

// ioTimeout is how long an answer may take.
const ioTimeout = 2 * time.Minute

// wire is a connection on which requests are sent and answered in order. It allocates nothing for a request whose frame
// is made before: broker and client share the machine, so the client's own work must be small beside the broker's.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte // the last frame made by ask, written over by the next
	body []byte // of the last response, likewise

	reader protocol.Reader // of body
}

func connect(addr string) (*wire, error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, in: newReader(conn)}, nil
}

func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReaderSize(conn, 64<<10) }

// dial connects for as long as a benchmark runs.
func dial(b *testing.B, addr string) *wire {
	b.Helper()
	w, err := connect(addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.conn.Close() })
	return w
}

// allow sets how long all that follows may take.
func (w *wire) allow(d time.Duration) error { return w.conn.SetDeadline(time.Now().Add(d)) }

func (w *wire) send(frame []byte) error {
	_, err := w.conn.Write(frame)
	return err
}

// receive reads a response; its body is valid until the next one.
func (w *wire) receive(flexible bool) (body []byte, err error) {
	size, err := w.in.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(size))
	if _, err := w.in.Discard(4); err != nil {
		return nil, err
	}
	if cap(w.body) < n {
		w.body = make([]byte, n)
	}
	w.body = w.body[:n]
	if _, err := io.ReadFull(w.in, w.body); err != nil {
		return nil, err
	}
	skip := 4 // correlation id
	if flexible {
		skip++ // no tags
	}
	return w.body[min(skip, n):], nil
}

// ask sends a request and reads its response, of type R.
func ask[R kmsg.Response](w *wire, r kmsg.Request) (answer R, err error) {
	if err := w.allow(ioTimeout); err != nil {
		return answer, err
	}
	w.out = appendFrame(w.out[:0], r)
	if err := w.send(w.out); err != nil {
		return answer, err
	}
	answer = r.ResponseKind().(R)
	body, err := w.receive(answer.IsFlexible())
	if err != nil {
		return answer, err
	}
	return answer, answer.ReadFrom(body)
}

// appendFrame appends a request with its size and header. The answers of a connection come in order, so all requests
// have one correlation id.
func appendFrame(dst []byte, r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(dst, r, 1)
}

// question is the frame of a request in which one number is set anew each time.
type question struct {
	frame []byte
	at    int // where the number is
	width int // its bytes: 4 or 8
}

// mark stands where the number belongs; its first half is mark>>32.
const mark = int64(0x5ca1ab1e_0ddba115)

// vary is a question whose number is that which the request has as mark.
func vary(r kmsg.Request) question {
	q := question{frame: appendFrame(nil, r), width: 8}
	wide := binary.BigEndian.AppendUint64(nil, uint64(mark))
	if q.at = bytes.Index(q.frame, wide); q.at < 0 {
		q.at, q.width = bytes.Index(q.frame, wide[:4]), 4
	}
	return q
}

// with is the frame with a number; it is valid until the next call.
func (q question) with(n int64) []byte {
	if q.width == 4 {
		binary.BigEndian.PutUint32(q.frame[q.at:], uint32(n))
	} else {
		binary.BigEndian.PutUint64(q.frame[q.at:], uint64(n))
	}
	return q.frame
}

// partition goes to the first partition of the first topic of a flexible response, whose index it skips, and returns
// an error for the error code that follows.
func partition(r *protocol.Reader) error {
	r.CompactArrayLen(1) // topics
	r.CompactBytes()     // name
	if r.CompactArrayLen(1) == 0 {
		return errors.New("response without a partition")
	}
	r.Skip(4)
	return code(r)
}

// code is an error code of a response as an error, or why there is none.
func code(r *protocol.Reader) error {
	if code := r.Int16(); code != 0 {
		return kerr.ErrorForCode(code)
	}
	return r.Err()
}

// produced reads the answer to a produce request of version 9.
func (w *wire) produced() error {
	r, err := w.answer()
	if err != nil {
		return err
	}
	return partition(r)
}

// fetched reads the answer to a fetch request of version 12 at an offset: the bytes of whole batches, and the offset
// after them.
func (w *wire) fetched(asked int64) (size int, next int64, err error) {
	r, err := w.answer()
	if err != nil {
		return 0, asked, err
	}
	r.Skip(4)
	if err := code(r); err != nil {
		return 0, asked, err
	}
	r.Skip(4) // session
	if err := partition(r); err != nil {
		return 0, asked, err
	}
	r.Skip(24)                       // high watermark, last stable offset, first offset
	for range r.CompactArrayLen(1) { // aborted transactions
		r.Skip(17)
	}
	r.Skip(4) // preferred replica
	next = asked
	for set := r.CompactBytes(); len(set) >= record.HeaderSize; {
		b := record.Batch(set)
		n := 12 + int(binary.BigEndian.Uint32(set[8:]))
		if n < record.HeaderSize || n > len(set) {
			break // the last one is cut
		}
		next = b.LastOffset() + 1
		size, set = size+n, set[n:]
	}
	return size, next, r.Err()
}

// lookedUp reads the answer to a ListOffsets request of version 7.
func (w *wire) lookedUp() (offset int64, err error) {
	r, err := w.answer()
	if err != nil {
		return 0, err
	}
	r.Skip(4)
	if err := partition(r); err != nil {
		return 0, err
	}
	r.Skip(8)
	offset = r.Int64()
	return offset, r.Err()
}

// answer is the next response, of a flexible version.
func (w *wire) answer() (*protocol.Reader, error) {
	body, err := w.receive(true)
	w.reader.Reset(body)
	return &w.reader, err
}

// insist does something until it succeeds, for five minutes at most: on one connection as long as that answers.
func insist(ctx context.Context, addr string, do func(*wire) error) error {
	deadline := time.Now().Add(5 * time.Minute)
	var w *wire
	defer func() {
		if w != nil {
			w.conn.Close()
		}
	}()
	for {
		err := attempt(&w, addr, do)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("still after five minutes: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// attempt does something once, on a connection that it makes when there is none and gives up when it does not answer.
func attempt(w **wire, addr string, do func(*wire) error) error {
	if *w == nil {
		c, err := connect(addr)
		if err != nil {
			return err
		}
		*w = c
	}
	err := do(*w)
	var refused *kerr.Error
	if err != nil && !errors.As(err, &refused) {
		(*w).conn.Close()
		*w = nil
	}
	return err
}

// until asks again and again until an answer is good.
func until[R kmsg.Response](b *testing.B, addr string, r kmsg.Request, code func(R) int16) {
	b.Helper()
	err := insist(b.Context(), addr, func(w *wire) error {
		answer, err := ask[R](w, r)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(code(answer))
	})
	if err != nil {
		b.Fatalf("%T: %v", r, err)
	}
}
