package broker

import (
	"sync"
	"time"
)

// scheduler runs all work that happens later or again and again. It implements logdir.Scheduler.
type scheduler struct {
	slots chan struct{} // bounds how many tasks run at once
	disk  chan struct{} // the same for what logs have done in the background

	mu      sync.Mutex
	stopped bool
	timers  map[*time.Timer]struct{}
	running sync.WaitGroup
}

// newScheduler makes a scheduler that runs at most threads tasks at once (background.threads), and as many of those
// that wait for the disk.
func newScheduler(threads int) *scheduler {
	return &scheduler{slots: make(chan struct{}, max(1, threads)), disk: make(chan struct{}, max(1, threads)),
		timers: map[*time.Timer]struct{}{}}
}

// Background runs a task soon, on another goroutine; after stop it is dropped. It is for what takes its time on the
// disk, such as flushes and removals: however much there is of it, it does not hold up the tasks of the other methods.
func (s *scheduler) Background(task func()) { s.run(s.disk, task) }

// Soon runs a task soon, on another goroutine; after stop it is dropped.
func (s *scheduler) Soon(task func()) { s.run(s.slots, task) }

func (s *scheduler) run(slots chan struct{}, task func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.running.Go(func() {
		slots <- struct{}{}
		defer func() { <-slots }()
		if !s.isStopped() {
			task()
		}
	})
}

func (s *scheduler) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// After runs a task once a delay has passed; after stop it is dropped.
func (s *scheduler) After(delay time.Duration, task func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(delay, func() {
		s.mu.Lock()
		delete(s.timers, t)
		s.mu.Unlock()
		s.Soon(task)
	})
	s.timers[t] = struct{}{}
}

// Every runs a task again and again, the first time after delay, then period after the end of the run before.
func (s *scheduler) Every(delay, period time.Duration, task func()) {
	s.After(delay, func() {
		task()
		s.Every(period, period, task)
	})
}

// stop drops what has not begun and waits for what has.
func (s *scheduler) stop() {
	s.mu.Lock()
	s.stopped = true
	for t := range s.timers {
		t.Stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}
