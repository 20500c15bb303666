package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
)

// frames is what a stream holds: whole frames, and how it ends.
func frames(stream []byte, limit int32) (whole [][]byte, end error) {
	for {
		if len(stream) == 0 {
			return whole, io.EOF
		}
		if len(stream) < sizeBytes {
			return whole, errTruncated
		}
		size := int32(binary.BigEndian.Uint32(stream))
		if size < 0 || size > limit {
			return whole, &oversizedError{size, limit}
		}
		if int(size) > len(stream)-sizeBytes {
			return whole, errTruncated
		}
		whole = append(whole, stream[sizeBytes:sizeBytes+int(size)])
		stream = stream[sizeBytes+int(size):]
	}
}

// FuzzFrame reads any stream as frames: the right ones, the right end, and no
// more memory than twice the stream and a bound, whatever sizes it claims.
func FuzzFrame(f *testing.F) {
	f.Add(request(1, 2, 3), false)
	f.Add(append(request(1), request(2, 1, 2)[:7]...), true)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1}, false)
	f.Add([]byte{0x05, 0xff, 0xff, 0xff, 1}, false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, false)
	f.Add(frame(make([]byte, firstChunk+1)...), false)
	f.Add(append(frame(make([]byte, firstChunk+nextChunk)...), frame(make([]byte, nextChunk)...)...), true)
	f.Fuzz(func(t *testing.T, stream []byte, slowly bool) {
		const limit = 100 << 20
		const bound = 2 * maxTrusted
		var in io.Reader = bytes.NewReader(stream)
		if slowly {
			in = iotest.HalfReader(in)
		}
		b := &budget{limit: limit}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := frameReader{in: bufio.NewReaderSize(in, readBuffer), limit: limit, budget: b}
		want, end := frames(stream, limit)
		for _, w := range want {
			got, err := r.next(context.Background())
			if err != nil || !bytes.Equal(got.b, w) {
				t.Fatalf("frame of %d bytes: %v", len(w), err)
			}
			b.release(int64(len(got.b)))
			got.free()
		}
		_, err := r.next(context.Background())
		runtime.ReadMemStats(&after)
		var oversized *oversizedError
		if !errors.Is(err, end) && !(errors.As(err, &oversized) && errors.As(end, &oversized)) {
			t.Fatalf("ends with %v, want %v", err, end)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(2*len(stream)+bound) {
			t.Fatalf("%d bytes of input made %d allocated", len(stream), n)
		}
		if b.used != 0 {
			t.Fatalf("%d bytes of the budget are not given back", b.used)
		}
	})
}

// A frame larger than the connection is trusted with is put together from
// chunks without more memory than twice its size.
func TestFrameMemory(t *testing.T) {
	const n = 30 << 20
	for _, sent := range []int{n, n / 2, 1000} {
		stream := append(binary.BigEndian.AppendUint32(nil, n), make([]byte, sent)...)
		r := frameReader{in: bufio.NewReader(bytes.NewReader(stream)), limit: 100 << 20, budget: &budget{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := r.next(context.Background())
		runtime.ReadMemStats(&after)
		if (err == nil) != (sent == n) {
			t.Fatal(err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(2*sent+2*nextChunk) {
			t.Errorf("%d of %d bytes sent: %d allocated", sent, n, got)
		}
	}
}

func TestBudget(t *testing.T) {
	ctx := context.Background()
	b := &budget{limit: 10}
	must := func(n int64) {
		t.Helper()
		if err := b.acquire(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	must(4)
	must(6)
	granted := make(chan int64, 3)
	for i, n := range []int64{5, 1, 50} { // the second fits earlier, but must wait its turn
		go func() {
			must(n)
			granted <- n
		}()
		waitFor(t, b, i+1)
	}
	b.release(4)
	select {
	case n := <-granted:
		t.Fatalf("%d granted with 6 of 10 held", n)
	default:
	}
	b.release(6)
	if a, b := <-granted, <-granted; a+b != 6 {
		t.Fatalf("granted %d and %d", a, b)
	}
	b.release(6)
	if n := <-granted; n != 50 { // above the limit: alone
		t.Fatalf("granted %d", n)
	}

	cancelled, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- b.acquire(cancelled, 10) }()
	waitFor(t, b, 1)
	go func() {
		must(1)
		granted <- 1
	}()
	waitFor(t, b, 2)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.release(50)
	<-granted
	b.release(1)
	if b.used != 0 {
		t.Fatalf("%d held", b.used)
	}
}

// waitFor waits until n claims wait.
func waitFor(t *testing.T, b *budget, n int) {
	t.Helper()
	for {
		b.mu.Lock()
		waiting := b.waiting.Len()
		b.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}
