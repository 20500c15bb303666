package commitlog

import (
	"errors"
	"sort"
	"sync"

	"tidemark/internal/segment"
)

// errGone means that a segment of a view is no longer there: a newer view tells why.
var errGone = errors.New("segment is gone")

// outdated reports whether an answer from a view must not be used, and the look-up made again: the log was truncated
// meanwhile, or a segment was deleted under it.
func (l *Log) outdated(v *view, err error) bool {
	if err != nil && l.truncating.Load() { // the indexes are on the move
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	now := l.view.Load()
	return now.cuts != v.cuts || err != nil && now.segments[0] != v.segments[0]
}

// closedError is what errGone means when the view has not changed.
func closedError(err error) error {
	if errors.Is(err, errGone) {
		return ErrClosed
	}
	return err
}

// maxima caches, for the sealed segments of a log, the largest timestamp in each segment and those before it. They
// rise, so that the first segment with a large enough timestamp is found by binary search.
type maxima struct {
	mu      sync.Mutex
	cuts    uint64           // of the views that the values fit
	lowered int64            // changes when a segment told too much
	first   *segment.Segment // the one that values[0] is of
	values  []int64
}

// of returns the running maxima of the sealed segments of a view. Each segment is asked once, by reading its last time
// index entry.
func (m *maxima) of(v *view, lowered int64) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sealed := v.segments[:len(v.segments)-1]
	if v.cuts < m.cuts {
		return nil, errGone
	}
	if v.cuts > m.cuts || m.first != v.segments[0] || lowered != m.lowered {
		m.cuts, m.first, m.lowered, m.values = v.cuts, v.segments[0], lowered, nil
	}
	for i := len(m.values); i < len(sealed); i++ {
		largest, err := sealed[i].Largest()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			largest = max(largest, m.values[i-1])
		}
		m.values = append(m.values, largest)
	}
	return m.values[:len(sealed)], nil
}

// OffsetForTime finds the first record, by offset, whose timestamp is at least ts (ms) and whose offset lies in
// [log start offset, upTo). false: there is none. It reads the index pages of one segment, at most one index interval
// of its log, and one batch; the first look-up of all reads the last time index entry of each segment besides.
//
// Kafka stops at the first segment whose largest timestamp is large enough, even when the record there lies below the
// log start offset; this look-up goes on, and so never misses a record that is there.
func (l *Log) OffsetForTime(ts, upTo int64, trace *Trace) (Found, bool, error) {
	if trace == nil {
		trace = new(Trace)
	}
	for {
		*trace = Trace{SegmentBase: -1, TimeEntryTimestamp: -1, TimeEntryOffset: -1, OffsetEntryOffset: -1}
		v := l.view.Load()
		f, ok, err := l.searchTime(v, ts, upTo, trace)
		if l.outdated(v, err) {
			continue
		}
		m := l.o.Metrics
		m.LookupsByTime.Add(1)
		m.SegmentsConsidered.Add(int64(trace.SegmentsConsidered))
		m.SegmentsSearched.Add(int64(trace.SegmentsSearched))
		m.BytesScanned.Add(trace.BytesScanned)
		return f, ok, closedError(err)
	}
}

func (l *Log) searchTime(v *view, ts, upTo int64, trace *Trace) (Found, bool, error) {
	first, err := l.firstFor(v, ts, trace)
	if err != nil {
		return Found{}, false, err
	}
	from := l.StartOffset()
	for i := first; i < len(v.segments) && v.segments[i].BaseOffset() < upTo; i++ {
		largest, err := v.segments[i].Largest()
		if err != nil {
			return Found{}, false, err
		}
		trace.SegmentsConsidered++
		if largest < ts {
			continue
		}
		f, ok, err := l.searchSegment(v, i, ts, from, trace)
		if err != nil {
			return Found{}, false, err
		}
		if ok { // a later record of that age has a larger offset
			return f, f.Offset < upTo, nil
		}
	}
	return Found{}, false, nil
}

// firstFor is the number of segments at the start of a view that are too old.
func (l *Log) firstFor(v *view, ts int64, trace *Trace) (int, error) {
	if p := l.passed.Load(); p != nil && p.ts == ts {
		trace.SegmentsConsidered += p.n
		return p.n, nil
	}
	running, err := l.maxima.of(v, l.env.Lowered())
	if err != nil {
		return 0, err
	}
	return sort.Search(len(running), func(i int) bool {
		trace.SegmentsConsidered++
		return running[i] >= ts
	}), nil
}

func (l *Log) searchSegment(v *view, i int, ts, from int64, trace *Trace) (Found, bool, error) {
	s := v.segments[i]
	if !s.Acquire() {
		return Found{}, false, errGone
	}
	defer s.Release()
	end, err := v.endOf(i)
	if err != nil {
		return Found{}, false, err
	}
	var way segment.Way
	f, ok, err := s.OffsetForTime(ts, from, end, &way)
	trace.SegmentsSearched++
	trace.SegmentBase = s.BaseOffset()
	trace.TimeEntryTimestamp, trace.TimeEntryOffset = way.TimeEntry.Timestamp, way.TimeEntry.Offset
	trace.OffsetEntryOffset, trace.Position = way.OffsetEntry.Offset, way.OffsetEntry.Pos
	trace.BatchesScanned += way.BatchesScanned
	trace.BatchesDecoded += way.BatchesDecoded
	trace.BytesScanned += way.BytesScanned
	return Found(f), ok, err
}

// MaxTimestamp finds the first record that has the largest timestamp of the log; false when the log has no records,
// or when that record lies at or above upTo.
//
// Kafka: records below the log start offset count, as long as their bytes are there.
func (l *Log) MaxTimestamp(upTo int64) (Found, bool, error) {
	for {
		v := l.view.Load()
		lowered := l.env.Lowered()
		f, ok, err := l.searchMax(v)
		if l.outdated(v, err) || lowered != l.env.Lowered() {
			continue
		}
		return f, ok && f.Offset < upTo, closedError(err)
	}
}

func (l *Log) searchMax(v *view) (Found, bool, error) {
	running, err := l.maxima.of(v, l.env.Lowered())
	if err != nil {
		return Found{}, false, err
	}
	i := len(v.segments) - 1
	largest, err := v.segments[i].Largest()
	if err != nil {
		return Found{}, false, err
	}
	if n := len(running); n > 0 && running[n-1] >= largest {
		i = sort.Search(n, func(i int) bool { return running[i] >= running[n-1] })
	}
	s := v.segments[i]
	if !s.Acquire() {
		return Found{}, false, errGone
	}
	defer s.Release()
	end, err := v.endOf(i)
	if err != nil {
		return Found{}, false, err
	}
	f, ok, err := s.MaxTimestamp(end)
	return Found(f), ok, err
}
