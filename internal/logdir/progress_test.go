package logdir

import (
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/vfs"
)

// TestTimeLeft estimates by partitions after a clean stop, by bytes while logs are recovered.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		total, begun, done, bytes, read int64
		want                            time.Duration
		known                           bool
	}{
		{total: 10, want: 0},
		{total: 10, begun: 6, done: 5, want: 10 * time.Second, known: true},
		{total: 1, begun: 1, bytes: 1000, read: 250, want: 30 * time.Second, known: true},
		{total: 4, begun: 2, done: 1, bytes: 1000, read: 1000, want: 10 * time.Second, known: true},
		{total: 4, begun: 4, done: 4, bytes: 1000, read: 1000, want: 0, known: true},
	} {
		o := testOptions(vfs.NewMem(), &byHand{}, "/data")
		o.Metrics = &commitlog.Metrics{}
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		s.progress.total.Store(c.total)
		s.progress.begun.Store(c.begun)
		s.progress.done.Store(c.done)
		o.Metrics.RecoveryBytes.Store(c.bytes)
		o.Metrics.RecoveryBytesRead.Store(c.read)
		if left, known := s.timeLeft(10 * time.Second); left != c.want || known != c.known {
			t.Errorf("%+v: %v, %v", c, left, known)
		}
	}
}
