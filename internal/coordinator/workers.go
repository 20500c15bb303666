package coordinator

import (
	"sync"
	"sync/atomic"
)

// maxIdleWorkers bounds the goroutines that wait for the next task.
const maxIdleWorkers = 16

// workers runs tasks on goroutines that are kept for the next ones: a new goroutine begins with a small stack, and to
// let it grow for each command would cost as much as a tenth of the command.
type workers struct {
	next   chan func() // without a buffer: who sends has found a worker that is idle
	idle   atomic.Int32
	closed chan struct{}
	once   sync.Once
}

func newWorkers() *workers {
	return &workers{next: make(chan func()), closed: make(chan struct{})}
}

// run runs a task soon, on another goroutine.
func (w *workers) run(task func()) {
	select {
	case w.next <- task:
	default:
		go w.work(task)
	}
}

func (w *workers) work(task func()) {
	for {
		task()
		if w.idle.Add(1) > maxIdleWorkers {
			w.idle.Add(-1)
			return
		}
		select {
		case task = <-w.next:
			w.idle.Add(-1)
		case <-w.closed:
			return
		}
	}
}

// close ends the workers that are idle, and the others when they are. Tasks are run after it as before.
func (w *workers) close() { w.once.Do(func() { close(w.closed) }) }
