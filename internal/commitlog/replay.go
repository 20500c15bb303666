package commitlog

import (
	"errors"
	"slices"

	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
)

// replayer feeds batches of the log to a producer state.
type replayer struct {
	log       *Log
	producers *producerstate.Manager
	marks     []int64 // base offsets at which it takes a snapshot in passing
}

// lastBases are the base offsets of the last two segments: Kafka takes snapshots there, which spare a truncation soon
// after the scan of all.
func lastBases(segments []*segment.Segment) []int64 {
	var out []int64
	for _, s := range segments[max(len(segments)-2, 0):] {
		out = append(out, s.BaseOffset())
	}
	return out
}

// batch takes in one batch. aborted is told of an aborted transaction that it ends; it may be nil.
func (r *replayer) batch(h record.Header, entry func() ([]byte, error), aborted func(index.AbortedTxn) error) error {
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
	if done != nil && done.Aborted && aborted != nil {
		return aborted(abortedTxn(*done, lastStable))
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

// errStop ends a walk over batches before the last one.
var errStop = errors.New("no more batches are wanted")

// segment replays the batches of segment i in [what the state covers, end). Damage is passed over.
func (r *replayer) segment(segments []*segment.Segment, i int, start, end int64) error {
	s := segments[i]
	from := max(s.BaseOffset(), r.producers.EndOffset(), start)
	r.producers.SetEndOffset(from)
	if from == s.BaseOffset() && slices.Contains(r.marks, from) {
		if _, _, err := r.producers.Snapshot(true); err != nil {
			return err
		}
	}
	size, err := s.Size()
	if err != nil {
		return err
	}
	err = s.Batches(from, size, func(h record.Header, entry func() ([]byte, error)) error {
		if h.BaseOffset >= end {
			return errStop
		}
		if h.Magic < 2 {
			return nil
		}
		err := r.batch(h, entry, nil)
		if errors.As(err, new(*record.CorruptError)) {
			r.log.o.Logger.Warn("producer state: pass over a batch", "segment", s.BaseOffset(), "error", err)
			return nil
		}
		return err
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// loadProducers brings the producer state to the log end offset and takes a snapshot there.
//
// Kafka: without any snapshot after a clean stop, the log is taken for one of an old version, and the state for empty.
// Here it is replayed from the start of the log, lest the records of open transactions be given out.
func (l *Log) loadProducers(end int64) error {
	v := l.view.Load()
	var bases []int64
	for _, s := range v.segments {
		bases = append(bases, s.BaseOffset())
	}
	if err := l.producers.RemoveStraySnapshots(bases); err != nil {
		return err
	}
	replay := replayer{log: l, producers: l.producers, marks: lastBases(v.segments)}
	if err := replay.load(v.segments, l.StartOffset(), end); err != nil {
		return err
	}
	l.refreshFirstUnstable()
	return nil
}
