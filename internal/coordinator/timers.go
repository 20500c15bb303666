package coordinator

import (
	"container/heap"
	"time"
)

// timers is a queue of keyed times.
type timers struct {
	byKey map[string]*timer
	queue timerQueue
}

type timer struct {
	key   string
	at    time.Time
	index int // in the queue
}

func newTimers() timers { return timers{byKey: map[string]*timer{}} }

func (t *timers) set(key string, at time.Time) {
	if old := t.byKey[key]; old != nil {
		old.at = at
		heap.Fix(&t.queue, old.index)
		return
	}
	one := &timer{key: key, at: at}
	t.byKey[key] = one
	heap.Push(&t.queue, one)
}

func (t *timers) remove(key string) {
	if old := t.byKey[key]; old != nil {
		heap.Remove(&t.queue, old.index)
		delete(t.byKey, key)
	}
}

// due takes the first timer that is not after now.
func (t *timers) due(now time.Time) (key string, ok bool) {
	if len(t.queue) == 0 || t.queue[0].at.After(now) {
		return "", false
	}
	first := t.queue[0]
	t.remove(first.key)
	return first.key, true
}

// next is the earliest time.
func (t *timers) next() (at time.Time, ok bool) {
	if len(t.queue) == 0 {
		return time.Time{}, false
	}
	return t.queue[0].at, true
}

// timerQueue implements heap.Interface, earliest first.
type timerQueue []*timer

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *timerQueue) Push(x any) {
	one := x.(*timer)
	one.index = len(*q)
	*q = append(*q, one)
}

func (q *timerQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

func (p *partition[S]) setTimer(key string, at time.Time) { p.timers.set(key, at) }

func (p *partition[S]) stopTimer(key string) { p.timers.remove(key) }

// arm has the clock wake the loop at the earliest timer. It is called when the tasks that were queued are done.
func (p *partition[S]) arm() {
	at, ok := p.timers.next()
	if ok && p.disarm != nil && p.armedAt.Equal(at) {
		return
	}
	if p.disarm != nil {
		p.disarm()
		p.disarm = nil
	}
	if ok {
		p.armedAt = at
		p.disarm = p.o.Timer(max(0, at.Sub(p.now())), p.ring)
	}
}

// ring is called by the clock.
func (p *partition[S]) ring() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == active {
		p.enqueue(p.tick)
	}
}

// tick lets the timers that are due go off.
func (p *partition[S]) tick() {
	p.flush() // a timer may look at anything
	p.disarm = nil
	now := p.now()
	for {
		key, ok := p.timers.due(now)
		switch {
		case !ok:
			return
		case key == replicationTimer:
			p.expireWaiting()
		default:
			p.shard.Timeout(key)
		}
	}
}
