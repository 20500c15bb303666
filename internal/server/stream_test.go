package server

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/protocol"
)

// The reader writes what a handler answers before it returns, the writer what comes later; the order stays.
func TestAnswersNowAndLater(t *testing.T) {
	const n = 2000
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		answer := protocol.Response{Body: protocol.Parts{protocol.BytesPart(bytes.Clone(r.Body))}}
		switch r.Header.CorrelationID % 5 {
		case 0:
			go reply(answer)
		case 1:
			time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, func() { reply(answer) })
		default:
			reply(answer)
		}
	}, nil)
	s.dial(t).pipeline(n)
}

// A client that does not read its responses holds up itself only, and Close ends it.
func TestClientThatDoesNotRead(t *testing.T) {
	f, _ := randomFile(t, 8<<20)
	s := fileServer(t, []protocol.Parts{{protocol.FilePart(f, 0, 8<<20)}, {protocol.BytesPart([]byte("quick"))}})
	for range 3 {
		c := s.dial(t)
		for range 3 {
			c.send(request(0))
		}
	}
	c := s.dial(t)
	for range 10 {
		c.send(request(1))
		c.receive()
	}
}
