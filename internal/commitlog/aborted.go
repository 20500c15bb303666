package commitlog

import (
	"errors"
	"io/fs"
	"math"

	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// aborted collects the aborted transactions for a read that starts at offset and ends at the position pos of
// segment i.
//
// Kafka: the upper bound is taken from the offset index, so the list may hold transactions behind the data returned.
func (l *Log) aborted(v *view, i int, offset, pos int64) ([]index.AbortedTxn, error) {
	upper, ok, err := v.segments[i].UpperBound(pos)
	if err != nil {
		return nil, err
	}
	if !ok {
		upper = v.end
		if i+1 < len(v.segments) {
			upper = v.segments[i+1].BaseOffset()
		}
	}
	return l.collectAborted(v.segments[i:], offset, upper)
}

// collectAborted lists the aborted transactions that touch [from, to) and end in one of these segments, the first of
// which holds from.
func (l *Log) collectAborted(segments []*segment.Segment, from, to int64) ([]index.AbortedTxn, error) {
	out := []index.AbortedTxn{}
	for n, s := range segments {
		if n > 0 && s.BaseOffset() >= to && !s.TxnsReady() && l.openedBefore(s) >= to {
			break // no transaction of the data is open here, so that its end need not be looked for
		}
		txns, done, err := s.CollectAborted(from, to)
		if err != nil {
			return nil, err
		}
		out = append(out, txns...)
		if done {
			break
		}
	}
	return out, nil
}

// openedBefore is the first offset of the oldest transaction that was open at the start of a segment, told by the
// producer snapshot there: math.MaxInt64 when there was none, -1 when that is not known.
func (l *Log) openedBefore(s *segment.Segment) int64 {
	if first, known := s.OpenTxn(); known {
		return first
	}
	first := int64(-1)
	data, err := vfs.ReadFile(l.o.FS, l.path(producerstate.SnapshotName(s.BaseOffset())))
	if err == nil {
		var entries []producerstate.Entry
		if entries, err = producerstate.DecodeSnapshot(data); err == nil {
			first = math.MaxInt64
			for _, e := range entries {
				if e.CurrentTxnFirstOffset >= 0 {
					first = min(first, e.CurrentTxnFirstOffset)
				}
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.o.Logger.Warn("a producer snapshot cannot be read", "segment", s.BaseOffset(), "error", err)
	}
	s.SetOpenTxn(first)
	return first
}

// abortedIn replays the batches of a segment, which each goes through, and returns the aborted transactions that end
// there. Nothing on disk is changed.
func (l *Log) abortedIn(s *segment.Segment, each func(segment.Each) error) ([]index.AbortedTxn, error) {
	found, err := l.list()
	if err != nil {
		return nil, err
	}
	var before []*segment.Segment
	defer func() {
		for _, one := range before {
			one.Release()
		}
	}()
	for _, one := range l.segmentsNow() {
		if one.BaseOffset() < s.BaseOffset() && one.Acquire() {
			before = append(before, one)
		}
	}
	replay := replayer{log: l, producers: l.newProducers(vfs.Overlay(l.o.FS), found.snapshots)}
	if err := replay.load(before, 0, s.BaseOffset()); err != nil {
		return nil, err
	}
	var out []index.AbortedTxn
	err = each(func(h record.Header, entry func() ([]byte, error)) error {
		if h.Magic < 2 {
			return nil
		}
		return replay.batch(h, entry, func(t index.AbortedTxn) error {
			out = append(out, t)
			return nil
		})
	})
	return out, err
}

// segmentsNow are the segments of the view, or those that Open has come to know.
func (l *Log) segmentsNow() []*segment.Segment {
	if v := l.view.Load(); v != nil {
		return v.segments
	}
	return l.opened
}
