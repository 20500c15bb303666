package coordinator

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/record"
)

// The states of a partition.
type state uint8

const (
	loading state = iota
	active
	unloaded
)

// partition is one partition of a runtime: a queue of tasks, and what they work on.
type partition[S Shard] struct {
	o     *Options[S]
	env   *Env
	log   Log
	shard S

	mu      sync.Mutex // guards the four fields below
	state   state
	queue   []func()
	spare   []func() // the queue's other array
	running bool     // a goroutine works on the queue

	// What follows belongs to the loop.
	open      openWrites
	builder   record.Builder // of the batches appended
	timers    timers
	waiting   []waiting // appended and not yet on all in-sync replicas, by offset
	stopWatch func()
	disarm    func() // stops the timer that is armed; nil: none
	armedAt   time.Time

	// firstWaiting is the last offset of the first of waiting, for the watcher; MaxInt64: none.
	firstWaiting atomic.Int64
}

// waiting is a write that waits for the high watermark.
type waiting struct {
	last      int64 // offset
	committed func()
	done      func(error) // nil: answered
	deadline  time.Time
}

func newPartition[S Shard](o *Options[S], id, leaderEpoch int32, log Log) *partition[S] {
	p := &partition[S]{o: o, log: log, timers: newTimers(), open: openWrites{keys: map[string]bool{}}}
	p.env = &Env{partition: id, epoch: leaderEpoch, host: p}
	p.shard = o.NewShard(p.env)
	p.firstWaiting.Store(math.MaxInt64)
	return p
}

// submit queues a task of a caller.
//
// Errors: ErrLoading, ErrNotCoordinator.
func (p *partition[S]) submit(task func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case loading:
		return ErrLoading
	case unloaded:
		return ErrNotCoordinator
	}
	p.enqueue(task)
	return nil
}

// enqueue queues a task. The caller holds mu.
func (p *partition[S]) enqueue(task func()) {
	p.queue = append(p.queue, task)
	if !p.running {
		p.running = true
		p.o.Go(p.drain)
	}
}

// drain runs tasks until there are none. What the tasks that were there at once want written is appended at their end.
func (p *partition[S]) drain() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		tasks := p.queue
		p.queue, p.spare = p.spare[:0], nil
		p.mu.Unlock()
		for i, task := range tasks {
			task()
			tasks[i] = nil
		}
		p.flush()
		p.arm()
		p.mu.Lock()
		p.spare = tasks[:0]
		p.mu.Unlock()
	}
}

// activate ends the loading. It reports false when the partition was unloaded meanwhile.
func (p *partition[S]) activate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != loading {
		return false
	}
	p.state = active
	p.enqueue(func() {
		p.stopWatch = p.log.Watch(p.moved)
		p.shard.Loaded()
	})
	return true
}

// unload lets the tasks that are queued come to their end and refuses all others; what waits is told.
func (p *partition[S]) unload() {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.state
	p.state = unloaded
	if was == active {
		p.enqueue(p.close)
	}
}

// close is the last task.
func (p *partition[S]) close() {
	p.flush()
	p.stopWatch()
	for _, w := range p.waiting {
		answer(w.done, ErrNotCoordinator)
	}
	p.waiting = nil
	p.firstWaiting.Store(math.MaxInt64)
	p.timers = newTimers()
	p.shard.Unloaded()
}

func answer(done func(error), err error) {
	if done != nil {
		done(err)
	}
}

func (p *partition[S]) now() time.Time { return p.o.Clock() }

// do queues a command of the shard's own.
func (p *partition[S]) do(key string, run func() *Write, done func(error)) {
	if err := p.submit(func() { p.execute(key, run, done) }); err != nil {
		answer(done, err)
	}
}
