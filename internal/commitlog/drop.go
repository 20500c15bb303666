package commitlog

import (
	"errors"
	"io/fs"

	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
)

// taken is a segment that retention has taken off the list, and its producer snapshot. After a crash they are found
// under their names, and go again.
type taken struct {
	segment  *segment.Segment
	snapshot string // path; "": none
}

// dropTaken gives the files of the segments taken names that end in .deleted, and returns those that are done. One
// whose files cannot be renamed now, and those behind it, are tried again the next time. The caller holds dropMu.
func (l *Log) dropTaken() (done []taken, err error) {
	for len(l.taken) > 0 {
		one := l.taken[0]
		if err := one.segment.Doom(); err != nil {
			return done, err
		}
		if one.snapshot != "" {
			var err error
			if one.snapshot, err = producerstate.MarkDeleted(l.o.FS, one.snapshot); err != nil {
				return done, err
			}
		}
		l.taken = l.taken[1:]
		done = append(done, one)
	}
	l.taken = nil
	return done, nil
}

// removedAtOnce is how many segments are removed at once, and removalPauseMs what lies between: a file system may let
// appends wait that come while it writes down many removals.
const (
	removedAtOnce  = 16
	removalPauseMs = 10
)

// removeLater removes the files of segments when file.delete.delay.ms has passed and their last reader is done.
func (l *Log) removeLater(done []taken) {
	if len(done) == 0 {
		return
	}
	l.after(l.cfg.Load().FileDeleteDelayMs, func() {
		l.removalMu.Lock()
		first := len(l.removals) == 0
		l.removals = append(l.removals, done...)
		l.removalMu.Unlock()
		if first {
			l.removeSome()
		}
	})
}

// removeSome removes what has waited longest, and arranges for the rest.
func (l *Log) removeSome() {
	for {
		l.removalMu.Lock()
		some := l.removals[:min(removedAtOnce, len(l.removals))]
		l.removalMu.Unlock()
		for _, one := range some {
			one.segment.Release()
			if one.snapshot != "" {
				l.removeQuietly(one.snapshot)
			}
		}
		l.removalMu.Lock()
		l.removals = l.removals[len(some):]
		left := len(l.removals)
		l.removalMu.Unlock()
		if left == 0 {
			return
		}
		if l.o.After != nil {
			l.after(removalPauseMs, l.removeSome)
			return
		}
	}
}

// removeQuietly removes a file whose time has come; the next start removes it if this fails.
func (l *Log) removeQuietly(name string) {
	if err := l.o.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.o.Logger.Warn("remove a deleted file", "file", name, "error", err)
	}
}
