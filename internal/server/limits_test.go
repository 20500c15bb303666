package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRates compares with what the classes of Kafka 4.3.1 answered: testdata/Rates.java printed it.
func TestRates(t *testing.T) {
	text, err := os.ReadFile("testdata/rates.txt")
	if err != nil {
		t.Fatal(err)
	}
	var r *rate
	var w Windows
	var bound, delayed int
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var seconds int
		if n, _ := fmt.Sscanf(line, "series %d %d %d", &w.Num, &seconds, &bound); n == 3 {
			r, w.Size = &rate{}, time.Duration(seconds)*time.Second
			continue
		}
		var now, events, want int64
		if _, err := fmt.Sscan(line, &now, &events, &want); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		r.add(w, now, float64(events))
		got := time.Duration(0)
		if events > 0 {
			got = r.excess(w, now, float64(bound))
		}
		if got != time.Duration(want)*time.Millisecond {
			t.Fatalf("line %d: %q: delayed for %v", i+1, line, got)
		}
		if want > 0 {
			delayed++
		}
	}
	if delayed < 100 {
		t.Errorf("only %d delays in the file", delayed)
	}
}

// limitsAt are limits with a clock that moves only when it is told to.
func limitsAt(bounds Limits) (l *limits, advance func(time.Duration)) {
	now := time.Unix(1_700_000_000, 0)
	o := Options{Now: func() time.Time { return now }, Limits: bounds, Windows: defaultWindows}
	return newLimits(&o), func(d time.Duration) { now = now.Add(d) }
}

var client1, client2 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

// arrivals is how many of n connections at once are not delayed.
func arrivals(l *limits, listener string, n int) (prompt int) {
	for range n {
		if l.arrive(listener) == 0 {
			prompt++
		}
	}
	return prompt
}

// What a burst was measured to do at Kafka: at 2 a second 20 go through (10 windows count as passed), each of the
// others waits for at most a second.
func TestCreationRate(t *testing.T) {
	for _, c := range []struct {
		name     string
		bounds   Limits
		listener string
		prompt   int
	}{
		{"no bound", Limits{}, "A", 30},
		{"of the broker", Limits{CreationRate: 2}, "A", 20},
		{"of the listener", Limits{CreationRate: 1000, CreationRates: map[string]int{"A": 2}}, "A", 20},
		{"of another listener", Limits{CreationRates: map[string]int{"B": 2}}, "A", 30},
		{"protected from the broker's", Limits{CreationRate: 2, Protected: "A"}, "A", 30},
		{"protected, but with its own", Limits{CreationRates: map[string]int{"A": 2}, Protected: "A"}, "A", 20},
		{"zero", Limits{CreationRate: -1}, "A", 0},
	} {
		l, advance := limitsAt(c.bounds)
		if got := arrivals(l, c.listener, 30); got != c.prompt {
			t.Errorf("%s: %d connections at once, want %d", c.name, got, c.prompt)
		}
		if c.prompt == 20 {
			if wait := l.arrive(c.listener); wait != time.Second {
				t.Errorf("%s: a wait of %v", c.name, wait)
			}
		}
		advance(time.Minute)
		if got := arrivals(l, c.listener, 30); got != c.prompt {
			t.Errorf("%s: %d connections after a pause, want %d", c.name, got, c.prompt)
		}
	}
}

// What came before a rate was set counts.
func TestCreationRateChanges(t *testing.T) {
	l, _ := limitsAt(Limits{})
	arrivals(l, "A", 30)
	l.set(Limits{CreationRate: 2})
	if l.arrive("A") == 0 {
		t.Error("no delay after a burst")
	}
	l.set(Limits{CreationRate: 1000})
	if wait := l.arrive("A"); wait != 0 {
		t.Errorf("delayed for %v below the rate", wait)
	}
}

