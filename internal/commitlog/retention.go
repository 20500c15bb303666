package commitlog

import (
	"errors"
	"math"
	"time"

	"tidemark/internal/segment"
)

// Candidate is what retention knows of a segment.
type Candidate struct {
	SizeBytes        int64
	LargestTimestamp int64 // ms
	// NextBase is the base offset of the next segment, the log end offset for the last one.
	NextBase int64
	Last     bool
}

// Retention is what decides which segments go.
type Retention struct {
	NowMs         int64
	StartOffset   int64
	HighWatermark int64
	Config        *Config
}

// Reason tells why a segment goes.
type Reason string

// The reasons, in the order in which they are asked.
const (
	BelowStart Reason = "log start offset"
	TooLarge   Reason = "retention.bytes"
	TooOld     Reason = "retention.ms"
)

// Expired returns how many segments go for one reason, counted from the oldest: the first that does not qualify ends
// it. Nothing at or above the high watermark goes, and neither does an empty last segment.
func (r Retention) Expired(why Reason, segments []Candidate) int {
	goes := r.rule(why, segments)
	n := 0
	for _, c := range segments {
		if c.Last && c.SizeBytes == 0 || r.HighWatermark < c.NextBase || !goes(c) {
			break
		}
		n++
	}
	return n
}

func (r Retention) rule(why Reason, segments []Candidate) func(Candidate) bool {
	switch {
	case why == BelowStart:
		return func(c Candidate) bool { return !c.Last && c.NextBase <= r.StartOffset }
	case !r.Config.CleanupPolicy.Delete():
	case why == TooLarge && r.Config.RetentionBytes >= 0:
		excess := -r.Config.RetentionBytes
		for _, c := range segments {
			excess += c.SizeBytes
		}
		return func(c Candidate) bool {
			excess -= c.SizeBytes // what remains must not fall below the limit
			return excess >= 0
		}
	case why == TooOld && r.Config.RetentionMs >= 0:
		return func(c Candidate) bool { return r.NowMs-c.LargestTimestamp > r.Config.RetentionMs }
	}
	return func(Candidate) bool { return false }
}

// deletedAtOnce is how many segments go in one step; appends wait while they are taken off the list, not while their
// files are renamed.
const deletedAtOnce = 64

