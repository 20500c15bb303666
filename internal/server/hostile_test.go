package server

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Bad bytes end the connection they came on, with one line in the log, and
// nothing else. What Kafka 4.3.1 does was measured: it closes the connection in
// each of these cases.
func TestHostileBytes(t *testing.T) {
	random := make([]byte, 300)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.IntN(256))
	}
	copy(random, frame(random[4:]...)) // a true size, so that the rest is looked at
	size := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	cases := []struct {
		name string
		send []byte
		end  bool // then the client closes its side
		want CloseReason
	}{
		{name: "random", send: random, want: BadFrame},
		{name: "negative size", send: size(0xffffffff), want: OversizedFrame},
		{name: "largest size", send: size(0x7fffffff), want: OversizedFrame},
		{name: "one byte too large", send: size(100<<20 + 1), want: OversizedFrame},
		{name: "empty frame", send: size(0), want: BadFrame},
		{name: "three bytes", send: frame(1, 2, 3), want: BadFrame},
		{name: "half a size", send: []byte{0, 0}, end: true, want: TruncatedFrame},
		{name: "size only", send: size(100 << 20), end: true, want: TruncatedFrame},
		{name: "half a frame", send: request(1, 1, 2, 3, 4)[:12], end: true, want: TruncatedFrame},
		{name: "half a large frame", send: append(size(90<<20), make([]byte, 200<<10)...), end: true,
			want: TruncatedFrame},
		{name: "HTTP", send: []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), want: OversizedFrame},
		{name: "TLS", send: []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, want: OversizedFrame},
		{name: "unknown key", send: requestOf(999, 0, 1), want: BadFrame},
		{name: "negative key", send: requestOf(-1, 0, 1), want: BadFrame},
		{name: "removed key", send: requestOf(4, 0, 1), want: BadFrame},
		{name: "version too new", send: requestOf(3, 14, 1, 0), want: UnsupportedVersion},
		{name: "negative version", send: requestOf(3, -1, 1), want: UnsupportedVersion},
		{name: "key of controllers", send: requestOf(63, 0, 1, 0), want: UnsupportedVersion},
		{name: "client id beyond the end", send: frame(0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xfe), want: BadFrame},
		{name: "forged count of tags", send: requestOf(3, 12, 1, 0xff, 0xff, 0xff, 0xff, 0x0f), want: BadFrame},
		{name: "no tags in a newer ApiVersions", send: requestOf(18, 99, 1), want: BadFrame},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, echo, nil)
			neighbour := s.dial(t)
			neighbour.expect(1, "before")
			bad := s.dial(t)
			bad.send(c.send)
			if c.end {
				if err := bad.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			bad.ended()
			s.await(t, "end and one line", func() bool { return len(s.closed) == 1 && len(s.lines) == 1 })
			if s.closed[0] != c.want || !strings.Contains(s.lines[0], c.want.String()) {
				t.Errorf("reason %q, want %q; log %s", s.closed[0], c.want, s.lines[0])
			}
			neighbour.expect(2, "after")
		})
	}
}

// What Kafka 4.3.1 takes although it is not quite right.
func TestLenientFrames(t *testing.T) {
	s := start(t, echo, nil)
	c := s.dial(t)
	c.send(frame(0, 3, 0, 1, 0, 0, 0, 9, 0xff, 0xfe, 'x')) // client id of length −2 is null
	if id, body := c.receive(); id != 9 || string(body) != "x" {
		t.Fatalf("got %d %q", id, body)
	}
	c.send(requestOf(3, 12, 10, 2, 5, 0, 4, 1, 'v')) // unknown tags out of order; then an empty body
	if id, body := c.receive(); id != 10 || len(body) != 1 {
		t.Fatalf("got %d %x", id, body) // the byte is the tags of the response header
	}
}

// ApiVersions in a version that nobody knows is answered in the form of version
// 0 with error 35 and its own range, and the connection goes on.
func TestUnsupportedApiVersions(t *testing.T) {
	s := start(t, echo, nil)
	c := s.dial(t)
	want := string([]byte{0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4})
	for _, req := range [][]byte{
		requestOf(18, 5, 7, 0), requestOf(18, 99, 7, 0, 1, 2, 3), requestOf(18, -1, 7),
	} {
		c.send(req)
		if id, body := c.receive(); id != 7 || string(body) != want {
			t.Fatalf("got %d %x", id, body)
		}
	}
	c.expect(8, "goes on")
}

// A client that sends a byte at a time is served like any other.
func TestSlowWriter(t *testing.T) {
	s := start(t, echo, nil)
	c := s.dial(t)
	for _, b := range request(5, []byte("slowly")...) {
		c.send([]byte{b})
		time.Sleep(time.Millisecond)
	}
	if id, body := c.receive(); id != 5 || string(body) != "slowly" {
		t.Fatalf("got %d %q", id, body)
	}
}

// Connections that announce the largest frame and send nothing of it take next
// to no memory and no budget.
func TestManyForgedSizes(t *testing.T) {
	s := start(t, echo, func(o *Options) { o.MaxQueuedBytes = 1 << 20 })
	for range 200 {
		c := s.dial(t)
		c.send(append(binary.BigEndian.AppendUint32(nil, 100<<20), 1, 2, 3))
	}
	s.await(t, "all open", func() bool { return s.opened == 200 })
	c := s.dial(t)
	c.expect(1, "served among them")
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.budget.used > 100 {
		t.Errorf("%d bytes held", s.budget.used)
	}
}

func TestLargeFrames(t *testing.T) {
	s := start(t, echo, nil)
	c := s.dial(t)
	sizes := []int{0, 1, firstChunk - 10, firstChunk, firstChunk + 1, nextChunk * 3, 1<<20 + 5, 300 << 10, 5 << 20}
	for i, n := range sizes {
		body := make([]byte, n)
		for j := range body {
			body[j] = byte(j * (i + 7))
		}
		go func() { _, _ = c.Write(request(int32(i), body...)) }()
		if id, got := c.receive(); id != int32(i) || string(got) != string(body) {
			t.Fatalf("%d bytes came back changed (%d)", n, len(got))
		}
	}
}
