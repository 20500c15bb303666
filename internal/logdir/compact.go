package logdir

import (
	"context"
	"time"

	"tidemark/internal/cleaner"
	"tidemark/internal/commitlog"
)

// newCleaner makes what compacts the logs of the set.
func (s *Set) newCleaner() *cleaner.Cleaner {
	return cleaner.New(cleaner.Options{
		FS: s.opts.FS, Config: s.opts.Settings.Cleaner, Clock: s.opts.Clock, Sleep: s.sleep, Logger: s.opts.Logger,
		Logs: s.cleanable, Failed: s.cleanerFailed, Memory: s.opts.Memory,
	})
}

// Cleaner compacts the logs. It runs from the end of [Set.Load] to [Set.Close].
func (s *Set) Cleaner() *cleaner.Cleaner { return s.cleaner }

// cleanable lists the logs that can be worked on.
func (s *Set) cleanable() []cleaner.Partition {
	var out []cleaner.Partition
	for _, d := range s.dirs {
		for tp, log := range s.online(d) {
			out = append(out, cleaner.Partition{Name: tp, Log: log, Dir: d.path})
		}
	}
	return out
}

// cleanerFailed takes a directory offline whose file of first dirty offsets cannot be read or written.
func (s *Set) cleanerFailed(dir string, err error) {
	for _, d := range s.dirs {
		if d.path != dir {
			continue
		}
		if commitlog.IsFull(err) {
			s.opts.Logger.Error("the disk is full", "dir", dir, "error", err)
		} else {
			s.fail(d, err)
		}
	}
}

// sleep waits by the scheduler's clock.
func (s *Set) sleep(ctx context.Context, d time.Duration) error {
	over := make(chan struct{})
	s.opts.Scheduler.After(d, func() { close(over) })
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