// DeleteOldSegments removes the segments that retention no longer keeps, and returns how many. When all of them go,
// a new one is rolled first. The log start offset moves to the first segment that stays.
func (l *Log) DeleteOldSegments(now time.Time) (int, error) {
	total := 0
	for _, why := range []Reason{BelowStart, TooLarge, TooOld} {
		n, err := l.deleteAllExpired(why, now)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (l *Log) deleteAllExpired(why Reason, now time.Time) (total int, err error) {
	// Asks the segments what has to be asked of the disk, while appends are not held up.
	_, _ = l.expired(why, now, math.MaxInt)
	for more := true; more && err == nil; {
		var n int
		n, more, err = l.deleteSomeExpired(why, now)
		total += n
	}
	if total > 0 {
		l.o.Logger.Info("segments deleted", "count", total, "reason", string(why))
		// Until then the file names offsets that are gone, which does no harm.
		err = errors.Join(err, l.flushEpochsAside("delete segments of "))
	}
	return total, err
}

// deleteSomeExpired removes what goes for one reason, as much as one step may; more says that there may be more.
func (l *Log) deleteSomeExpired(why Reason, now time.Time) (n int, more bool, err error) {
	l.dropMu.Lock()
	var done []taken
	if n, err = l.takeExpired(why, now); err == nil {
		if done, err = l.dropTaken(); err != nil {
			err = l.failUnlessFull("delete segments of "+l.name, err)
		}
	}
	l.dropMu.Unlock()
	l.removeLater(done)
	return n, err == nil && n >= deletedAtOnce, err
}

// takeExpired takes what goes for one reason off the list of segments. The caller holds dropMu.
func (l *Log) takeExpired(why Reason, now time.Time) (int, error) {
	l.mu.Lock()
	defer l.unlock()
	if err := l.writable(); err != nil {
		return 0, err
	}
	expired, err := l.expired(why, now, deletedAtOnce)
	n := 0
	if err == nil {
		n, err = l.takeFirst(min(expired, deletedAtOnce))
	}
	if err != nil {
		return n, l.failUnlessFull("delete segments of "+l.name, err)
	}
	return n, nil
}

// expired is how many segments go for a reason; no more than most are looked at where the others do not matter.
func (l *Log) expired(why Reason, now time.Time, most int) (int, error) {
	cfg := l.cfg.Load()
	if why == TooLarge && cfg.RetentionBytes < 0 || why == TooOld && cfg.RetentionMs < 0 {
		return 0, nil // spare the disk
	}
	segments, err := l.candidates(why, now.UnixMilli()-cfg.RetentionMs, most)
	if err != nil {
		return 0, err
	}
	return Retention{
		NowMs: now.UnixMilli(), StartOffset: l.StartOffset(), HighWatermark: l.highWatermark.Load(), Config: cfg,
	}.Expired(why, segments), nil
}

// candidates asks the segments for what a reason needs: sizes for one, times for the other. A segment behind one that
// has a timestamp of at least since stays whatever its own is, and is not asked. Sizes are asked of all segments, times
// of the first ones, as many as most.
func (l *Log) candidates(why Reason, since int64, most int) ([]Candidate, error) {
	v := l.view.Load()
	if why == TooLarge {
		most = len(v.segments)
	}
	out := make([]Candidate, min(len(v.segments), most))
	stays := false
	for i, s := range v.segments[:len(out)] {
		c := Candidate{NextBase: v.end, Last: i == len(v.segments)-1, SizeBytes: 1}
		if !c.Last {
			c.NextBase = v.segments[i+1].BaseOffset()
		}
		var err error
		if c.Last || why == TooLarge {
			if c.SizeBytes, err = v.endOf(i); err != nil {
				return nil, err
			}
		}
		if why == TooOld {
			if c.LargestTimestamp = math.MaxInt64; !stays {
				c.LargestTimestamp, err = largestOrModified(s)
			}
			if err != nil {
				return nil, err
			}
			stays = stays || c.LargestTimestamp >= since
		}
		out[i] = c
	}
	return out, nil
}

// largestOrModified is a segment's largest timestamp, or its file's time of last change when it has none.
func largestOrModified(s *segment.Segment) (int64, error) {
	largest, err := s.Largest()
	if err != nil || largest >= 0 {
		return largest, err
	}
	modified, err := s.LastModified()
	return modified.UnixMilli(), err
}

// takeFirst takes the first n segments off the list, but for the last one of the log when there is no room for a new
// one, and returns how many; readers see the later log start offset before they go.
func (l *Log) takeFirst(n int) (int, error) {
	if v := l.view.Load(); n == len(v.segments) {
		if err := l.roll(v.end); IsFull(err) {
			n-- // the last one goes when there is room for a new one
		} else if err != nil {
			return 0, err
		}
	}
	if n == 0 {
		return 0, nil
	}
	v := *l.view.Load()
	gone := v.segments[:n]
	v.segments = v.segments[n:]
	l.moveStartInMemory(v.segments[0].BaseOffset())
	l.view.Store(&v)
	l.o.Metrics.SegmentsDeleted.Add(int64(n))
	for _, s := range gone {
		l.taken = append(l.taken, taken{segment: s, snapshot: l.producers.TakeSnapshot(s.BaseOffset())})
	}
	return n, nil
}

// SetStartOffset moves the log start offset up, for DeleteRecords or as the leader says; a lower one than the present
// changes nothing. Segments below it go with the next [Log.DeleteOldSegments]. An offset above the log end offset is
// an *[OffsetOutOfRangeError].
func (l *Log) SetStartOffset(offset int64) error {
	l.mu.Lock()
	defer l.unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if end := l.EndOffset(); offset > end {
		return &OffsetOutOfRangeError{Requested: offset, Start: l.StartOffset(), End: end}
	}
	if err := l.moveStart(offset); err != nil {
		return l.fail("move start of "+l.name, err)
	}
	return nil
}

func (l *Log) moveStart(offset int64) error {
	l.moveStartInMemory(offset)
	return l.flushEpochs()
}

func (l *Log) moveStartInMemory(offset int64) {
	if offset <= l.StartOffset() {
		return
	}
	l.start.Store(offset)
	l.recoveryPoint.Store(max(l.RecoveryPoint(), offset))
	l.highWatermark.Store(max(l.highWatermark.Load(), offset))
	l.epochs.TruncateFromStart(offset)
	l.producers.SetLogStartOffset(offset)
	l.refreshFirstUnstable()
}
