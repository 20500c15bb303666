package coordinator

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"tidemark/record"
)

// memLog is a log in memory whose high watermark and errors the test decides.
type memLog struct {
	mu       sync.Mutex
	start    int64
	batches  [][]byte
	end      int64
	mark     int64
	behind   bool  // appends do not move the high watermark
	refuse   error // of appends
	watchers map[int]func()
	nextW    int
	before   func() // called before an append
	after    func() // called after an append
}

func newMemLog() *memLog { return &memLog{watchers: map[int]func(){}} }

func (l *memLog) Bounds() (start, end int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start, l.end, nil
}

func (l *memLog) Read(dst []byte, offset int64, maxBytes int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		h, err := record.ParseHeader(b)
		if err != nil {
			return nil, err
		}
		if h.LastOffset < offset {
			continue
		}
		if len(dst) > 0 && len(dst)+len(b) > maxBytes {
			return append(dst, b[:min(len(b), maxBytes-len(dst))]...), nil
		}
		dst = append(dst, b...)
	}
	return dst, nil
}

func (l *memLog) Append(batch []byte, _ AppendOptions) (base, last int64, err error) {
	if l.before != nil {
		l.before()
	}
	l.mu.Lock()
	if l.refuse != nil {
		defer l.mu.Unlock()
		return -1, -1, l.refuse
	}
	b := record.Batch(bytes.Clone(batch))
	b.SetBaseOffset(l.end)
	base, last = l.end, b.LastOffset()
	l.batches = append(l.batches, b)
	l.end = last + 1
	behind := l.behind
	l.mu.Unlock()
	if l.after != nil {
		l.after()
	}
	if !behind {
		l.commit()
	}
	return base, last, nil
}

// commit moves the high watermark to the end.
func (l *memLog) commit() {
	l.mu.Lock()
	l.mark = l.end
	var moved []func()
	for _, w := range l.watchers {
		moved = append(moved, w)
	}
	l.mu.Unlock()
	for _, m := range moved {
		m()
	}
}

func (l *memLog) HighWatermark() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mark
}

func (l *memLog) Watch(moved func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.nextW
	l.nextW++
	l.watchers[id] = moved
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, id)
	}
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// machinery is a clock, timers and an executor that the test turns by hand.
type machinery struct {
	now    time.Time
	tasks  []func()
	timers []*virtualTimer
	rng    *rand.Rand // picks the next task; nil: the first
}

type virtualTimer struct {
	at   time.Time
	f    func()
	dead bool
}

func newMachinery() *machinery { return &machinery{now: time.UnixMilli(1_790_000_000_000)} }

func (m *machinery) clock() time.Time { return m.now }

func (m *machinery) run(task func()) { m.tasks = append(m.tasks, task) }

func (m *machinery) timer(d time.Duration, f func()) (stop func()) {
	t := &virtualTimer{at: m.now.Add(d), f: f}
	m.timers = append(m.timers, t)
	return func() { t.dead = true }
}

// step runs one task.
func (m *machinery) step() bool {
	if len(m.tasks) == 0 {
		return false
	}
	i := 0
	if m.rng != nil {
		i = m.rng.IntN(len(m.tasks))
	}
	task := m.tasks[i]
	m.tasks = append(m.tasks[:i], m.tasks[i+1:]...)
	task()
	return true
}

// settle runs all tasks.
func (m *machinery) settle(t tester) {
	t.Helper()
	for range 100_000 {
		if !m.step() {
			return
		}
	}
	t.Fatal("tasks without end")
}

// pass lets time pass, with all that is due in it.
func (m *machinery) pass(t tester, d time.Duration) {
	t.Helper()
	until := m.now.Add(d)
	for range 100_000 {
		m.settle(t)
		next := m.nextTimer(until)
		if next == nil {
			m.now = until
			return
		}
		if next.at.After(m.now) {
			m.now = next.at
		}
		next.dead = true
		next.f()
	}
	t.Fatal("timers without end")
}

func (m *machinery) nextTimer(until time.Time) *virtualTimer {
	var first *virtualTimer
	live := m.timers[:0]
	for _, t := range m.timers {
		if t.dead {
			continue
		}
		live = append(live, t)
		if !t.at.After(until) && (first == nil || t.at.Before(first.at)) {
			first = t
		}
	}
	m.timers = live
	return first
}

// forget drops what a dead process would have done.
func (m *machinery) forget() { m.tasks, m.timers = nil, nil }

var errBroken = errors.New("broken")
