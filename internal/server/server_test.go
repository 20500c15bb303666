package server

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/protocol"
)

// Responses come in the order of their requests, in whatever order handlers
// answer.
func TestPipelining(t *testing.T) {
	const n = 500
	var mu sync.Mutex
	var handled []int32
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		mu.Lock()
		handled = append(handled, r.Header.CorrelationID)
		mu.Unlock()
		body := bytes.Clone(r.Body)
		go func() {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			reply(protocol.Response{Body: protocol.Parts{protocol.BytesPart(body)}})
		}()
	}, nil)
	s.dial(t).pipeline(n)
	mu.Lock()
	defer mu.Unlock()
	for i, id := range handled {
		if id != int32(i) {
			t.Fatalf("request %d was handled as number %d", id, i)
		}
	}
}

// No more requests than permitted are handed to the handler before answers.
func TestInFlightIsBounded(t *testing.T) {
	var mu sync.Mutex
	var replies []func(protocol.Response)
	arrived := make(chan struct{}, 100)
	s := start(t, func(_ context.Context, _ *protocol.Request, reply func(protocol.Response)) {
		mu.Lock()
		replies = append(replies, reply)
		mu.Unlock()
		arrived <- struct{}{}
	}, func(o *Options) { o.MaxInFlight = 3 })
	c := s.dial(t)
	for i := range int32(10) {
		c.send(request(i))
	}
	for i := range 10 {
		if i < 3 {
			<-arrived
			continue
		}
		select {
		case <-arrived:
			t.Fatalf("request %d was handled with 3 in flight", i)
		case <-time.After(5 * time.Millisecond):
		}
		mu.Lock()
		replies[i-3](protocol.Response{})
		mu.Unlock()
		c.receive()
		<-arrived
	}
}

func TestNoReplyAndClose(t *testing.T) {
	var released atomic.Int32
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		resp := protocol.Response{Release: func() { released.Add(1) }}
		switch string(r.Body) {
		case "silent":
			resp.NoReply = true
		case "end":
			resp.Close = true
		case "last":
			resp.Body, resp.Close = protocol.Parts{protocol.BytesPart([]byte("bye"))}, true
		default:
			resp.Body = protocol.Parts{protocol.BytesPart([]byte("one ")), {}, protocol.BytesPart([]byte("two"))}
		}
		reply(resp)
		reply(resp) // dropped, and released
	}, nil)

	c := s.dial(t)
	c.send(request(1, []byte("silent")...))
	c.send(request(2))
	if id, body := c.receive(); id != 2 || string(body) != "one two" {
		t.Fatalf("got %d %q", id, body)
	}
	c.send(request(3, []byte("last")...))
	if id, body := c.receive(); id != 3 || string(body) != "bye" {
		t.Fatalf("got %d %q", id, body)
	}
	c.ended()
	c = s.dial(t)
	c.send(request(1, []byte("end")...))
	c.ended()
	s.await(t, "two ends", func() bool {
		return len(s.closed) == 2 && s.closed[0] == HandlerClosed && s.closed[1] == HandlerClosed
	})
	if n := released.Load(); n != 8 {
		t.Errorf("%d releases of 8 responses", n)
	}
}

// Nothing that follows a request which ends the connection is looked at.
func TestNothingAfterClose(t *testing.T) {
	var handled atomic.Int32
	s := start(t, func(_ context.Context, _ *protocol.Request, reply func(protocol.Response)) {
		handled.Add(1)
		reply(protocol.Response{Close: true})
	}, nil)
	c := s.dial(t)
	c.send(append(request(1), request(2)...))
	c.ended()
	s.await(t, "end", func() bool { return len(s.closed) == 1 })
	if n := handled.Load(); n != 1 {
		t.Errorf("%d requests handled", n)
	}
}

