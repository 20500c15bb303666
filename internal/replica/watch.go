package replica

import (
	"context"
	"sync"
	"time"
)

// Watcher is told when the log end, the high watermark, the last stable offset or the role of a partition moved.
type Watcher struct {
	// Moved is called on the goroutine that moved it, with no lock held; it must not block.
	Moved func()
}

// Watch tells w of every movement until Unwatch.
func (p *Partition) Watch(w *Watcher) {
	p.watchMu.Lock()
	defer p.watchMu.Unlock()
	p.watchers[w] = struct{}{}
}

// Unwatch stops telling w.
func (p *Partition) Unwatch(w *Watcher) {
	p.watchMu.Lock()
	defer p.watchMu.Unlock()
	delete(p.watchers, w)
}

func (p *Partition) notify() {
	p.watchMu.Lock()
	if len(p.watchers) == 0 {
		p.watchMu.Unlock()
		return
	}
	woken := make([]*Watcher, 0, len(p.watchers))
	for w := range p.watchers {
		woken = append(woken, w)
	}
	p.watchMu.Unlock()
	for _, w := range woken {
		w.Moved()
	}
}

// Timer calls f once after d and returns a function that prevents it.
type Timer func(d time.Duration, f func()) (stop func())

// parked is an operation that waits for partitions to move.
type parked struct {
	partitions []*Partition
	watcher    Watcher
	ready      func() bool
	done       func(expired bool)
	onWake     func()

	mu       sync.Mutex // serialises ready; guards finished
	finished bool
	stop     func()
}

// Park waits until ready reports true or the timeout passes, and then calls done, once, on a goroutine of its own.
// ready is called at once, and again at each movement of one of the partitions, on the goroutine that moved it: it
// must be quick and must not block. Between movements a parked operation costs nothing: no goroutine, no polling.
// When ctx ends before, done is never called.
func (m *Manager) Park(ctx context.Context, partitions []*Partition, timeout time.Duration, ready func() bool,
	done func(expired bool)) {
	op := &parked{partitions: partitions, ready: ready, done: done, onWake: m.woken}
	op.watcher.Moved = op.moved
	op.mu.Lock()
	defer op.mu.Unlock()
	for _, p := range partitions {
		p.Watch(&op.watcher)
	}
	if ready() {
		op.finish()
		go done(false)
		return
	}
	stopTimer := m.opts.Timer(timeout, op.expired)
	stopContext := context.AfterFunc(ctx, op.cancelled)
	op.stop = func() {
		stopTimer()
		stopContext()
	}
}

func (op *parked) moved() {
	op.onWake()
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.finished || !op.ready() {
		return
	}
	op.finish()
	go op.done(false)
}

func (op *parked) expired() {
	op.onWake()
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.finished {
		return
	}
	op.finish()
	go op.done(true)
}

func (op *parked) cancelled() {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.finished {
		op.finish()
	}
}

// finish leaves the partitions and the timer. The caller holds mu.
func (op *parked) finish() {
	op.finished = true
	for _, p := range op.partitions {
		p.Unwatch(&op.watcher)
	}
	if op.stop != nil {
		op.stop()
	}
}
