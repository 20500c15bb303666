package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned by Serve after Shutdown or Close.
var ErrClosed = errors.New("server closed")

// Server serves Kafka's protocol on any number of listeners.
type Server struct {
	opts      Options
	limits    *limits
	budget    budget
	diskReads chan struct{} // as many as may read at once
	nextID    atomic.Uint64
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	stop      context.CancelFunc // ends stopping
	stopping  context.Context    // ends with Shutdown or Close: accept no more
	running   sync.WaitGroup     // connections, and refused ones that are closed later

	mu        sync.Mutex
	stopped   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	wakeups   uint64 // of connections that have ended
}

// New makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, limits: newLimits(&o), diskReads: make(chan struct{}, o.DiskReads),
		listeners: make(map[net.Listener]struct{}), conns: make(map[*conn]struct{}),
	}
	s.budget.limit = o.MaxQueuedBytes
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.stopping, s.stop = context.WithCancel(s.ctx)
	return s, nil
}

// Serve accepts connections until the server is stopped, and then returns
// ErrClosed, or until the listener fails, and then returns its error. It may
// run for several listeners at once.
func (s *Server) Serve(l Listener) error {
	if !s.addListener(l.Net) {
		_ = l.Net.Close()
		return ErrClosed
	}
	defer s.removeListener(l.Net)
	var delay time.Duration
	for {
		nc, err := l.Net.Accept()
		if err == nil {
			delay = 0
			s.accepted(&l, nc)
			continue
		}
		if s.stopping.Err() != nil {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		delay = s.pause(l.Name, delay, err)
	}
}

// pause waits after a failed accept, longer each time: most often descriptors
// have run out, and trying again at once would only burn time.
func (s *Server) pause(listener string, delay time.Duration, err error) time.Duration {
	const shortest, longest = 5 * time.Millisecond, time.Second
	delay = min(max(2*delay, shortest), longest)
	s.opts.Logger.Error("accept failed", "listener", listener, "retry", delay, "error", err)
	s.opts.Sleep(s.stopping, delay)
	return delay
}

// accepted starts a connection if the limits allow it, as soon as they do.
func (s *Server) accepted(l *Listener, nc net.Conn) {
	remote := addrPort(nc.RemoteAddr())
	if wait := s.limits.arrive(l.Name); wait > 0 {
		s.opts.Metrics.ConnectionDelayed(l.Name, wait)
		s.opts.Sleep(s.stopping, wait)
	}
	if err := s.limits.admit(s.stopping, l.Name, remote.Addr()); err != nil {
		s.turnAway(l, nc, remote, err)
		return
	}
	s.setBuffers(nc)
	c := newConn(s, l, nc, remote)
	if !s.addConn(c) {
		s.limits.leave(l.Name, remote.Addr())
		c.cancel()
		_ = nc.Close()
		return
	}
	s.opts.Metrics.ConnectionOpened(l.Name)
	go func() {
		defer s.running.Done()
		c.run()
		s.removeConn(c)
		c.report()
	}()
	s.closeExcess()
}

// turnAway closes a connection that is not admitted. One that came too fast is
// closed later, so that its client does not try again at once.
func (s *Server) turnAway(l *Listener, nc net.Conn, remote netip.AddrPort, why error) {
	if s.stopping.Err() != nil {
		_ = nc.Close()
		return
	}
	s.opts.Metrics.ConnectionRefused(l.Name)
	var fast *tooFastError
	if !errors.As(why, &fast) {
		_ = nc.Close()
		s.opts.Logger.Warn("connection refused", "listener", l.Name, "client", remote, "error", why)
		return
	}
	s.opts.Logger.Debug("connection refused", "listener", l.Name, "client", remote, "closed after", fast.delay,
		"error", why)
	s.running.Go(func() {
		s.opts.Sleep(s.stopping, fast.delay)
		_ = nc.Close()
	})
}

// closeExcess closes connections as long as there are too many: those that were
// used least recently.
//
// Kafka: each of its network threads closes one at a time, of its own.
func (s *Server) closeExcess() {
	if n, _ := s.limits.above(); n <= 0 {
		return
	}
	s.mu.Lock()
	excess, protected := s.limits.above()
	candidates := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		switch {
		case c.surplus:
			excess--
		case c.listener.Name != protected:
			candidates = append(candidates, c)
		}
	}
	slices.SortFunc(candidates, func(a, b *conn) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	candidates = candidates[:max(min(excess, len(candidates)), 0)]
	for _, c := range candidates {
		c.surplus = true
	}
	s.mu.Unlock()
	for _, c := range candidates {
		c.fail(SurplusConnection, nil)
	}
}

// setBuffers sizes the buffers of a socket. The system may take other sizes, or
// refuse: the connection works all the same.
func (s *Server) setBuffers(nc net.Conn) {
	sized, ok := nc.(interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	})
	if !ok {
		return
	}
	if n := s.opts.ReceiveBufferBytes; n > 0 {
		_ = sized.SetReadBuffer(n)
	}
	if n := s.opts.SendBufferBytes; n > 0 {
		_ = sized.SetWriteBuffer(n)
	}
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	_ = l.Close()
}

func (s *Server) addConn(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) removeConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.leave(c.listener.Name, c.info.Remote.Addr())
	delete(s.conns, c)
	s.wakeups += c.wakeups.Load()
}

// refuse closes the listeners and lets no connection start. It returns those
// that run.
func (s *Server) refuse() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.stop()
	for l := range s.listeners {
		_ = l.Close()
	}
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// Shutdown stops accepting and reading, waits until every request that was read
// is answered, and closes the connections. When ctx ends first it does as Close
// and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.refuse() {
		c.drain()
	}
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.cancel()
		return nil
	case <-ctx.Done():
		err := s.Close()
		<-done
		return errors.Join(ctx.Err(), err)
	}
}

// Close ends all connections at once and waits for their goroutines; it waits
// for handlers to return, but not for answers. It always returns nil.
func (s *Server) Close() error {
	for _, c := range s.refuse() {
		c.fail(ServerClosed, nil)
	}
	s.cancel()
	s.running.Wait()
	return nil
}

// Wakeups counts how often a goroutine of a connection has run because bytes or
// an answer came. Requests that wait do not move it.
func (s *Server) Wakeups() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.wakeups
	for c := range s.conns {
		n += c.wakeups.Load()
	}
	return n
}
