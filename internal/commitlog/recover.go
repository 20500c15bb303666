package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"tidemark/internal/checkpoint"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// recoverSegments checks the segments of a log that was not closed in good order, from the one that holds the recovery
// point on. What is damaged but has good batches behind it, in its segment or a later one, stays where it is. The rest
// of the log behind the last good batch is cut, or set aside.
func (l *Log) recoverSegments(segments []*segment.Segment) ([]*segment.Segment, error) {
	from := max((&view{segments: segments}).floor(l.o.RecoveryPoint), 0)
	if from > 0 && segments[from].BaseOffset() == l.o.RecoveryPoint {
		segments[from-1].Distrust()
	}
	if err := l.announce(segments[from:]); err != nil {
		return nil, err
	}
	results := make([]segment.Recovered, len(segments))
	last, next := from, int64(-1)
	for i := from; i < len(segments); i++ {
		s := segments[i]
		if next >= 0 && s.BaseOffset() < next { // it is empty, or the batches reaching into it had been refused
			l.o.Logger.Warn("a segment begins below the end of the one before", "segment", s.BaseOffset(), "end", next)
			var err error
			if segments, err = l.setAsideFrom(segments, i); err != nil {
				return nil, err
			}
			break
		}
		limit, err := nextBase(segments, i)
		if err != nil {
			return nil, err
		}
		if results[i], err = l.recoverSegment(s, segments[:i], segments, limit); err != nil {
			return nil, err
		}
		next = results[i].NextOffset
		if results[i].SizeBytes > 0 {
			last = i
		}
	}
	return l.endRecovery(segments, results, from, last)
}

// announce tells how much recovery will read.
func (l *Log) announce(segments []*segment.Segment) error {
	for _, s := range segments {
		size, err := s.Size()
		if err != nil {
			return err
		}
		l.o.Metrics.RecoveryBytes.Add(size)
	}
	return nil
}

// nextBase is the base offset of the segment behind segment i, 0 when that is empty or i the last.
func nextBase(segments []*segment.Segment, i int) (int64, error) {
	if i+1 >= len(segments) {
		return 0, nil
	}
	size, err := segments[i+1].Size()
	if err != nil || size == 0 {
		return 0, err
	}
	return segments[i+1].BaseOffset(), nil
}

// endRecovery judges the tails that recovery found: last is the last segment that has good batches.
func (l *Log) endRecovery(segments []*segment.Segment, results []segment.Recovered, from, last int) (
	[]*segment.Segment, error,
) {
	for i := from; i < last; i++ {
		next := segments[i+1].BaseOffset()
		zeros := false
		if results[i].NextOffset == next { // no offset is missing: it was not trimmed when it was ended
			var err error
			if zeros, err = l.dropZeros(segments[i], results[i]); err != nil {
				return nil, err
			}
		}
		if !zeros {
			segments[i].KeepTail(results[i], next)
		}
	}
	for i := last; i < len(segments); i++ {
		if results[i].CutBytes > 0 {
			if err := l.cut(segments[i], results[i]); err != nil {
				return nil, err
			}
			return l.setAsideFrom(segments, i+1)
		}
	}
	return segments, nil
}

