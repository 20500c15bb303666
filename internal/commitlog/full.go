package commitlog

import (
	"errors"
	"fmt"
	"syscall"

	"tidemark/internal/segment"
)

// ErrDiskFull is wrapped by the error of a change for which the disk had no room. Nothing was changed; the log goes on,
// and the same change succeeds when there is room again. It wraps [ErrFailed], for it has the same Kafka error code
// (KAFKA_STORAGE_ERROR).
var ErrDiskFull = fmt.Errorf("%w: the disk is full", ErrFailed)

// IsFull reports whether an error says that the disk has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// failUnlessFull is fail, but a full disk is no failure. What was done until then must have been undone.
func (l *Log) failUnlessFull(what string, err error) error {
	if !IsFull(err) {
		return l.fail(what, err)
	}
	l.o.Metrics.DiskFull.Add(1)
	if l.full.CompareAndSwap(false, true) {
		l.o.Logger.Error("the disk is full: nothing can be appended until there is room", "error", err)
	}
	return fmt.Errorf("%s: %w: %w", what, ErrDiskFull, err)
}

// roomAgain notes a change that succeeded.
func (l *Log) roomAgain() {
	if l.full.Load() && l.full.CompareAndSwap(true, false) {
		l.o.Logger.Info("the disk has room again")
	}
}

// undo takes back what a failed append wrote, and tells how the append failed. An error while it does is final.
func (l *Log) undo(w *write, m segment.Mark, what string, cause error) error {
	if !IsFull(cause) {
		return l.fail(what, cause)
	}
	if err := w.segment.Undo(m, w.first.BaseOffset); err != nil {
		return l.fail(what, fmt.Errorf("%w, and undo it: %w", cause, err))
	}
	return l.failUnlessFull(what, cause)
}

// flushEpochs writes the leader epochs, if need be. A full disk puts it off to the next append: the file is behind the
// log then, which a recovery makes up for. The caller holds mu.
func (l *Log) flushEpochs() error {
	err := l.epochs.Flush()
	l.epochsLate = err != nil
	if IsFull(err) {
		l.o.Logger.Warn("leader epochs are written later: the disk is full", "error", err)
		return nil
	}
	return err
}
