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
)

// recoverSegments checks the segments of a log that was not closed in good order, from the one that holds the recovery
// point on. At the first bad batch the log is cut, and later segments are set aside.
func (l *Log) recoverSegments(segments []*segment.Segment) ([]*segment.Segment, error) {
	from := (&view{segments: segments}).floor(l.o.RecoveryPoint)
	if from < 0 {
		from = 0
	}
	if from > 0 && segments[from].BaseOffset() == l.o.RecoveryPoint {
		segments[from-1].Distrust()
	}
	next := int64(-1)
	for i := from; i < len(segments); i++ {
		s := segments[i]
		if next >= 0 && s.BaseOffset() < next {
			l.o.Logger.Warn("a segment begins below the end of the one before", "segment", s.BaseOffset(), "end", next)
			rest, err := l.setAsideFrom(segments, i)
			return rest, err
		}
		r, err := l.recoverSegment(segments[:i], s)
		if err != nil {
			return nil, err
		}
		next = r.NextOffset
		if r.CutBytes > 0 {
			if err := l.cut(s, r); err != nil {
				return nil, err
			}
			return l.setAsideFrom(segments, i+1)
		}
	}
	return segments, nil
}

// recoverSegment checks one segment and builds its indexes anew, with the state of producers as it was at its start.
func (l *Log) recoverSegment(before []*segment.Segment, s *segment.Segment) (segment.Recovered, error) {
	l.o.Logger.Info("recover segment", "segment", s.BaseOffset())
	l.o.Metrics.SegmentsRecovered.Add(1)
	producers := producerstate.New(producerstate.Options{
		FS: l.o.FS, Dir: l.Dir(), Topic: l.o.Topic, Partition: l.o.Partition,
		ExpirationMs: l.o.ProducerIDExpirationMs, Logger: l.o.Logger,
	}, l.producers.Snapshots())
	replay := replayer{log: l, producers: producers}
	if err := replay.load(before, l.o.StartOffset, s.BaseOffset()); err != nil {
		return segment.Recovered{}, err
	}
	r, err := s.Recover(func(h record.Header, entry func() ([]byte, error)) error {
		if h.Magic < 2 {
			return nil
		}
		if err := l.noteRecoveredEpoch(h); err != nil {
			return err
		}
		return replay.batch(h, entry, s)
	})
	if err != nil {
		return r, err
	}
	if _, _, err := producers.Snapshot(true); err != nil {
		return r, err
	}
	// The next segment, and the log itself, start from the snapshots that are there now.
	l.producers = producerstate.New(producerstate.Options{
		FS: l.o.FS, Dir: l.Dir(), Topic: l.o.Topic, Partition: l.o.Partition,
		ExpirationMs: l.o.ProducerIDExpirationMs, Logger: l.o.Logger,
	}, producers.Snapshots())
	return r, nil
}

func (l *Log) noteRecoveredEpoch(h record.Header) error {
	latest, known := l.epochs.Latest()
	if h.LeaderEpoch < 0 || known && h.LeaderEpoch <= latest.Epoch {
		return nil
	}
	_, err := l.epochs.Assign(h.LeaderEpoch, h.BaseOffset)
	return err
}

