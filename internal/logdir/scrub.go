package logdir

import (
	"errors"
	"sync/atomic"
	"time"

	"tidemark/internal/commitlog"
)

// scrubPause is between two steps of a scrub; a step reads what the rate allows in that time.
const scrubPause = 250 * time.Millisecond

// scrub goes through the logs once, and proves the segments that nothing vouches for, at a bounded rate. Only one goes
// on at a time.
func (s *Set) scrub() {
	if !s.scrubbing.CompareAndSwap(false, true) {
		return
	}
	round := &scrubRound{set: s, budget: max(s.opts.Settings.ScrubBytesPerSecond/int64(time.Second/scrubPause), 1)}
	for _, d := range s.dirs {
		for _, log := range s.online(d) {
			round.logs = append(round.logs, log)
		}
	}
	round.step()
}

// scrubRound is one pass over all logs.
type scrubRound struct {
	set    *Set
	logs   []*commitlog.Log // still to be done
	budget int64            // bytes a step
	read   int64
}

// step reads as much as one step may, and arranges for the next one.
func (r *scrubRound) step() {
	for left := r.budget; len(r.logs) > 0 && left > 0 && !r.set.isClosed(); {
		log := r.logs[0]
		n, done, err := log.Scrub(left)
		left -= n
		r.read += n
		r.set.scrubbed.Add(n)
		if err != nil && !errors.Is(err, commitlog.ErrClosed) {
			r.set.opts.Logger.Error("scrub", "dir", log.Dir(), "error", err)
		}
		if done || errors.Is(err, commitlog.ErrClosed) {
			r.logs = r.logs[1:]
		} else if n == 0 && err == nil { // a change of the log is under way
			break
		}
	}
	if len(r.logs) == 0 || r.set.isClosed() {
		if r.read > 0 {
			r.set.opts.Logger.Info("segments were proven", "bytes", r.read)
		}
		r.set.scrubbing.Store(false)
		return
	}
	r.set.opts.Scheduler.After(scrubPause, r.step)
}

func (s *Set) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// Proven counts the segments of the online directories: those of which every batch is known to have the right checksum,
// or to be damaged, and the others. A segment that was not used yet counts with the others, though it may have a seal.
func (s *Set) Proven() (proven, unproven int64) {
	for _, d := range s.dirs {
		for _, log := range s.online(d) {
			n, total := log.Proven()
			proven += int64(n)
			unproven += int64(total - n)
		}
	}
	return proven, unproven
}

// ScrubState is what the scrub has done since the start.
type ScrubState struct {
	Running   bool
	BytesRead int64
}

// Scrubbed tells what the scrub has done.
func (s *Set) Scrubbed() ScrubState {
	return ScrubState{Running: s.scrubbing.Load(), BytesRead: s.scrubbed.Load()}
}

// scrubs are the fields of a Set that the scrub uses.
type scrubs struct {
	scrubbing atomic.Bool
	scrubbed  atomic.Int64
}
