package protocol

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Handler answers requests. Package server calls it and knows nothing else of
// what is above.
type Handler interface {
	// Handle is called on the goroutine of the connection, one request at a
	// time, in arrival order: what must happen in that order (an append)
	// happens before Handle returns. The answer may come later, from any
	// goroutine, by one call of reply, which never blocks; the server puts
	// answers in the order of their requests. Further calls of reply have no
	// effect but to release their response.
	//
	// ctx ends when the connection does; reply is optional then. A panic closes
	// the connection.
	Handle(ctx context.Context, r *Request, reply func(Response))
}

// Request is one request. Without a reply it and its body stay valid for as
// long as they are referred to; after the call of reply a handler may not touch
// them, and what the response aliases is kept until the response was released.
type Request struct {
	Header RequestHeader
	// Body follows the header. Handlers may alias and change it.
	Body     []byte
	Conn     *Conn
	Received time.Time

	// Owner, when set, takes the memory of Body back. It belongs to the server;
	// handlers call ReleaseBody.
	Owner BodyOwner
}

// BodyOwner has the memory of a request body.
type BodyOwner interface{ FreeBody() }

// ReleaseBody gives the memory of Body back before the response is sent, as a
// handler should when it makes the client wait and needs the body no longer.
// Neither Body nor what aliases it may be used after. It must be called before
// Handle returns, at most once.
func (r *Request) ReleaseBody() {
	r.Body = nil
	if r.Owner != nil {
		r.Owner.FreeBody()
	}
}

// Response is the answer to a request.
type Response struct {
	// Body is written after the size and the response header, which the server
	// writes itself.
	Body Parts
	// NoReply sends nothing (Produce with acks=0).
	NoReply bool
	// Close ends the connection, after Body was written if there is any. Err,
	// when not nil, is the reason for the log; a *MalformedError counts as a bad
	// frame.
	Close bool
	Err   error
	// Throttle makes the server wait that long before it reads the next request
	// of the connection.
	Throttle time.Duration
	// Release, when not nil, is called once, after the last byte was written or
	// when that can no longer happen.
	Release func()
}

// Reply is a response of one message, whose version must be set.
func Reply(r kmsg.Response) Response {
	return Response{Body: Parts{BytesPart(r.AppendTo(nil))}}
}

// Principal is who a connection acts for.
type Principal struct{ Type, Name string }

// Anonymous is the principal of a connection without authentication.
var Anonymous = Principal{Type: "User", Name: "ANONYMOUS"}

// String is Kafka's notation, as in "User:ANONYMOUS".
func (p Principal) String() string { return p.Type + ":" + p.Name }

// Conn is what is known about a connection and its client. The exported fields
// do not change; the methods but Names may be called by any goroutine.
type Conn struct {
	ID            uint64
	Listener      string
	Local, Remote netip.AddrPort

	mu        sync.Mutex
	principal Principal
	software  Software
	names     Names
}

// Software is the client library as ApiVersions named it (KIP-511), both ""
// when it did not.
type Software struct{ Name, Version string }

// Principal is [Anonymous] until set.
func (c *Conn) Principal() Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.principal == (Principal{}) {
		return Anonymous
	}
	return c.principal
}

// SetPrincipal is for authentication.
func (c *Conn) SetPrincipal(p Principal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.principal = p
}

// Software names the client library.
func (c *Conn) Software() Software {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.software
}

// SetSoftware is for the handler of ApiVersions.
func (c *Conn) SetSoftware(s Software) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.software = s
}

// Names keeps the names that this connection repeats. It may be used only
// inside Handle, before it returns.
func (c *Conn) Names() *Names { return &c.names }
