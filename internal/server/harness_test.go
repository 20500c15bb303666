package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tidemark/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should happen at once; nothing waits that long unless it
// fails.
const patience = time.Minute

type handlerFunc func(ctx context.Context, r *protocol.Request, reply func(protocol.Response))

func (f handlerFunc) Handle(ctx context.Context, r *protocol.Request, reply func(protocol.Response)) {
	f(ctx, r, reply)
}

// echo answers with the body of the request.
func echo(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
	reply(protocol.Response{Body: protocol.Parts{protocol.BytesPart(r.Body)}})
}

// everything serves all versions that exist.
func everything() *protocol.Table {
	var all []protocol.Range
	for key := range int16(100) {
		all = append(all, protocol.Range{Key: key, Max: 20})
	}
	return protocol.NewTable(protocol.Full, all)
}

// events are what a server told its metrics and its log.
type events struct {
	noMetrics
	mu      sync.Mutex
	opened  int
	refused int
	delayed int
	panics  int
	closed  []CloseReason
	lines   []string
	changed chan struct{} // closed and renewed at each event
}

func (e *events) note(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *events) ConnectionOpened(string)  { e.note(func() { e.opened++ }) }
func (e *events) ConnectionRefused(string) { e.note(func() { e.refused++ }) }
func (e *events) ConnectionDelayed(string, time.Duration) {
	e.note(func() { e.delayed++ })
}
func (e *events) HandlerPanic(int16) { e.note(func() { e.panics++ }) }
func (e *events) ConnectionClosed(_ string, r CloseReason) {
	e.note(func() { e.closed = append(e.closed, r) })
}

// Write takes a line of the log.
func (e *events) Write(p []byte) (int, error) {
	e.note(func() { e.lines = append(e.lines, string(p)) })
	return len(p), nil
}

// await waits until cond, which is called under the lock, is true.
func (e *events) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		e.mu.Lock()
		ok, changed := cond(), e.changed
		e.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s: not in time", what)
		}
	}
}

type harness struct {
	*Server
	events
	addr string
}

// start runs a server on a loopback port until the end of the test.
func start(t *testing.T, h handlerFunc, change func(*Options)) *harness {
	t.Helper()
	s := &harness{}
	s.changed = make(chan struct{})
	o := Options{
		Handler: h, Versions: everything(), Now: time.Now, Metrics: s,
		Logger: slog.New(slog.NewTextHandler(s, nil)),
	}
	if change != nil {
		change(&o)
	}
	var err error
	if s.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(Listener{Name: "PLAINTEXT", Net: l}) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; err != ErrClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// client is a bare connection.
type client struct {
	net.Conn
	t *testing.T
}

func (s *harness) dial(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{c, t}
}

// frame puts a size before bytes.
func frame(b ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// request is the frame of a request of version 1 of key 3 (Metadata), whose
// header is not flexible, without a client id.
func request(correlation int32, body ...byte) []byte { return requestOf(3, 1, correlation, body...) }

func requestOf(key, version int16, correlation int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = append(b, 0xff, 0xff)
	return frame(append(b, body...)...)
}

func (c *client) send(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads a response: correlation id and the rest.
func (c *client) receive() (int32, []byte) {
	c.t.Helper()
	id, body, err := c.tryReceive()
	if err != nil {
		c.t.Fatal(err)
	}
	return id, body
}

func (c *client) tryReceive() (int32, []byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	_, err := io.ReadFull(c, body)
	return int32(binary.BigEndian.Uint32(head[4:])), body, err
}

// expect sends a request and checks that it is echoed.
func (c *client) expect(correlation int32, body string) {
	c.t.Helper()
	c.send(request(correlation, []byte(body)...))
	if id, got := c.receive(); id != correlation || string(got) != body {
		c.t.Fatalf("response %d %q, want %d %q", id, got, correlation, body)
	}
}

// pipeline sends requests without waiting and checks that they are echoed in their order.
func (c *client) pipeline(n int32) {
	c.t.Helper()
	go func() {
		for i := range n {
			if _, err := c.Write(request(i, fmt.Append(nil, "body ", i)...)); err != nil {
				return
			}
		}
	}()
	for i := range n {
		if id, body := c.receive(); id != i || string(body) != fmt.Sprint("body ", i) {
			c.t.Fatalf("response %d is %d %q", i, id, body)
		}
	}
}

// ended checks that the server closes the connection without a further byte.
func (c *client) ended() {
	c.t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		c.t.Fatal("got a byte, want the end of the connection")
	} else if strings.Contains(err.Error(), "timeout") {
		c.t.Fatal("connection still open")
	}
}
