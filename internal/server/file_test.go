package server

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tidemark/internal/protocol"
	"tidemark/vfs"
)

// randomFile writes n random bytes to a new file and opens it.
func randomFile(t *testing.T, n int) (vfs.File, []byte) {
	t.Helper()
	return randomFileIn(t, t.TempDir(), n)
}

func randomFileIn(t *testing.T, dir string, n int) (vfs.File, []byte) {
	t.Helper()
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	name := filepath.Join(dir, "segment.log")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, data
}

// memoryFile is a file without a descriptor.
type memoryFile struct {
	vfs.File
	data []byte
}

func (f memoryFile) Fd() (uintptr, bool) { return 0, false }

func (f memoryFile) ReadAt(p []byte, pos int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, pos)
}

// fileServer answers request n with the n-th of some bodies.
func fileServer(t *testing.T, bodies []protocol.Parts) *harness {
	return start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		reply(protocol.Response{Body: bodies[r.Header.CorrelationID]})
	}, nil)
}

// File ranges of every size arrive whole, in order with the bytes around them,
// from real files by sendfile and from others by copying.
func TestFileRanges(t *testing.T) {
	f, data := randomFile(t, 3<<20)
	mem := memoryFile{data: data}
	var bodies []protocol.Parts
	var want [][]byte
	for _, file := range []vfs.File{f, mem} {
		for _, n := range []int64{0, 1, 100, copyBelow - 1, copyBelow, copyChunk + 1, sendChunk, sendChunk + 1, 2 << 20} {
			const pos = 12345
			bodies = append(bodies, protocol.Parts{
				protocol.BytesPart([]byte("before")), protocol.FilePart(file, pos, n),
				protocol.FilePart(file, 7, 10), protocol.BytesPart([]byte("after")),
			})
			w := append([]byte("before"), data[pos:pos+n]...)
			want = append(want, append(append(w, data[7:17]...), "after"...))
		}
	}
	s := fileServer(t, bodies)
	c := s.dial(t)
	for i := range bodies {
		c.send(request(int32(i)))
	}
	for i := range bodies {
		if id, got := c.receive(); id != int32(i) || !bytes.Equal(got, want[i]) {
			t.Fatalf("response %d: %d bytes, want %d, or changed", id, len(got), len(want[i]))
		}
	}
}

// Many connections send the same file at once: positions are explicit.
func TestFileShared(t *testing.T) {
	f, data := randomFile(t, 2<<20)
	const n = 8
	bodies := make([]protocol.Parts, n)
	for i := range bodies {
		bodies[i] = protocol.Parts{protocol.FilePart(f, int64(i)*1000, 1<<20)}
	}
	s := fileServer(t, bodies)
	var wg sync.WaitGroup
	for i := range n {
		c := s.dial(t)
		wg.Go(func() {
			for range 5 {
				if _, err := c.Write(request(int32(i))); err != nil {
					t.Error(err)
					return
				}
				if _, got, err := c.tryReceive(); err != nil || !bytes.Equal(got, data[i*1000:i*1000+1<<20]) {
					t.Errorf("range %d changed: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A file that became shorter after its size was sent leaves nothing to do but
// to close the connection.
func TestShortFile(t *testing.T) {
	f, data := randomFile(t, 1<<20)
	end := int64(len(data))
	for _, body := range []protocol.Parts{
		{protocol.FilePart(f, end-100, 101)},
		{protocol.FilePart(f, end-copyBelow, copyBelow+1)},
		{protocol.FilePart(f, 0, end+sendChunk)},
		{protocol.FilePart(memoryFile{data: data}, end-100, 101)},
	} {
		s := fileServer(t, []protocol.Parts{body})
		c := s.dial(t)
		c.send(request(0))
		if _, _, err := c.tryReceive(); err == nil {
			t.Error("a short file made a whole response")
		}
		s.await(t, "end", func() bool { return len(s.closed) == 1 && s.closed[0] == ShortFile && len(s.lines) == 1 })
	}
}

// blockedFile does not give its bytes until told to.
type blockedFile struct {
	memoryFile
	reading, proceed chan struct{}
}

func (f blockedFile) ReadAt(p []byte, pos int64) (int, error) {
	f.reading <- struct{}{}
	<-f.proceed
	return f.memoryFile.ReadAt(p, pos)
}

// A read that takes its time holds up its own connection only.
func TestSlowDisk(t *testing.T) {
	slow := blockedFile{memoryFile{data: []byte("data")}, make(chan struct{}), make(chan struct{})}
	s := fileServer(t, []protocol.Parts{
		{protocol.FilePart(slow, 0, 4)}, {protocol.BytesPart([]byte("quick"))},
	})
	a, b := s.dial(t), s.dial(t)
	a.send(request(0))
	<-slow.reading
	for range 10 {
		b.send(request(1))
		b.receive()
	}
	close(slow.proceed)
	if _, body := a.receive(); string(body) != "data" {
		t.Fatalf("got %q", body)
	}
}

// plainConn hides that a connection is TCP, as TLS does.
type plainConn struct{ net.Conn }

type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return plainConn{c}, err
}

func TestWrappedListener(t *testing.T) {
	f, data := randomFile(t, 1<<20)
	s := fileServer(t, []protocol.Parts{{protocol.BytesPart([]byte("x")), protocol.FilePart(f, 0, 1<<20)}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(Listener{Name: "WRAPPED", Net: plainListener{l}}) }()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := &client{nc, t}
	c.send(request(0))
	if _, got := c.receive(); !bytes.Equal(got[1:], data) {
		t.Error("body changed")
	}
	_ = nc.Close()
	_ = s.Close()
	if err := <-served; err != ErrClosed {
		t.Error(err)
	}
}
