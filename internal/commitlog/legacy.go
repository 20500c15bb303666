package commitlog

import (
	"slices"

	"tidemark/internal/segment"
)

// The special timestamps of ListOffsets v0.
const (
	LatestTimestamp   = -1
	EarliestTimestamp = -2
)

// LegacySegment is what ListOffsets v0 knows of a segment.
type LegacySegment struct {
	BaseOffset     int64
	LastModifiedMs int64
	SizeBytes      int64
}

// LegacyQuery is one query of ListOffsets v0 about segments in order, oldest first, at least one.
type LegacyQuery struct {
	Segments  []LegacySegment
	LogStart  int64
	LogEnd    int64
	NowMs     int64
	Timestamp int64 // ms, or LatestTimestamp or EarliestTimestamp
	Max       int   // of offsets in the answer
	// HighWatermark bounds the answer of a consumer; -1: the asker is a replica.
	HighWatermark int64
}

// LegacyOffsets answers ListOffsets v0: the base offsets of the segments last changed at or before a time, newest
// first, before them the log end offset, with the present as its time, when the last segment is not empty. Offsets
// above the high watermark are dropped, and the high watermark put first when any was.
//
// Kafka: UnifiedLog.legacyFetchOffsetsBefore, removed in 4.0; the times are those of the files, not of the records.
func LegacyOffsets(q LegacyQuery) []int64 {
	type pair struct{ offset, time int64 }
	pairs := make([]pair, 0, len(q.Segments)+1)
	for _, s := range q.Segments {
		pairs = append(pairs, pair{max(s.BaseOffset, q.LogStart), s.LastModifiedMs})
	}
	if q.Segments[len(q.Segments)-1].SizeBytes > 0 {
		pairs = append(pairs, pair{q.LogEnd, q.NowMs})
	}
	at := len(pairs) - 1
	switch q.Timestamp {
	case LatestTimestamp:
	case EarliestTimestamp:
		at = 0
	default:
		for at >= 0 && pairs[at].time > q.Timestamp {
			at--
		}
	}
	out := []int64{}
	for ; at >= 0 && len(out) < q.Max; at-- {
		out = append(out, pairs[at].offset)
	}
	slices.SortStableFunc(out, func(a, b int64) int { return int(min(max(b-a, -1), 1)) })
	return belowHighWatermark(out, q.HighWatermark)
}

func belowHighWatermark(offsets []int64, highWatermark int64) []int64 {
	if highWatermark < 0 {
		return offsets
	}
	n := 0
	for n < len(offsets) && offsets[n] > highWatermark {
		n++
	}
	if n == 0 {
		return offsets
	}
	return append([]int64{highWatermark}, offsets[n:]...)
}

// LegacyOffsets answers ListOffsets v0 about this log; see the function of that name. ts is in ms or special, limit
// the number of offsets wanted, hw the high watermark, or -1 for a replica. It asks the disk for the files' times.
func (l *Log) LegacyOffsets(ts int64, limit int, hw int64) ([]int64, error) {
	for {
		v := l.view.Load()
		q := LegacyQuery{
			LogStart: l.StartOffset(), LogEnd: v.end, NowMs: l.now(), Timestamp: ts, Max: limit, HighWatermark: hw,
		}
		err := l.legacySegments(v, &q)
		if l.outdated(v, err) {
			continue
		}
		if err != nil {
			return nil, closedError(err)
		}
		return LegacyOffsets(q), nil
	}
}

func (l *Log) legacySegments(v *view, q *LegacyQuery) error {
	for i, s := range v.segments {
		one, err := legacySegment(v, i, s)
		if err != nil {
			return err
		}
		q.Segments = append(q.Segments, one)
	}
	return nil
}

func legacySegment(v *view, i int, s *segment.Segment) (LegacySegment, error) {
	modified, err := s.LastModified()
	if err != nil {
		return LegacySegment{}, err
	}
	size, err := v.endOf(i)
	return LegacySegment{BaseOffset: s.BaseOffset(), LastModifiedMs: modified.UnixMilli(), SizeBytes: size}, err
}
