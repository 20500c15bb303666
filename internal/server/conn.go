package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tidemark/internal/protocol"
)

// readBuffer holds the small frames that a client sends in one go.
const readBuffer = 4 << 10

// conn is one connection: run reads and handles, and writes what was answered at once; write writes what comes later.
type conn struct {
	srv      *Server
	listener *Listener
	net      net.Conn
	info     protocol.Conn
	ctx      context.Context // ends when the connection does
	cancel   context.CancelFunc
	frames   frameReader
	socket   *socket     // nil: there is none better than net
	out      *partWriter // of who writes
	taken    []*exchange // by the reader
	wakeups  atomic.Uint64

	wakeWriter chan struct{} // the oldest exchange was answered, or an end came
	wakeReader chan struct{} // there is room for another request, or an end came

	draining atomic.Bool  // read no more
	used     atomic.Int64 // when a request last came or was answered, in nanoseconds since 1970
	surplus  bool         // closed because there are too many; under Server.mu

	mu         sync.Mutex
	head, tail *exchange // requests in arrival order
	inFlight   int
	dispatched *exchange // the one whose handler the reader has called and that has not returned
	writing    bool      // the reader or the writer writes responses
	drained    bool      // no more requests will be pushed
	closing    bool      // a response that closes the connection is on its way
	dead       bool
	muteUntil  time.Time
	reason     CloseReason // why dead
	err        error       // detail of reason
}

func newConn(s *Server, l *Listener, nc net.Conn, remote netip.AddrPort) *conn {
	c := &conn{
		srv: s, listener: l, net: nc,
		wakeWriter: make(chan struct{}, 1), wakeReader: make(chan struct{}, 1),
	}
	c.info.ID, c.info.Listener, c.info.Remote = s.nextID.Add(1), l.Name, remote
	c.info.Local = addrPort(nc.LocalAddr())
	c.used.Store(s.opts.Now().UnixNano())
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	raw := rawConn(nc)
	c.socket, c.out = newSocket(raw), newPartWriter(c, raw)
	c.frames = frameReader{
		in: bufio.NewReaderSize((*deadlineReader)(c), readBuffer), limit: s.opts.MaxRequestBytes, budget: &s.budget,
	}
	return c
}

// rawConn gives a TCP socket for system calls of our own, nil for any other connection.
func rawConn(nc net.Conn) syscall.RawConn {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// addrPort is the address of a TCP socket, zero for any other.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// deadlineReader is the socket with a fresh deadline for each read.
type deadlineReader conn

func (r *deadlineReader) Read(p []byte) (int, error) {
	c := (*conn)(r)
	if err := c.net.SetReadDeadline(c.readDeadline()); err != nil {
		return 0, err
	}
	if c.draining.Load() { // after the deadline was set: drain sets both in the other order
		return 0, os.ErrDeadlineExceeded
	}
	c.wakeups.Add(1)
	if c.socket != nil {
		return c.socket.Read(p)
	}
	return c.net.Read(p)
}

func (c *conn) readDeadline() time.Time {
	o := &c.srv.opts
	wait := o.IdleTimeout
	if o.MaxQueuedBytes > 0 && c.frames.inside && (wait < 0 || wait > o.StallTimeout) {
		wait = o.StallTimeout
	}
	if wait < 0 {
		return time.Time{}
	}
	return o.Now().Add(wait)
}

// run serves the connection until its end.
func (c *conn) run() {
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		c.write()
	}()
	reason, err := c.read()
	if reason == ServerClosed {
		c.mu.Lock()
		c.drained = true
		c.mu.Unlock()
		signal(c.wakeWriter)
		<-writer
	}
	c.fail(reason, err)
	<-writer
}