// cut shortens a segment to its good batches, after the bytes behind them were copied to a file of their own. Zeros at
// the end, as preallocation and some crashes leave, are not kept.
func (l *Log) cut(s *segment.Segment, r segment.Recovered) error {
	n, err := withoutZeros(s.Log(), r.SizeBytes, r.CutBytes)
	if err != nil {
		return err
	}
	name := ""
	if n > 0 {
		if name, err = l.keepBytes(s, r.SizeBytes, n); err != nil {
			return err
		}
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
// and snapshots are removed.
func (l *Log) setAsideFrom(segments []*segment.Segment, i int) ([]*segment.Segment, error) {
	for _, s := range segments[i:] {
		name, err := l.asideName(s.BaseOffset(), 0)
		if err != nil {
			return nil, err
		}
		if err := s.SetAside(name); err != nil {
			return nil, err
		}
		if err := l.producers.DeleteSnapshot(s.BaseOffset()); err != nil {
			return nil, err
		}
		l.o.Logger.Warn("set a segment aside: it lies behind the end of the log", "segment", s.BaseOffset(), "kept", name)
	}
	for _, s := range segments[i:] {
		s.Release()
	}
	l.opened = segments[:i:i]
	if i < len(segments) {
		if err := l.o.FS.SyncDir(l.Dir()); err != nil {
			return nil, err
		}
	}
	return segments[:i:i], nil
}

func (l *Log) setAsideAll(segments []*segment.Segment) ([]*segment.Segment, error) {
	rest, err := l.setAsideFrom(segments, 0)
	if err != nil {
		return nil, err
	}
	return rest, l.producers.TruncateFully(l.o.StartOffset)
}

// replayer feeds batches of the log to a producer state.
type replayer struct {
	log       *Log
	producers *producerstate.Manager
}

// batch takes in one batch. An aborted transaction that it ends goes into the index of s, unless s is nil.
func (r *replayer) batch(h record.Header, entry func() ([]byte, error), s *segment.Segment) error {
	if !h.HasProducerID() {
		r.producers.SetEndOffset(h.NextOffset())
		return nil
	}
	var data []byte
	if h.IsControl() {
		var err error
		if data, err = entry(); err != nil {
			return err
		}
	}
	b, err := producerBatch(h, data)
	if err != nil {
		return &record.CorruptError{Pos: -1, Offset: h.BaseOffset, Reason: err.Error()}
	}
	done, lastStable, err := r.producers.Replay(b)
	if err != nil {
		return &record.CorruptError{Pos: -1, Offset: h.BaseOffset, Reason: err.Error()}
	}
	if done != nil && done.Aborted && s != nil {
		return s.AppendAborted(abortedTxn(*done, lastStable))
	}
	return nil
}

// load makes the state fit the end offset end, from the newest snapshot on, and takes a snapshot there.
func (r *replayer) load(segments []*segment.Segment, start, end int64) error {
	if err := r.producers.TruncateAndReload(start, end, r.log.now()); err != nil {
		return err
	}
	v := view{segments: segments}
	for i := max(v.floor(r.producers.EndOffset()), 0); i < len(segments); i++ {
		if segments[i].BaseOffset() >= end || r.producers.EndOffset() >= end {
			break
		}
		if err := r.segment(segments, i, start, end); err != nil {
			return err
		}
	}
	r.producers.SetEndOffset(end)
	_, _, err := r.producers.Snapshot(true)
	return err
}

// segment replays the batches of segment i in [what the state covers, end). Damage ends it, as it ended the log for
// Kafka.
func (r *replayer) segment(segments []*segment.Segment, i int, start, end int64) error {
	s := segments[i]
	from := max(s.BaseOffset(), r.producers.EndOffset(), start)
	r.producers.SetEndOffset(from)
	if i >= len(segments)-2 { // Kafka: a snapshot at the start of the last two segments spares a later truncation the scan
		if from == s.BaseOffset() {
			if _, _, err := r.producers.Snapshot(true); err != nil {
				return err
			}
		}
	}
	size, err := s.Size()
	if err != nil {
		return err
	}
	err = s.Batches(from, size, func(h record.Header, entry func() ([]byte, error)) error {
		if h.BaseOffset >= end {
			return io.EOF
		}
		if h.Magic < 2 {
			return nil
		}
		return r.batch(h, entry, nil)
	})
	if errors.As(err, new(*record.CorruptError)) {
		r.log.o.Logger.Warn("producer state: pass over the rest of a damaged segment",
			"segment", s.BaseOffset(), "error", err)
		return nil
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// loadProducers brings the producer state to the log end offset and takes a snapshot there.
//
// Kafka: without any snapshot after a clean stop, the log is of an old version and the state is taken as empty.
func (l *Log) loadProducers(end int64) error {
	v := l.view.Load()
	var bases []int64
	for _, s := range v.segments {
		bases = append(bases, s.BaseOffset())
	}
	if err := l.producers.RemoveStraySnapshots(bases); err != nil {
		return err
	}
	if _, ok := l.producers.LatestSnapshot(); !ok && l.o.Clean {
		return l.emptySnapshots(bases, end)
	}
	replay := replayer{log: l, producers: l.producers}
	if err := replay.load(v.segments, l.StartOffset(), end); err != nil {
		return err
	}
	l.refreshFirstUnstable()
	return nil
}

func (l *Log) emptySnapshots(bases []int64, end int64) error {
	for _, offset := range append(bases[max(len(bases)-2, 0):], end) {
		l.producers.SetEndOffset(offset)
		if _, _, err := l.producers.Snapshot(true); err != nil {
			return err
		}
	}
	return nil
}

// TopicID is the id in partition.metadata; all zero when there is none.
func (l *Log) TopicID() ([16]byte, error) {
	id, err := checkpoint.ReadPartitionMetadata(l.o.FS, l.path(checkpoint.PartitionMetadataFile))
	if errors.Is(err, fs.ErrNotExist) {
		return l.o.TopicID, nil
	}
	return id, err
}
