package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidemark/internal/protocol"
	"tidemark/vfs"
)

// benchServer serves h until the end of the benchmark and returns a connection.
func benchServer(b *testing.B, h handlerFunc) net.Conn {
	b.Helper()
	s, err := New(Options{Handler: h, Versions: everything(), Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(Listener{Name: "PLAINTEXT", Net: l}) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(); _ = s.Close() })
	return c
}

// take reads a response into buf.
func take(b *testing.B, c net.Conn, buf []byte) {
	if _, err := io.ReadFull(c, buf[:4]); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(c, buf[:binary.BigEndian.Uint32(buf)]); err != nil {
		b.Fatal(err)
	}
}

// One small request after the other, and many at a time.
func BenchmarkRequest(b *testing.B) {
	for _, pipelined := range []int{1, 32} {
		b.Run(fmt.Sprint("pipelined=", pipelined), func(b *testing.B) {
			answer := protocol.Parts{protocol.BytesPart(make([]byte, 50))}
			c := benchServer(b, func(_ context.Context, _ *protocol.Request, reply func(protocol.Response)) {
				reply(protocol.Response{Body: answer})
			})
			var batch []byte
			for range pipelined {
				batch = append(batch, request(1, make([]byte, 100)...)...)
			}
			buf := make([]byte, 1000)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%pipelined == 0 {
					if _, err := c.Write(batch); err != nil {
						b.Fatal(err)
					}
				}
				take(b, c, buf)
			}
		})
	}
}

// A produce frame: parsed, answered.
func BenchmarkProduceFrame(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			var parsed protocol.ProduceRequest
			resp := protocol.ProduceResponse{Topics: []protocol.ProduceTopicResponse{{
				Name: "orders", Partitions: []protocol.ProducePartitionResponse{{}}}}}
			c := benchServer(b, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
				if err := parsed.Parse(r.Header.Version, r.Body, r.Conn.Names()); err != nil {
					reply(protocol.Response{Close: true, Err: err})
					return
				}
				body := resp.AppendTo(make([]byte, 0, 64), r.Header.Version)
				reply(protocol.Response{Body: protocol.Parts{protocol.BytesPart(body)}})
			})
			req := requestOf(0, 8, 1, produceBody(size)...)
			buf := make([]byte, 1000)
			b.ReportAllocs()
			b.SetBytes(int64(len(req)))
			for b.Loop() {
				if _, err := c.Write(req); err != nil {
					b.Fatal(err)
				}
				take(b, c, buf)
			}
		})
	}
}

// produceBody is a Produce request of version 8 for one partition.
func produceBody(size int) []byte {
	b := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0x75, 0x30, 0, 0, 0, 1, 0, 6}
	b = append(b, "orders"...)
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	return append(b, make([]byte, size)...)
}

// A fetch response with records out of a file.
func BenchmarkFetchFrame(b *testing.B) {
	name := filepath.Join(b.TempDir(), "segment.log")
	if err := os.WriteFile(name, make([]byte, 2<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := vfs.OS().Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, size := range []int64{1 << 10, 16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			part := protocol.FetchError(0, 0)
			part.Records = protocol.FilePart(f, 100, size)
			resp := protocol.FetchResponse{Topics: []protocol.FetchTopicResponse{{
				Name: "orders", Partitions: []protocol.FetchPartitionResponse{part}}}}
			c := benchServer(b, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
				reply(protocol.Response{Body: resp.Encode(11)})
			})
			req := requestOf(1, 11, 1)
			buf := make([]byte, size+1000)
			b.ReportAllocs()
			b.SetBytes(size)
			for b.Loop() {
				if _, err := c.Write(req); err != nil {
					b.Fatal(err)
				}
				take(b, c, buf)
			}
		})
	}
}