// A malformed body, found by the handler, counts as a bad frame.
func TestCloseReasonOfMalformedBody(t *testing.T) {
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		_, err := protocol.DecodeRequest(r.Header, r.Body)
		reply(protocol.Response{Close: true, Err: err})
	}, nil)
	c := s.dial(t)
	c.send(request(1, 0x7f, 0xff, 0xff, 0xff))
	c.ended()
	s.await(t, "end", func() bool { return len(s.closed) == 1 && s.closed[0] == BadFrame && len(s.lines) == 1 })
}

func TestHandlerPanic(t *testing.T) {
	s := start(t, func(ctx context.Context, r *protocol.Request, reply func(protocol.Response)) {
		if string(r.Body) == "panic" {
			panic("broken invariant")
		}
		echo(ctx, r, reply)
	}, nil)
	bad, good := s.dial(t), s.dial(t)
	good.expect(1, "before")
	bad.send(request(1, []byte("panic")...))
	bad.ended()
	s.await(t, "panic counted", func() bool {
		return s.panics == 1 && len(s.closed) == 1 && s.closed[0] == HandlerPanicked && len(s.lines) == 1
	})
	good.expect(2, "after")
}

// The context of a request ends with its connection, and a late reply is
// released.
func TestReplyAfterEnd(t *testing.T) {
	released := make(chan struct{})
	s := start(t, func(ctx context.Context, _ *protocol.Request, reply func(protocol.Response)) {
		context.AfterFunc(ctx, func() {
			reply(protocol.Response{Release: func() { close(released) }})
		})
	}, nil)
	c := s.dial(t)
	c.send(request(1))
	_ = c.Close()
	select {
	case <-released:
	case <-time.After(patience):
		t.Fatal("not released")
	}
}

func TestGate(t *testing.T) {
	s := start(t, echo, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(Listener{Name: "SASL", Net: l, Gate: func(c *protocol.Conn, h protocol.RequestHeader) bool {
			return c.Listener == "SASL" && (c.Principal() != protocol.Anonymous || h.Key == 17)
		}})
	}()
	c := s.dial(t)
	c.expect(1, "no gate here")
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	gated := &client{nc, t}
	gated.send(requestOf(17, 0, 7))
	if id, _ := gated.receive(); id != 7 {
		t.Fatalf("handshake answered as %d", id)
	}
	gated.send(request(8))
	gated.ended()
	_ = nc.Close()
	s.await(t, "end", func() bool { return len(s.closed) == 1 && s.closed[0] == NotAuthenticated })
	_ = l.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve of a closed listener: %v", err)
	}
}

func TestThrottle(t *testing.T) {
	const pause = 30 * time.Millisecond
	times := make(chan time.Time, 2)
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		times <- time.Now()
		reply(protocol.Response{Throttle: pause})
	}, nil)
	c := s.dial(t)
	c.send(append(request(1), request(2)...))
	c.receive()
	c.receive()
	first, second := <-times, <-times
	if d := second.Sub(first); d < pause {
		t.Errorf("second request after %v of a pause of %v", d, pause)
	}
}

func TestConnectionsPerIP(t *testing.T) {
	s := start(t, echo, func(o *Options) { o.Limits.PerIP = 2 })
	a, b := s.dial(t), s.dial(t)
	a.expect(1, "a")
	b.expect(1, "b")
	s.dial(t).ended()
	s.await(t, "refusal", func() bool { return s.refused == 1 && len(s.lines) == 1 })
	_ = a.Close()
	s.await(t, "end of a", func() bool { return len(s.closed) == 1 })
	s.dial(t).expect(1, "room again")
}

func TestPerIPOverrides(t *testing.T) {
	s := start(t, echo, func(o *Options) {
		o.Limits.PerIP = 5
		o.Limits.PerIPOverrides = map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 0}
	})
	s.dial(t).ended()
	s.await(t, "refusal", func() bool { return s.refused == 1 && s.opened == 0 })
}

// A connection above the total waits, and is served when another ends.
func TestConnectionsInTotal(t *testing.T) {
	s := start(t, echo, func(o *Options) { o.Limits.MaxConnections = 1 })
	a := s.dial(t)
	a.expect(1, "a")
	b := s.dial(t)
	b.send(request(1, 'b'))
	_ = a.Close()
	if _, body := b.receive(); string(body) != "b" {
		t.Fatalf("got %q", body)
	}
	c := s.dial(t) // waits when the server is closed
	c.send(request(1))
}

