package logdir

import (
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
)

// Close flushes and closes every log, writes the checkpoints and, where all of that succeeded and loading had been
// completed, the clean marker with brokerEpoch in it (-1: not known), and gives the locks back. The scheduler must
// have stopped running the set's work. High watermarks are written by the caller before.
//
// Errors of a directory leave it without its clean marker; they are joined and returned.
func (s *Set) Close(brokerEpoch int64) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	loaded := s.loaded && s.opts.ReadOnly == nil
	s.mu.Unlock()

	s.cleaner.Stop()
	var errs []error
	for _, d := range s.dirs {
		if s.failed(d) {
			continue
		}
		if err := s.closeDirectory(d, loaded, brokerEpoch); err != nil {
			errs = append(errs, fmt.Errorf("close log directory %s: %w", d.path, err))
		}
	}
	errs = append(errs, s.unlock())
	return errors.Join(errs...)
}

func (s *Set) closeDirectory(d *directory, loaded bool, brokerEpoch int64) error {
	logs := s.online(d)
	if !loaded {
		for _, log := range logs {
			_ = log.Abandon() // the next start recovers it
		}
		return nil
	}
	points, starts := checkpoint.Offsets{}, checkpoint.Offsets{}
	for tp, log := range logs {
		points[tp] = log.EndOffset()
		if start := log.StartOffset(); start > log.FirstBaseOffset() {
			starts[tp] = start
		}
	}
	if err := s.closeLogs(d, logs); err != nil {
		return err
	}
	if err := checkpoint.WriteOffsets(s.opts.FS, d.file(checkpoint.RecoveryPointFile), points); err != nil {
		return err
	}
	if err := checkpoint.WriteOffsets(s.opts.FS, d.file(checkpoint.LogStartOffsetFile), starts); err != nil {
		return err
	}
	return checkpoint.WriteCleanShutdown(s.opts.FS, d.path, brokerEpoch)
}

// syncedTogether is how many logs are closed with one sync of the file system, where there is such a thing, instead of
// several for each.
const syncedTogether = 32

// atOnce is how many logs are closed or made side by side at least: most of the time they wait for the disk.
const atOnce = 8

// closeLogs closes logs and makes them durable.
func (s *Set) closeLogs(d *directory, logs map[checkpoint.TopicPartition]*commitlog.Log) error {
	closeLog := (*commitlog.Log).Close
	together := d.whole != nil && len(logs) >= syncedTogether
	if together {
		closeLog = (*commitlog.Log).CloseUnsynced
	}
	var group errgroup.Group
	group.SetLimit(max(atOnce, s.settings().RecoveryThreadsPerDataDir))
	for tp, log := range logs {
		group.Go(func() error {
			if err := closeLog(log); err != nil {
				return fmt.Errorf("close %s: %w", tp, err)
			}
			return nil
		})
	}
	err := group.Wait()
	if err == nil && together {
		err = d.whole.Sync()
	}
	return err
}
