package tidemark

import (
	"sync"
	"time"
)

// schedule runs a store's background work. It implements logdir.Scheduler.
type schedule struct {
	stop    chan struct{}
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// Background runs a task on another goroutine; after end it is dropped.
func (s *schedule) Background(task func()) { s.After(0, task) }

// After runs a task once a delay has passed, unless the end comes first.
func (s *schedule) After(delay time.Duration, task func()) {
	s.start(func() {
		if s.wait(delay) {
			task()
		}
	})
}

// Every runs a task again and again, the first time after delay.
func (s *schedule) Every(delay, period time.Duration, task func()) {
	s.start(func() {
		for ok := s.wait(delay); ok; ok = s.wait(period) {
			task()
		}
	})
}

func (s *schedule) start(run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.running.Go(run)
	}
}

// wait tells whether a time has passed before the end came.
func (s *schedule) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.stop:
		return false
	case <-t.C:
		return true
	}
}

// end drops what has not begun and waits for what has.
func (s *schedule) end() {
	s.mu.Lock()
	if !s.ended {
		s.ended = true
		close(s.stop)
	}
	s.mu.Unlock()
	s.running.Wait()
}