// Limits that change hold from then on; who waits for room is let in when there is.
func TestLimitsChange(t *testing.T) {
	s := start(t, echo, func(o *Options) { o.Limits.MaxConnections = 1 })
	a := s.dial(t)
	a.expect(1, "a")
	b := s.dial(t)
	b.send(request(1, 'b'))
	s.SetLimits(Limits{MaxConnections: 2})
	if _, body := b.receive(); string(body) != "b" {
		t.Fatalf("got %q", body)
	}
	s.SetLimits(Limits{PerIP: 2})
	s.dial(t).ended()
	s.SetLimits(Limits{PerIP: -1, PerIPOverrides: map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 3}})
	s.dial(t).expect(1, "three are allowed")
	s.SetLimits(Limits{PerIP: -1})
	s.dial(t).ended()
	s.SetLimits(Limits{PerListener: map[string]int{"": 4, "PLAINTEXT": 4}})
	s.dial(t).expect(1, "four")
	c := s.dial(t)
	c.send(request(1, 'c'))
	_ = a.Close()
	if _, body := c.receive(); string(body) != "c" {
		t.Fatalf("got %q", body)
	}
}

// pastAfterwards is a clock that goes back far enough, once told, that every
// deadline set then has passed.
type pastAfterwards struct{ past atomic.Bool }

func (c *pastAfterwards) now() time.Time {
	if c.past.Load() {
		return time.Now().Add(-time.Hour)
	}
	return time.Now()
}

// A connection that waits for an answer is not idle.
func TestWaitingIsNotIdle(t *testing.T) {
	var clock pastAfterwards
	answer := make(chan func(protocol.Response), 1)
	s := start(t, func(_ context.Context, _ *protocol.Request, reply func(protocol.Response)) {
		clock.past.Store(true) // for the reads from now on
		answer <- reply
	}, func(o *Options) { o.Now = clock.now })
	c := s.dial(t)
	c.send(request(1))
	reply := <-answer
	for before := s.Wakeups(); s.Wakeups() < before+3; { // timed out a few times
		time.Sleep(time.Millisecond)
	}
	clock.past.Store(false) // for the write
	reply(protocol.Response{})
	c.receive()
}

func TestIdleConnectionEnds(t *testing.T) {
	var clock pastAfterwards
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		reply(protocol.Response{NoReply: true})
		clock.past.Store(true)
	}, func(o *Options) { o.Now = clock.now })
	c := s.dial(t)
	c.send(request(1))
	c.ended()
	s.await(t, "end", func() bool { return len(s.closed) == 1 && s.closed[0] == IdleTimeout && len(s.lines) == 0 })
}

func TestStalledFrame(t *testing.T) {
	var clock pastAfterwards
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		reply(protocol.Response{NoReply: true})
		clock.past.Store(true)
	}, func(o *Options) { o.Now = clock.now })
	c := s.dial(t)
	c.send(append(request(1), request(2)[:6]...))
	c.ended()
	s.await(t, "end", func() bool { return len(s.closed) == 1 && s.closed[0] == StalledFrame && len(s.lines) == 1 })
}

// A client that does not take its answers is dropped, and holds up nobody.
func TestSlowReader(t *testing.T) {
	big := make([]byte, 8<<20)
	s := start(t, func(ctx context.Context, r *protocol.Request, reply func(protocol.Response)) {
		if len(r.Body) > 0 {
			echo(ctx, r, reply)
			return
		}
		reply(protocol.Response{Body: protocol.Parts{protocol.BytesPart(big)}})
	}, func(o *Options) { o.IdleTimeout = 2 * time.Second })
	slow := s.dial(t)
	for i := range int32(8) {
		slow.send(request(i))
	}
	quick := s.dial(t)
	quick.expect(1, "served meanwhile")
	_ = quick.Close()
	s.await(t, "end", func() bool {
		for _, r := range s.closed {
			if r == WriteTimeout {
				return true
			}
		}
		return false
	})
}