// read takes requests and hands them to the handler. It returns why it stopped:
// ServerClosed when it was told to drain.
func (c *conn) read() (CloseReason, error) {
	for {
		if err := c.waitForRoom(); err != nil {
			return ServerClosed, err
		}
		buf, err := c.frames.next(c.ctx)
		switch {
		case err == nil:
		case c.draining.Load():
			return ServerClosed, nil
		case c.waiting() && isTimeout(err) && !c.frames.inside:
			continue // not idle: it waits for an answer
		default:
			return c.readReason(err), err
		}
		if reason, err := c.handle(buf); err != nil {
			return reason, err
		}
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func (c *conn) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight > 0
}

// waitForRoom waits until a request more may be in flight and the connection is
// not muted.
func (c *conn) waitForRoom() error {
	for {
		c.mu.Lock()
		room := c.inFlight < c.srv.opts.MaxInFlight
		mute, closing := c.muteUntil, c.closing
		c.mu.Unlock()
		if c.draining.Load() {
			return errDraining
		}
		if closing { // as Kafka, which looks at no request before the one ahead is answered
			<-c.ctx.Done()
			return c.ctx.Err()
		}
		if room && !mute.IsZero() {
			if wait := mute.Sub(c.srv.opts.Now()); wait > 0 {
				c.sleep(wait)
				continue
			}
		}
		if room {
			return c.ctx.Err()
		}
		select {
		case <-c.wakeReader:
			c.wakeups.Add(1)
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

func (c *conn) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.wakeReader:
	case <-c.ctx.Done():
	}
}

var errDraining = errors.New("server is stopping")

func (c *conn) readReason(err error) CloseReason {
	var oversized *oversizedError
	switch {
	case c.ctx.Err() != nil:
		return ServerClosed
	case errors.Is(err, io.EOF):
		return ClientClosed
	case errors.Is(err, errTruncated):
		return TruncatedFrame
	case errors.As(err, &oversized):
		return OversizedFrame
	case isTimeout(err) && c.frames.inside:
		return StalledFrame
	case isTimeout(err):
		return IdleTimeout
	case isReset(err) && !c.frames.inside:
		return ClientClosed
	}
	return ReadFailed
}

// handle parses the header of a frame and calls the handler.
func (c *conn) handle(buf *buffer) (CloseReason, error) {
	x := &exchange{conn: c, size: len(buf.b)}
	x.body.Store(buf)
	header, body, err := protocol.ParseRequestHeaderNames(buf.b, c.info.Names())
	if err != nil {
		x.FreeBody()
		return BadFrame, err
	}
	x.Request = protocol.Request{Header: header, Body: body, Conn: &c.info, Received: c.srv.opts.Now(), Owner: x}
	c.used.Store(x.Received.UnixNano())
	accepted := c.srv.opts.Versions.Accepts(header.Key, header.Version)
	if reason, err := c.admit(header, accepted); err != nil {
		x.FreeBody()
		return reason, err
	}
	c.srv.opts.Metrics.RequestReceived(header.Key, header.Version, sizeBytes+len(buf.b))
	if !c.push(x) {
		x.FreeBody()
		return ServerClosed, c.ctx.Err()
	}
	if !accepted {
		x.reply(protocol.Reply(c.srv.opts.Versions.UnsupportedApiVersions()))
	} else if reason, err := c.dispatch(x); err != nil {
		return reason, err
	}
	if c.taken = c.takeNow(x, c.taken[:0]); len(c.taken) > 0 {
		c.respond(c.taken)
	}
	return 0, nil
}

// admit says why a request ends its connection, if it does. ApiVersions is
// answered in any version.
func (c *conn) admit(h protocol.RequestHeader, accepted bool) (CloseReason, error) {
	if !accepted && h.Key != protocol.KeyApiVersions {
		return UnsupportedVersion, fmt.Errorf("key %d has no version %d", h.Key, h.Version)
	}
	if gate := c.listener.Gate; gate != nil && !gate(&c.info, h) {
		return NotAuthenticated, fmt.Errorf("request of key %d before authentication", h.Key)
	}
	return 0, nil
}

// dispatch calls the handler. x may be gone when it returns.
func (c *conn) dispatch(x *exchange) (reason CloseReason, err error) {
	key := x.Header.Key
	defer func() {
		if p := recover(); p != nil {
			c.srv.opts.Metrics.HandlerPanic(key)
			reason, err = HandlerPanicked, fmt.Errorf("key %d: panic: %v\n%s", key, p, debug.Stack())
		}
	}()
	c.srv.opts.Handler.Handle(c.ctx, &x.Request, x.reply)
	return 0, nil
}

// fail ends the connection. The first call decides the reason.
func (c *conn) fail(reason CloseReason, err error) {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return
	}
	c.dead, c.reason, c.err = true, reason, err
	var answered, unanswered []*exchange
	for x := c.head; x != nil; x = x.next {
		if x.settled {
			answered = append(answered, x)
		} else {
			x.settled = true
			unanswered = append(unanswered, x)
		}
	}
	c.head, c.tail = nil, nil
	c.mu.Unlock()
	c.cancel()
	_ = c.net.Close() // nothing is left to save
	signal(c.wakeWriter)
	for _, x := range answered {
		x.finish()
	}
	for _, x := range unanswered {
		x.abandon()
	}
}

// drain makes the connection read no more and close once all it has read is
// answered.
func (c *conn) drain() {
	c.draining.Store(true)
	_ = c.net.SetReadDeadline(time.Unix(1, 0)) // a dead socket ends the reader as well
	signal(c.wakeReader)
}

// report counts and logs the end of the connection, once.
func (c *conn) report() {
	c.mu.Lock()
	reason, err := c.reason, c.err
	c.mu.Unlock()
	c.srv.opts.Metrics.ConnectionClosed(c.listener.Name, reason)
	attrs := []any{"listener", c.listener.Name, "client", c.info.Remote, "reason", reason.String()}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	level := slog.LevelWarn
	switch {
	case reason.ordinary():
		level = slog.LevelDebug
	case reason == HandlerPanicked:
		level = slog.LevelError
	}
	c.srv.opts.Logger.Log(context.Background(), level, "connection closed", attrs...)
}