// recoverSegment checks one segment and builds its indexes anew, with the state of producers as it was at its start:
// that comes from the segments before. all are those that the log is known to have; limit is the base offset of the
// next one, 0 when there is none.
func (l *Log) recoverSegment(
	s *segment.Segment, before, all []*segment.Segment, limit int64,
) (segment.Recovered, error) {
	l.o.Logger.Info("recover segment", "segment", s.BaseOffset())
	l.o.Metrics.SegmentsRecovered.Add(1)
	producers := l.newProducers(l.o.FS, l.producers.Snapshots())
	replay := replayer{log: l, producers: producers, marks: lastBases(all)}
	if err := replay.load(before, l.o.StartOffset, s.BaseOffset()); err != nil {
		return segment.Recovered{}, err
	}
	done := int64(0)
	r, err := s.Recover(true, limit, func(h record.Header, entry func() ([]byte, error)) error {
		l.o.Metrics.RecoveryBytesRead.Add(int64(h.SizeBytes))
		done += int64(h.SizeBytes)
		if h.Magic < 2 {
			return nil
		}
		if err := l.noteRecoveredEpoch(h); err != nil {
			return err
		}
		return replay.batch(h, entry, s.AppendAborted)
	})
	if err != nil {
		return r, err
	}
	l.o.Metrics.RecoveryBytesRead.Add(r.SizeBytes + r.CutBytes - done)
	if _, _, err := producers.Snapshot(true); err != nil {
		return r, err
	}
	// The next segment, and the log itself, start from the snapshots that are there now.
	l.producers = l.newProducers(l.o.FS, producers.Snapshots())
	return r, nil
}

// newProducers makes an empty state of producers that knows of these snapshots.
func (l *Log) newProducers(fsys vfs.FS, snapshots []int64) *producerstate.Manager {
	return producerstate.New(producerstate.Options{
		FS: fsys, Dir: l.Dir(), Topic: l.o.Topic, Partition: l.o.Partition,
		ExpirationMs: l.o.ProducerIDExpirationMs, Logger: l.o.Logger,
	}, snapshots)
}

func (l *Log) noteRecoveredEpoch(h record.Header) error {
	latest, known := l.epochs.Latest()
	if h.LeaderEpoch < 0 || known && h.LeaderEpoch <= latest.Epoch {
		return nil
	}
	_, err := l.epochs.Assign(h.LeaderEpoch, h.BaseOffset)
	return err
}

// dropZeros cuts what lies behind the good batches of a segment if it is nothing but zeros: the rest of a preallocated
// file, or what a crash left of a longer one.
func (l *Log) dropZeros(s *segment.Segment, r segment.Recovered) (zeros bool, err error) {
	if r.CutBytes == 0 {
		return false, nil
	}
	n, err := withoutZeros(s.Log(), r.SizeBytes, r.CutBytes)
	if n > 0 || err != nil {
		return false, err
	}
	l.o.Logger.Info("remove the zeros behind the last batch of a segment", "segment", s.BaseOffset(), "position",
		r.SizeBytes, "bytes", r.CutBytes)
	return true, s.Cut(r.SizeBytes)
}

// cut shortens a segment to its good batches, after the bytes behind them were copied to a file of their own. Zeros at
// the end, as preallocation and some crashes leave, are not kept.
func (l *Log) cut(s *segment.Segment, r segment.Recovered) error {
	if zeros, err := l.dropZeros(s, r); zeros || err != nil {
		return err
	}
	n, err := withoutZeros(s.Log(), r.SizeBytes, r.CutBytes)
	if err != nil {
		return err
	}
	name, err := l.keepBytes(s, r.SizeBytes, n)
	if err != nil {
		return err
	}
	l.o.Metrics.CutBytes.Add(r.CutBytes)
	l.o.Logger.Warn("cut a log at its first bad batch", "segment", s.BaseOffset(), "position", r.SizeBytes,
		"bytes", r.CutBytes, "end", r.NextOffset, "kept", name, "reason", r.Damage)
	return s.Cut(r.SizeBytes)
}

// keepBytes copies n bytes of a segment's log from pos on into a new file beside it, and makes it durable.
func (l *Log) keepBytes(s *segment.Segment, pos, n int64) (name string, err error) {
	name, err = l.asideName(s.BaseOffset(), pos)
	if err != nil {
		return "", err
	}
	out, err := l.o.FS.OpenFile(l.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	err = copyRange(out, s.Log(), pos, n)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return "", fmt.Errorf("keep the cut bytes of segment %020d: %w", s.BaseOffset(), err)
	}
	return name, l.o.FS.SyncDir(l.Dir())
}

