package coordinator

import "sync"

// gathering calls done when all of a number of results are in.
type gathering struct {
	mu   sync.Mutex
	errs []error
	left int
	done func(errs []error)
}

// newGathering waits for n results; with none, done is called at once.
func newGathering(n int, done func(errs []error)) *gathering {
	if n == 0 {
		done(nil)
	}
	return &gathering{errs: make([]error, n), left: n, done: done}
}

func (g *gathering) set(i int, err error) {
	g.mu.Lock()
	g.errs[i] = err
	g.left--
	last := g.left == 0
	g.mu.Unlock()
	if last {
		g.done(g.errs)
	}
}