func TestCreationRateOfAddress(t *testing.T) {
	l, advance := limitsAt(Limits{IPCreationRate: 1, IPCreationRates: map[netip.Addr]int{client2: 100}})
	admitted := func(ip netip.Addr, n int) (ok int) {
		for range n {
			l.arrive("A")
			err := l.admit(context.Background(), "A", ip)
			var fast *tooFastError
			if err == nil {
				ok++
			} else if !errors.As(err, &fast) || fast.delay != time.Second {
				t.Fatalf("%s: %v", ip, err)
			}
		}
		return ok
	}
	if a, b := admitted(client1, 15), admitted(client2, 15); a != 10 || b != 15 {
		t.Errorf("%d and %d of 15 connections are admitted, want 10 and 15", a, b)
	}
	if l.total != 25 {
		t.Errorf("%d connections are counted, want 25", l.total)
	}
	// Those refused do not count for the broker: 25 of at most 30 at once came.
	l.set(Limits{CreationRate: 3})
	if got := arrivals(l, "A", 10); got != 5 {
		t.Errorf("%d connections more at once, want 5", got)
	}
	advance(time.Minute)
	l.set(Limits{IPCreationRate: 1})
	if got := admitted(client1, 15); got != 10 || len(l.ipRates) != 1 {
		t.Errorf("%d connections after a pause, %d addresses known; want 10 and 1", got, len(l.ipRates))
	}
}

// sleeper is a Sleep that notes its times and lasts until it is let go on.
type sleeper struct {
	mu    sync.Mutex
	slept []time.Duration
	goOn  chan struct{}
}

func (s *sleeper) sleep(ctx context.Context, d time.Duration) {
	s.mu.Lock()
	s.slept = append(s.slept, d)
	s.mu.Unlock()
	select {
	case <-s.goOn:
	case <-ctx.Done():
	}
}

// A connection above the rate, and those behind it, are served later.
func TestDelayedConnection(t *testing.T) {
	z := &sleeper{goOn: make(chan struct{})}
	began := time.Now()
	s := start(t, echo, func(o *Options) {
		o.Limits.CreationRate, o.Sleep, o.Now = 1, z.sleep, func() time.Time { return began }
		o.Windows = Windows{Num: 2, Size: time.Second}
	})
	s.dial(t).expect(1, "at once")
	second := s.dial(t)
	second.send(request(2, 'b'))
	s.await(t, "delay", func() bool { return s.delayed == 1 && s.opened == 1 })
	z.goOn <- struct{}{}
	if _, body := second.receive(); string(body) != "b" {
		t.Fatalf("got %q", body)
	}
	z.mu.Lock()
	if len(z.slept) != 1 || z.slept[0] != time.Second {
		t.Errorf("slept for %v, want a second", z.slept)
	}
	z.mu.Unlock()
	s.dial(t) // is delayed when the server is closed
}

// A connection above the rate of its address is closed after the delay.
func TestRefusedLater(t *testing.T) {
	z := &sleeper{goOn: make(chan struct{})}
	s := start(t, echo, func(o *Options) {
		o.Limits.IPCreationRate, o.Sleep = -1, z.sleep
	})
	refused := s.dial(t)
	s.await(t, "refusal", func() bool { return s.refused == 1 })
	s.SetLimits(Limits{})
	s.dial(t).expect(1, "nobody else waits")
	z.goOn <- struct{}{}
	refused.ended()
	s.SetLimits(Limits{IPCreationRate: -1})
	s.dial(t) // is about to be closed when the server is
}

// With a lower bound those that were used least recently are closed, none of them of the protected listener.
func TestSurplusIsClosed(t *testing.T) {
	s := start(t, echo, nil)
	var conns []*client
	for i := range 5 {
		c := s.dial(t)
		c.expect(int32(i), "hello")
		conns = append(conns, c)
	}
	conns[0].expect(7, "used again")
	s.SetLimits(Limits{MaxConnections: 2})
	for _, c := range conns[1:4] {
		c.ended()
	}
	s.await(t, "three ends", func() bool { return len(s.closed) == 3 && s.closed[2] == SurplusConnection })
	conns[0].expect(8, "still there")
	conns[4].expect(8, "still there")
	s.SetLimits(Limits{MaxConnections: 1, Protected: "PLAINTEXT"})
	s.dial(t).expect(9, "not held up")
	conns[0].expect(10, "not closed for others")
	conns[4].expect(10, "not closed for others")
}

// sleep ends with the time or the context.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		sleep(context.Background(), time.Minute)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		sleep(ctx, time.Hour)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("slept for %v", took)
		}
	})
}
