package commitlog

import (
	"time"

	"tidemark/internal/segment"
)

// DoubtKind says what is odd about retention by time.
type DoubtKind string

// The kinds of doubts.
const (
	// FutureTimestamp: the oldest segment has a record of a time to come, and with it all segments stay until that
	// time and retention.ms have passed.
	FutureTimestamp DoubtKind = "a record with a timestamp in the future holds back deletion"
	// YoungRecord: a record of the oldest segment is younger than all of the next one, which is old enough to go.
	YoungRecord DoubtKind = "a record that is younger than those behind it holds back deletion"
	// OldOnArrival: the segment goes though it was written to less than retention.ms ago.
	OldOnArrival DoubtKind = "records go early: their timestamps are older than their arrival"
	// NoTimestamp: no record of the segment has a timestamp, and the file's time of last change counts.
	NoTimestamp DoubtKind = "no record has a timestamp: the file's time of last change decides on deletion"
)

// Doubt is why retention by time does what may be unexpected.
type Doubt struct {
	Kind      DoubtKind
	Segment   int64 // base offset
	Offset    int64 // of the record with the segment's largest timestamp, the one that decides; else the segment's first
	Timestamp int64 // ms, of that record, or of the file's last change
	Unit      string
}

// retainTimes is what the doubts are worked out from.
type retainTimes struct {
	nowMs, retentionMs int64
}

func (t retainTimes) old(largest int64) bool { return t.nowMs-largest > t.retentionMs }

// muchLater reports whether a time is later than another by more than clocks and networks may differ: a tenth of
// retention.ms, at least a minute.
func (t retainTimes) muchLater(ms, than int64) bool {
	return ms > than && ms-than > max(t.retentionMs/10, time.Minute.Milliseconds())
}

// RetentionDoubts looks at what [Log.DeleteOldSegments] will do for reasons of time, and tells what is odd about it. It
// holds up nobody; the log may change meanwhile.
//
// Kafka: the rules are the same, but for one of them (a timestamp in the future) nothing is said.
func (l *Log) RetentionDoubts(now time.Time) ([]Doubt, error) {
	cfg := l.cfg.Load()
	if cfg.RetentionMs < 0 || !cfg.CleanupPolicy.Delete() {
		return nil, nil
	}
	t := retainTimes{now.UnixMilli(), cfg.RetentionMs}
	v := l.view.Load()
	var doubts []Doubt
	for i, s := range v.segments {
		largest, err := largestOrModified(s)
		if err != nil {
			return nil, err
		}
		if t.old(largest) && i < len(v.segments)-1 {
			continue
		}
		if t.old(largest) {
			i++ // all of them go
		}
		for _, look := range []func() (*Doubt, error){
			func() (*Doubt, error) { return l.doubtGone(v, i, t) },
			func() (*Doubt, error) { return l.doubtKept(v, i, t) },
		} {
			d, err := look()
			if err != nil {
				return nil, err
			}
			if d != nil {
				doubts = append(doubts, *d)
			}
		}
		break
	}
	return doubts, nil
}

// doubtGone looks at the newest of the segments before i, which go: if it was written to long enough ago, so were the
// others.
func (l *Log) doubtGone(v *view, i int, t retainTimes) (*Doubt, error) {
	if i == 0 {
		return nil, nil
	}
	s := v.segments[i-1]
	if end, err := v.endOf(i - 1); err != nil || end == 0 {
		return nil, err
	}
	largest, err := s.Largest()
	if err != nil {
		return nil, err
	}
	if largest < 0 {
		return l.doubt(NoTimestamp, v, i-1)
	}
	modified, err := s.LastModified()
	if err != nil || t.old(modified.UnixMilli()) || !t.muchLater(modified.UnixMilli(), largest) {
		return nil, err
	}
	return l.doubt(OldOnArrival, v, i-1)
}

// doubtKept looks at the first segment that stays.
func (l *Log) doubtKept(v *view, i int, t retainTimes) (*Doubt, error) {
	if i >= len(v.segments) {
		return nil, nil
	}
	if end, err := v.endOf(i); err != nil || end == 0 {
		return nil, err
	}
	largest, err := v.segments[i].Largest()
	switch {
	case err != nil:
		return nil, err
	case largest < 0:
		return l.doubt(NoTimestamp, v, i)
	case t.muchLater(largest, t.nowMs):
		return l.doubt(FutureTimestamp, v, i)
	case i+1 >= len(v.segments):
		return nil, nil
	}
	if end, err := v.endOf(i + 1); err != nil || end == 0 {
		return nil, err
	}
	next, err := v.segments[i+1].Largest()
	if err != nil || next < 0 || !t.old(next) || !t.muchLater(largest, next) {
		return nil, err
	}
	return l.doubt(YoungRecord, v, i)
}

// doubt makes a doubt about a segment, with the record that decides.
func (l *Log) doubt(kind DoubtKind, v *view, i int) (*Doubt, error) {
	s := v.segments[i]
	d := &Doubt{Kind: kind, Segment: s.BaseOffset(), Offset: s.BaseOffset()}
	if !s.Acquire() {
		return nil, nil // it went meanwhile
	}
	defer s.Release()
	if kind == NoTimestamp {
		modified, err := s.LastModified()
		d.Timestamp = modified.UnixMilli()
		return d, err
	}
	end, err := v.endOf(i)
	if err != nil {
		return nil, err
	}
	var found segment.Found
	var ok bool
	if found, ok, err = s.MaxTimestamp(end); err != nil {
		return nil, err
	}
	if d.Timestamp, err = s.Largest(); ok {
		d.Offset, d.Timestamp = found.Offset, found.Timestamp
	}
	d.Unit = unitOf(d.Timestamp, l.o.Clock().UnixMilli())
	return d, err
}

// unitOf guesses the unit of a timestamp that makes no sense in ms: "seconds", "microseconds" or "nanoseconds"; "" when
// it does make sense, or none of them does.
func unitOf(ts, nowMs int64) string {
	const year = 365 * 24 * int64(time.Hour/time.Millisecond)
	plausible := func(ms int64) bool { return ms > nowMs-20*year && ms < nowMs+year }
	switch {
	case plausible(ts):
		return ""
	case ts < nowMs/500 && plausible(ts*1000):
		return "seconds"
	case plausible(ts / 1000):
		return "microseconds"
	case plausible(ts / 1_000_000):
		return "nanoseconds"
	}
	return ""
}
