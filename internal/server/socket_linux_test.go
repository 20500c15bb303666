package server

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// Large frames and small ones mix: a connection that was told of bytes in large pieces only is told of the few of the
// next frame too, wherever the sender pauses.
func TestLargeAndSmallFrames(t *testing.T) {
	s := start(t, echo, nil)
	c := s.dial(t)
	large := make([]byte, 3*wakeAt+11)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(large)
	small := []byte("small")
	const pause = 300 * time.Microsecond
	for i, cuts := range [][]int{
		{0}, {1}, {4, 9}, {largeRead}, {wakeAt - 1, wakeAt + 1}, {len(large) - 1}, {len(large) / 3, len(large) / 2},
	} {
		for _, body := range [][]byte{large, small, small, large, large[:largeRead], small} {
			text := request(int32(i), body...)
			sent := 0
			for _, at := range append(cuts, len(text)) {
				if at = min(at, len(text)); at > sent {
					c.send(text[sent:at])
					sent = at
					time.Sleep(pause)
				}
			}
			if id, got := c.receive(); id != int32(i) || !bytes.Equal(got, body) {
				t.Fatalf("cuts %v: response %d of %d bytes, want %d", cuts, id, len(got), len(body))
			}
		}
	}
}
