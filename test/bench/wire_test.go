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

// body is a response read field by field, as far as a load needs it. Fields beyond its end are zero.
type body []byte

func (b *body) skip(n int) { *b = (*b)[min(n, len(*b)):] }

func (b *body) uint(width int) (n uint64) {
	for _, c := range (*b)[:min(width, len(*b))] {
		n = n<<8 | uint64(c)
	}
	b.skip(width)
	return n
}

// length is that of a compact array, string or bytes; 0 for a null one.
func (b *body) length() int {
	n, width := binary.Uvarint(*b)
	b.skip(max(width, 0))
	return max(0, int(n)-1)
}

// partition goes to the first partition of the first topic of a flexible response, whose index it skips, and returns
// an error for the error code that follows.
func (b *body) partition() error {
	b.length()         // topics
	b.skip(b.length()) // name
	if b.length() == 0 {
		return errors.New("response without a partition")
	}
	b.skip(4)
	return kerr.ErrorForCode(int16(b.uint(2)))
}

// produced reads the answer to a produce request of version 9.
func (w *wire) produced() error {
	answer, err := w.receive(true)
	if err != nil {
		return err
	}
	return (*body)(&answer).partition()
}

// fetched reads the answer to a fetch request of version 12 at an offset: the bytes of whole batches, and the offset
// after them.
func (w *wire) fetched(asked int64) (size int, next int64, err error) {
	answer, err := w.receive(true)
	if err != nil {
		return 0, asked, err
	}
	b := (*body)(&answer)
	b.skip(4)
	if err := kerr.ErrorForCode(int16(b.uint(2))); err != nil {
		return 0, asked, err
	}
	b.skip(4) // session
	if err := b.partition(); err != nil {
		return 0, asked, err
	}
	b.skip(24)             // high watermark, last stable offset, first offset
	for range b.length() { // aborted transactions
		b.skip(17)
	}
	b.skip(4) // preferred replica
	n := b.length()
	set := (*b)[:min(n, len(*b))]
	for next = asked; len(set) >= 61; {
		n := 12 + int(binary.BigEndian.Uint32(set[8:]))
		if n < 61 || n > len(set) {
			break // the last one is cut
		}
		next = int64(binary.BigEndian.Uint64(set)) + int64(binary.BigEndian.Uint32(set[23:])) + 1
		size, set = size+n, set[n:]
	}
	return size, next, nil
}

// lookedUp reads the answer to a ListOffsets request of version 7.
func (w *wire) lookedUp() (offset int64, err error) {
	answer, err := w.receive(true)
	if err != nil {
		return 0, err
	}
	b := (*body)(&answer)
	b.skip(4)
	if err := b.partition(); err != nil {
		return 0, err
	}
	b.skip(8)
	return int64(b.uint(8)), nil
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
