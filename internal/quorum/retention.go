package quorum

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"
)

// snapshotState is what there is of snapshots.
type snapshotState struct {
	list       []SnapshotID // oldest first
	bytesSince int64        // of the log behind the newest one
	takenAt    time.Time    // or when the quorum was opened
}

// MaybeSnapshot takes a snapshot when enough was written, or enough time has
// passed, since the last one; and then lets go of what snapshots and log are too
// old or too much. The scheduler calls it now and then. It returns the snapshot
// taken, false when none was due.
func (q *Quorum) MaybeSnapshot() (SnapshotID, bool, error) {
	<-q.turn
	defer func() { q.turn <- struct{}{} }()
	s := &q.snapshots
	now := q.o.Clock()
	due := s.bytesSince >= q.o.SnapshotBytes ||
		q.o.SnapshotInterval > 0 && now.Sub(s.takenAt) >= q.o.SnapshotInterval
	if q.failure != nil || !due {
		return SnapshotID{}, false, q.failure
	}
	id, taken, err := q.snapshot(now)
	if err != nil || !taken {
		return SnapshotID{}, false, err
	}
	return id, true, q.clean(now)
}

// Snapshot takes a snapshot of the newest image, false when there is one
// already.
func (q *Quorum) Snapshot() (SnapshotID, bool, error) {
	<-q.turn
	defer func() { q.turn <- struct{}{} }()
	if q.failure != nil {
		return SnapshotID{}, false, q.failure
	}
	return q.snapshot(q.o.Clock())
}

func (q *Quorum) snapshot(now time.Time) (SnapshotID, bool, error) {
	image := q.Image()
	id := SnapshotID{image.Offset() + 1, image.Epoch()}
	s := &q.snapshots
	if n := len(s.list); n > 0 && s.list[n-1].EndOffset >= id.EndOffset {
		return id, false, nil
	}
	name := filepath.Join(q.dir, id.FileName())
	err := writeSnapshot(q.o.FS, name, id.Epoch, image.TimestampMs(), now, q.voters, image.Records())
	if err != nil {
		return id, false, err
	}
	s.list = append(s.list, id)
	s.bytesSince, s.takenAt = 0, now
	q.o.Logger.Info("metadata snapshot taken", "file", name, "partitions", image.NumPartitions())
	return id, true, nil
}

// clean removes the oldest snapshots, with the log before the next one, while
// there are two and all together are too large, or the oldest is too old.
func (q *Quorum) clean(now time.Time) error {
	for len(q.snapshots.list) > 1 {
		tooMuch, err := q.tooLarge()
		if err == nil && !tooMuch {
			tooMuch, err = q.tooOld(now)
		}
		if err != nil || !tooMuch {
			return err
		}
		if err := q.dropOldest(now); err != nil {
			return err
		}
	}
	return nil
}

func (q *Quorum) tooLarge() (bool, error) {
	if q.o.MaxRetentionBytes < 0 {
		return false, nil
	}
	total, err := q.log.SizeBytes()
	if err != nil {
		return false, err
	}
	for _, id := range q.snapshots.list {
		info, err := q.o.FS.Stat(filepath.Join(q.dir, id.FileName()))
		if err != nil {
			return false, err
		}
		total += info.Size()
	}
	return total > q.o.MaxRetentionBytes, nil
}

func (q *Quorum) tooOld(now time.Time) (bool, error) {
	if q.o.MaxRetention < 0 {
		return false, nil
	}
	content, err := readSnapshot(q.o.FS, filepath.Join(q.dir, q.snapshots.list[0].FileName()))
	if err != nil {
		return false, err
	}
	return now.UnixMilli()-content.lastTimestampMs > q.o.MaxRetention.Milliseconds(), nil
}

func (q *Quorum) dropOldest(now time.Time) error {
	oldest, next := q.snapshots.list[0], q.snapshots.list[1]
	if next.EndOffset > q.log.StartOffset() {
		if err := q.log.SetStartOffset(next.EndOffset); err != nil {
			return err
		}
		if _, err := q.log.DeleteOldSegments(now); err != nil {
			return err
		}
	}
	err := q.o.FS.Remove(filepath.Join(q.dir, oldest.FileName()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	q.snapshots.list = q.snapshots.list[1:]
	return nil
}