// copyChunk is how much is copied at once.
const copyChunk = 256 << 10

// withoutZeros is the length of the n bytes from pos on without the zeros at their end.
func withoutZeros(in io.ReaderAt, pos, n int64) (int64, error) {
	buf := make([]byte, min(n, copyChunk))
	for n > 0 {
		part := buf[:min(n, copyChunk)]
		from := n - int64(len(part))
		if got, err := in.ReadAt(part, pos+from); got < len(part) {
			return 0, errors.Join(err, io.ErrUnexpectedEOF)
		}
		if rest := bytes.TrimRight(part, "\x00"); len(rest) > 0 {
			return from + int64(len(rest)), nil
		}
		n = from
	}
	return 0, nil
}

// copyRange copies n bytes.
func copyRange(out io.WriterAt, in io.ReaderAt, pos, n int64) error {
	buf := make([]byte, min(n, copyChunk))
	for done := int64(0); done < n; {
		part := buf[:min(n-done, copyChunk)]
		got, err := in.ReadAt(part, pos+done)
		if got < len(part) {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		if _, err := out.WriteAt(part, done); err != nil {
			return err
		}
		done += int64(len(part))
	}
	return nil
}

// asideName is a free name for bytes of the segment base from position pos on. Kafka passes over such a file: its
// name does not begin with a number and has no suffix that it knows.
func (l *Log) asideName(base, pos int64) (string, error) {
	plain := fmt.Sprintf("cut-%s.%d", segment.Name(base, segment.LogSuffix), pos)
	name := plain
	for i := 1; ; i++ {
		_, err := l.o.FS.Stat(l.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s.%d", plain, i)
	}
}

// setAsideFrom takes the segments from i on out of the log: their logs get the names of cut files, and their indexes
// and snapshots are removed. One that holds nothing, or nothing but the zeros of a preallocated file, is removed whole.
func (l *Log) setAsideFrom(segments []*segment.Segment, i int) ([]*segment.Segment, error) {
	for _, s := range segments[i:] {
		if err := l.setAside(s); err != nil {
			return nil, err
		}
	}
	for _, s := range segments[i:] {
		s.Release()
	}
	if i > 0 {
		segments[i-1].SetLimit(0)
	}
	l.opened = segments[:i:i]
	if i < len(segments) {
		if err := l.o.FS.SyncDir(l.Dir()); err != nil {
			return nil, err
		}
	}
	return segments[:i:i], nil
}

func (l *Log) setAside(s *segment.Segment) error {
	size, err := s.Size()
	if err != nil {
		return err
	}
	n, err := withoutZeros(s.Log(), 0, size)
	if err != nil {
		return err
	}
	name, err := l.asideName(s.BaseOffset(), 0)
	if err != nil {
		return err
	}
	if err := s.SetAside(name); err != nil {
		return err
	}
	if n > 0 {
		l.o.Logger.Warn("set a segment aside: it lies behind the end of the log", "segment", s.BaseOffset(), "kept", name)
	} else {
		l.o.Logger.Info("remove a segment without batches behind the end of the log", "segment", s.BaseOffset())
		if err := l.o.FS.Remove(l.path(name)); err != nil {
			return err
		}
	}
	return l.producers.DeleteSnapshot(s.BaseOffset())
}

func (l *Log) setAsideAll(segments []*segment.Segment) ([]*segment.Segment, error) {
	rest, err := l.setAsideFrom(segments, 0)
	if err != nil {
		return nil, err
	}
	return rest, l.producers.TruncateFully(l.o.StartOffset)
}

// TopicID is the id in partition.metadata; all zero when there is none.
func (l *Log) TopicID() ([16]byte, error) {
	id, err := checkpoint.ReadPartitionMetadata(l.o.FS, l.path(checkpoint.PartitionMetadataFile))
	if errors.Is(err, fs.ErrNotExist) {
		return l.o.TopicID, nil
	}
	return id, err
}
