package logdir

import (
	"errors"
	"fmt"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
)

// never is an interval that stands for "not at all".
const never = time.Duration(1<<63 - 1)

// schedule starts the periodic work.
func (s *Set) schedule() {
	c := s.opts.Settings
	every := func(delay, period time.Duration, task func()) {
		if period > 0 && period != never {
			s.opts.Scheduler.Every(delay, period, task)
		}
	}
	first := c.InitialTaskDelay
	every(first, c.ScrubInterval, s.scrub)
	if s.opts.ReadOnly != nil {
		return
	}
	every(first, c.RetentionCheckInterval, s.retain)
	every(first, c.FlushSchedulerInterval, s.flushDue)
	every(first, c.RecoveryPointInterval, func() { s.eachOnline(s.checkpointRecoveryPoints) })
	every(first, c.StartOffsetInterval, func() { s.eachOnline(s.checkpointStartOffsets) })
	// Kafka: no earlier than one whole interval after the start (ReplicaManager, UnifiedLog).
	every(c.ProducerIDExpirationInterval, c.ProducerIDExpirationInterval, s.expireProducers)
	s.cleaner.Start()
}

// eachOnline runs a task for every online directory; its error takes that directory offline, unless the disk is just
// full: then the task is left to its next time.
func (s *Set) eachOnline(task func(*directory) error) {
	for _, d := range s.dirs {
		if s.failed(d) {
			continue
		}
		if err := task(d); commitlog.IsFull(err) {
			s.opts.Logger.Error("the disk is full", "dir", d.path, "error", err)
		} else if err != nil {
			s.fail(d, err)
		}
	}
}

// each runs a task on every online log.
func (s *Set) each(task func(checkpoint.TopicPartition, *commitlog.Log)) {
	for _, d := range s.dirs {
		for tp, log := range s.online(d) {
			task(tp, log)
		}
	}
}

// retain deletes the segments that retention has done with. Of compacted logs the cleaner does it.
func (s *Set) retain() {
	s.doubts.begin()
	defer s.doubts.end(s.opts.Logger)
	s.each(func(tp checkpoint.TopicPartition, log *commitlog.Log) {
		s.doubts.look(s.opts.Logger, tp, log, s.opts.Clock())
		if log.Config().CleanupPolicy.Compact() {
			return
		}
		n, err := log.DeleteOldSegments(s.opts.Clock())
		if err != nil && !errors.Is(err, commitlog.ErrClosed) {
			s.opts.Logger.Error("retention", "partition", tp.String(), "error", err)
		}
		if n > 0 {
			s.opts.Logger.Info("old segments deleted", "partition", tp.String(), "segments", n,
				"log_start_offset", log.StartOffset())
		}
	})
}

// flushDue makes logs durable whose flush.ms has passed.
func (s *Set) flushDue() {
	now := s.opts.Clock()
	s.each(func(tp checkpoint.TopicPartition, log *commitlog.Log) {
		due := time.Duration(min(log.Config().FlushMs, int64(never/time.Millisecond))) * time.Millisecond
		if now.Sub(log.LastFlush()) < due {
			return
		}
		if err := log.Flush(); err != nil && !errors.Is(err, commitlog.ErrClosed) {
			s.opts.Logger.Error("flush", "partition", tp.String(), "error", err)
		}
	})
}

func (s *Set) expireProducers() {
	now := s.opts.Clock()
	s.each(func(_ checkpoint.TopicPartition, log *commitlog.Log) { log.ExpireProducers(now) })
}

// checkpointRecoveryPoints writes up to where each log of a directory is durable.
func (s *Set) checkpointRecoveryPoints(d *directory) error {
	points := checkpoint.Offsets{}
	for tp, log := range s.online(d) {
		points[tp] = log.RecoveryPoint()
	}
	if err := checkpoint.WriteOffsets(s.opts.FS, d.file(checkpoint.RecoveryPointFile), points); err != nil {
		return fmt.Errorf("write recovery points: %w", err)
	}
	return nil
}

// checkpointStartOffsets writes the log start offsets that the names of the segments do not tell.
func (s *Set) checkpointStartOffsets(d *directory) error {
	starts := checkpoint.Offsets{}
	for tp, log := range s.online(d) {
		if start := log.StartOffset(); start > log.FirstBaseOffset() {
			starts[tp] = start
		}
	}
	if err := checkpoint.WriteOffsets(s.opts.FS, d.file(checkpoint.LogStartOffsetFile), starts); err != nil {
		return fmt.Errorf("write log start offsets: %w", err)
	}
	return nil
}

// Checkpoint writes the recovery points and log start offsets now, as after a truncation or a deletion of records.
func (s *Set) Checkpoint() {
	s.eachOnline(s.checkpointRecoveryPoints)
	s.eachOnline(s.checkpointStartOffsets)
}

// WriteHighWatermarks writes the high watermarks of the partitions of every online directory. of returns the one
// of a partition; ok false leaves it out.
func (s *Set) WriteHighWatermarks(of func(checkpoint.TopicPartition) (hw int64, ok bool)) {
	s.eachOnline(func(d *directory) error {
		marks := checkpoint.Offsets{}
		for tp := range s.online(d) {
			if hw, ok := of(tp); ok {
				marks[tp] = hw
			}
		}
		if err := checkpoint.WriteOffsets(s.opts.FS, d.file(checkpoint.HighWatermarkFile), marks); err != nil {
			return fmt.Errorf("write high watermarks: %w", err)
		}
		return nil
	})
}
