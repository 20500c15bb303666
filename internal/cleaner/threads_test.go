package cleaner

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// blocked is a sleep that lasts until the context ends; it tells of each.
func blocked(asleep chan<- time.Duration) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		asleep <- d
		<-ctx.Done()
		return ctx.Err()
	}
}

func TestThreadsRestAndStop(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t, smallLog())
	must(t, w.open())
	asleep := make(chan time.Duration, 10)
	w.c.o.Sleep = blocked(asleep)
	cfg := DefaultConfig()
	cfg.Backoff = 7 * time.Second
	w.c.Configure(cfg)
	w.c.Start()
	if d := <-asleep; d != 7*time.Second {
		t.Errorf("backoff: got %v, want 7s", d)
	}
	cfg.Backoff = 5 * time.Second
	w.c.Configure(cfg)
	if d := <-asleep; d != 5*time.Second {
		t.Errorf("backoff after the change: got %v, want 5s", d)
	}
	cfg.Threads = 3
	w.c.Configure(cfg)
	<-asleep
	<-asleep
	<-asleep // two more threads have begun
	w.c.Stop()
	w.c.Start() // and again
	<-asleep
	w.c.Stop()
}

func TestNoThreads(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.c.Configure(Config{})
	w.c.Start()
	w.c.Stop()
}

// TestPauseEndsARound: a round that waits for its throttle ends when its partition is taken away, and leaves nothing.
func TestPauseEndsARound(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")})
	w.mustAppend(kv{"a", value("2")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	before := w.names()
	asleep := make(chan time.Duration, 10)
	w.c.o.Sleep = blocked(asleep)
	w.c.throttle.sleep = w.c.o.Sleep
	cfg := DefaultConfig()
	cfg.BytesPerSecond = 1
	w.c.Configure(cfg)
	done := make(chan bool)
	go func() { done <- pass(w) }()
	<-asleep
	resume := w.c.Pause(worldName)
	if <-done {
		t.Error("the round came to its end")
	}
	if got := w.names(); !equalStrings(got, before) {
		t.Errorf("files: got %v, want %v", got, before)
	}
	w.c.o.Sleep = nil
	cfg.BytesPerSecond = 0 // takes effect at once
	w.c.Configure(cfg)
	if pass(w) {
		t.Error("a paused partition was compacted")
	}
	resume()
	if !pass(w) {
		t.Error("the partition was not compacted after the pause")
	}
	if broken := w.c.Uncleanable(); len(broken) > 0 {
		t.Errorf("uncleanable: %v", broken)
	}
}

func TestThrottle(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	slept := time.Duration(0)
	th := throttle{now: func() time.Time { return now }, rate: 1000,
		sleep: func(_ context.Context, d time.Duration) error {
			slept += d
			now = now.Add(d)
			return nil
		}}
	for range 100 {
		must(t, th.wait(t.Context(), 100))
	}
	if slept < 9900*time.Millisecond || slept > 10*time.Second {
		t.Errorf("10 000 bytes at 1000 bytes/s took %v", slept)
	}
	now = now.Add(time.Hour) // time that was not used does not count
	slept = 0
	must(t, th.wait(t.Context(), 1000))
	if slept != time.Second {
		t.Errorf("1000 bytes after a pause took %v", slept)
	}
	th.setRate(1e6)
	slept = 0
	must(t, th.wait(t.Context(), 1_000_000))
	if slept != time.Second {
		t.Errorf("1 MB at another rate took %v", slept)
	}
}

func TestForgottenPartitionLeavesTheCheckpoint(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")})
	must(t, w.log.Roll())
	pass(w)
	if w.dirty() != 1 {
		t.Fatalf("first dirty offset: got %d, want 1", w.dirty())
	}
	w.c.Forget(worldRoot, worldName)
	if w.dirty() != 0 {
		t.Errorf("first dirty offset of a partition that is gone: got %d", w.dirty())
	}
}

// TestCheckpointOutsideOfTheLog: a checkpoint that is not within the log does not count, and is mended.
func TestCheckpointOutsideOfTheLog(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")}, kv{"a", value("2")})
	must(t, w.log.Roll())
	f, err := w.mem.OpenFile(worldRoot+"/cleaner-offset-checkpoint", 0x42, 0o644)
	must(t, err)
	_, err = f.WriteAt([]byte("0\n2\nt 0 99\nother 3 5\n"), 0)
	must(t, err)
	must(t, f.Close())
	if !pass(w) || w.dirty() != 2 {
		t.Errorf("first dirty offset: got %d, want 2", w.dirty())
	}
	if !strings.Contains(w.out.String(), "not in the log") {
		t.Errorf("logged: %s", w.out.String())
	}
}
