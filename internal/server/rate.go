package server

import (
	"math"
	"time"
)

// Windows are the times over which rates are measured (quota.window.num, quota.window.size.seconds).
type Windows struct {
	Num  int           // at least 1
	Size time.Duration // whole milliseconds; also the longest that a connection is delayed
}

// rate counts events over the last windows.
//
// Kafka: SampledStat and Rate of its metrics. As long as fewer windows have passed since the oldest event, all but the
// last count as passed, so that a first burst of Num-1 windows' events goes through.
type rate struct {
	samples []sample // at most one more than there are windows
	current int
}

// sample is the events of one window; times are milliseconds.
type sample struct {
	start, last int64
	events      float64
}

// add counts n events; a negative n takes them back.
func (r *rate) add(w Windows, now int64, n float64) {
	if len(r.samples) == 0 {
		r.samples = append(r.samples, sample{start: now, last: now})
	}
	if now-r.samples[r.current].start >= w.Size.Milliseconds() {
		r.current = (r.current + 1) % (w.Num + 1)
		if r.current == len(r.samples) {
			r.samples = append(r.samples, sample{})
		}
		r.samples[r.current] = sample{start: now, last: now}
	}
	s := &r.samples[r.current]
	s.events += n
	s.last = now
}

// excess is how long no event must come until the rate is at most perSecond, at most one window.
func (r *rate) excess(w Windows, now int64, perSecond float64) time.Duration {
	size := w.Size.Milliseconds()
	events, start := 0.0, now
	for i := range r.samples {
		s := &r.samples[i]
		if now-s.last >= int64(w.Num)*size {
			*s = sample{start: now, last: now}
		}
		events += s.events
		start = min(start, s.start)
	}
	elapsed := now - start
	if missing := int64(w.Num-1) - elapsed/size; missing > 0 {
		elapsed += missing * size
	}
	elapsed = max(elapsed, 1)
	measured := events / (float64(elapsed) / 1000)
	if measured <= perSecond {
		return 0
	}
	wait := math.Floor((measured-perSecond)/perSecond*float64(elapsed) + 0.5)
	return time.Duration(min(wait, float64(size))) * time.Millisecond
}

// forgotten reports whether no event is left in the windows.
func (r *rate) forgotten(w Windows, now int64) bool {
	for _, s := range r.samples {
		if now-s.last < int64(w.Num)*w.Size.Milliseconds() {
			return false
		}
	}
	return true
}
