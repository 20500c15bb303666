package server

import (
	"bytes"
	"net"
	"testing"

	"tidemark/internal/protocol"
)

// What a client that went away has left in a pipe comes to no one else, and no pipe is lost.
func TestPipesAreLeftEmpty(t *testing.T) {
	const n = 8 << 20
	f, data := randomFile(t, n)
	bodies := []protocol.Parts{{protocol.FilePart(f, 1<<20, n-1<<20)}, {protocol.FilePart(f, 5, n/2)}}
	s := fileServer(t, bodies)
	for range maxPipes + 2 {
		gone := s.dial(t)
		gone.send(request(0))
		if _, err := gone.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := gone.Conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		_ = gone.Close()
		c := s.dial(t)
		c.send(request(1))
		if _, got := c.receive(); !bytes.Equal(got, data[5:5+n/2]) {
			t.Fatal("body changed")
		}
	}
	_ = s.Close()
	if all, idle := pipes.Load(), len(idlePipes); int(all) != idle {
		t.Errorf("%d pipes, %d of them idle after the end", all, idle)
	}
}

// When all pipes are taken by clients that do not read, others are served all the same.
func TestMoreTransfersThanPipes(t *testing.T) {
	const n = 8 << 20
	f, data := randomFile(t, n)
	s := fileServer(t, []protocol.Parts{{protocol.FilePart(f, 0, n)}})
	for range maxPipes + 3 {
		c := s.dial(t)
		c.send(request(0))
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if all := pipes.Load(); all > maxPipes {
		t.Errorf("%d pipes, the limit is %d", all, maxPipes)
	}
	c := s.dial(t)
	c.send(request(0))
	if _, got := c.receive(); !bytes.Equal(got, data) {
		t.Error("body changed")
	}
}
