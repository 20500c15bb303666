package server

import (
	"sync/atomic"

	"tidemark/internal/protocol"
)

// exchange is one request and, later, its response.
type exchange struct {
	protocol.Request
	conn *conn
	next *exchange

	// body is the memory of the request, nil once it was given back; size is
	// what the budget holds for it.
	body atomic.Pointer[buffer]
	size int

	// Under conn.mu: answered or dropped; the response once answered.
	settled bool
	resp    protocol.Response

	// sent is the bytes of the frame, 0 before it was gathered; the writer's.
	sent int64
	// head is where the writer puts size and response header.
	head [sizeBytes + 4 + 1]byte
}

// FreeBody gives the memory of the request back. It is safe to call twice.
func (x *exchange) FreeBody() {
	if b := x.body.Swap(nil); b != nil {
		b.free()
		x.conn.srv.budget.release(int64(x.size))
	}
}

// abandon gives back what the budget holds for a request that will not be
// answered. Its memory is left to the garbage collector, since the handler may
// still look at it.
func (x *exchange) abandon() {
	if x.body.Swap(nil) != nil {
		x.conn.srv.budget.release(int64(x.size))
	}
}

// finish ends an exchange whose response was written or is lost.
func (x *exchange) finish() {
	if x.resp.Release != nil {
		x.resp.Release()
	}
	x.FreeBody()
}

// reply takes the response of the handler. It never blocks.
func (x *exchange) reply(resp protocol.Response) {
	c := x.conn
	c.mu.Lock()
	if x.settled {
		c.mu.Unlock()
		if resp.Release != nil {
			resp.Release()
		}
		return
	}
	x.settled = true
	x.resp = resp
	first := c.head == x && c.dispatched != x
	c.closing = c.closing || resp.Close
	if resp.Throttle > 0 {
		if until := c.srv.opts.Now().Add(resp.Throttle); until.After(c.muteUntil) {
			c.muteUntil = until
		}
	}
	c.mu.Unlock()
	if first {
		signal(c.wakeWriter)
	}
}

// push puts an exchange at the end of the queue of its connection, or says
// false when the connection is dead.
func (c *conn) push(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false
	}
	c.inFlight++
	c.dispatched = x
	if c.tail == nil {
		c.head = x
	} else {
		c.tail.next = x
	}
	c.tail = x
	return true
}

// maxTake is how many responses are written together at most.
const maxTake = 32

// take waits until the oldest exchange is answered and takes it and those
// answered right after it off the queue. It returns none when the connection is
// dead, or drained and all is answered.
func (c *conn) take(into []*exchange) []*exchange {
	for {
		c.mu.Lock()
		into = c.takeSettled(into)
		end := c.dead || c.drained && c.head == nil
		c.mu.Unlock()
		if len(into) > 0 || end {
			return into
		}
		<-c.wakeWriter
		c.wakeups.Add(1)
	}
}

// takeNow takes, for the reader to write, what a handler that has returned has answered, if it is next.
func (c *conn) takeNow(x *exchange, into []*exchange) []*exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dispatched = nil
	if c.head != x {
		return into
	}
	return c.takeSettled(into)
}

// takeSettled takes the answered exchanges at the head of the queue, unless someone writes.
func (c *conn) takeSettled(into []*exchange) []*exchange {
	if c.writing {
		return into
	}
	for x := c.head; x != nil && x.settled && len(into) < maxTake; x = c.head {
		into = append(into, x)
		c.head = x.next
		x.next = nil
	}
	if c.head == nil {
		c.tail = nil
	}
	c.writing = len(into) > 0
	return into
}

// written ends exchanges that were taken.
func (c *conn) written(done []*exchange) {
	for _, x := range done {
		x.finish()
	}
	c.mu.Lock()
	c.inFlight -= len(done)
	c.writing = false
	more := c.head != nil && c.head.settled
	c.mu.Unlock()
	signal(c.wakeReader)
	if more {
		signal(c.wakeWriter)
	}
}

// signal wakes the one goroutine that waits on ch, now or when it next waits.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