// Shutdown lets what was read be answered, and takes nothing new.
func TestShutdown(t *testing.T) {
	replies := make(chan func(protocol.Response), 2)
	s := start(t, func(_ context.Context, _ *protocol.Request, reply func(protocol.Response)) { replies <- reply }, nil)
	busy, idle := s.dial(t), s.dial(t)
	busy.send(request(1))
	busy.send(request(2))
	first, second := <-replies, <-replies
	s.await(t, "two connections", func() bool { return s.opened == 2 })
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.ended()
	if c, err := net.Dial("tcp", s.addr); err == nil {
		_ = c.Close()
		t.Error("accepted after Shutdown")
	}
	busy.send(request(3)) // not read any more
	second(protocol.Response{})
	first(protocol.Response{})
	for want := range int32(2) {
		if id, _ := busy.receive(); id != want+1 {
			t.Fatalf("response %d, want %d", id, want+1)
		}
	}
	busy.ended()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.await(t, "two ends", func() bool {
		return len(s.closed) == 2 && s.closed[0] == ServerClosed && s.closed[1] == ServerClosed
	})
}

func TestShutdownGivesUp(t *testing.T) {
	arrived := make(chan struct{})
	s := start(t, func(context.Context, *protocol.Request, func(protocol.Response)) { close(arrived) }, nil)
	c := s.dial(t)
	c.send(request(1))
	<-arrived
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Shutdown: %v", err)
	}
	c.ended()
}

// Requests that wait cost no goroutine run of the server.
func TestParkedRequestsDoNotWake(t *testing.T) {
	const n = 1000
	quiet := 5 * time.Second
	if testing.Short() || raceEnabled {
		quiet = 500 * time.Millisecond
	}
	var parked sync.WaitGroup
	parked.Add(n)
	s := start(t, func(_ context.Context, r *protocol.Request, _ func(protocol.Response)) {
		r.ReleaseBody()
		parked.Done()
	}, nil)
	for range n / 10 {
		c := s.dial(t)
		for i := range int32(10) {
			c.send(request(i))
		}
	}
	parked.Wait()
	before := s.Wakeups()
	if before == 0 {
		t.Fatal("the counter does not count")
	}
	time.Sleep(quiet)
	if after := s.Wakeups(); after != before {
		t.Errorf("%d wake-ups in %v", after-before, quiet)
	}
}

// The budget holds back further requests until earlier ones are answered or
// have given their bodies back.
func TestQueuedBytes(t *testing.T) {
	type parked struct {
		id    int32
		reply func(protocol.Response)
	}
	arrived := make(chan parked, 10)
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		p := parked{r.Header.CorrelationID, reply}
		if len(r.Body) > 0 && r.Body[0] == 'f' {
			r.ReleaseBody()
		}
		arrived <- p
	}, func(o *Options) { o.MaxQueuedBytes = 100 })
	a, b, c := s.dial(t), s.dial(t), s.dial(t)
	a.send(request(1, bytes.Repeat([]byte("f"), 80)...))
	<-arrived
	b.send(request(2, bytes.Repeat([]byte("k"), 80)...))
	holding := <-arrived
	c.send(request(3, bytes.Repeat([]byte("k"), 500)...)) // larger than all: waits until nothing is held
	select {
	case p := <-arrived:
		t.Fatalf("request %d came through", p.id)
	case <-time.After(20 * time.Millisecond):
	}
	holding.reply(protocol.Response{})
	b.receive()
	if p := <-arrived; p.id != 3 {
		t.Fatalf("request %d came through", p.id)
	}
	_ = c.Close() // never answered: what it holds is given back
	b.send(request(4, bytes.Repeat([]byte("k"), 80)...))
	if p := <-arrived; p.id != 4 {
		t.Fatalf("request %d came through", p.id)
	}
}
