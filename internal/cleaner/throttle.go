package cleaner

import (
	"context"
	"math"
	"sync"
	"time"
)

// throttle holds back all threads together so that they read and write at most a number of bytes per second.
type throttle struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error

	mu   sync.Mutex
	rate float64   // bytes per second
	due  time.Time // when what was let through is paid for
}

// throttleSlack is how far the bytes may run ahead of the rate before a thread has to wait.
const throttleSlack = 50 * time.Millisecond

// setRate changes the rate, also for those who wait.
func (t *throttle) setRate(bytesPerSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = bytesPerSecond
}

// wait lets n bytes through, when their time has come. The error is errStopped.
func (t *throttle) wait(ctx context.Context, n int) error {
	d := t.take(n)
	if d <= throttleSlack {
		return nil
	}
	if t.sleep(ctx, d) != nil {
		return errStopped
	}
	return nil
}

// take books n bytes and returns how long to wait for them.
func (t *throttle) take(n int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rate <= 0 || t.rate > math.MaxInt64 {
		return 0
	}
	now := t.now()
	if t.due.Before(now) {
		t.due = now
	}
	t.due = t.due.Add(time.Duration(min(float64(n)/t.rate*float64(time.Second), float64(time.Hour))))
	return t.due.Sub(now)
}
