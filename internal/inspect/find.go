package inspect

import (
	"errors"

	"tidemark/internal/commitlog"
	"tidemark/vfs"
)

// Query is what [Find] looks for: exactly one field is set.
type Query struct {
	Time   *int64 `json:"time,omitempty"`   // ms: the first record at that time or later
	Offset *int64 `json:"offset,omitempty"` // the record at that offset, or the next one
	Max    bool   `json:"max,omitempty"`    // the first record with the largest timestamp
}

// Found is the answer of a look-up in one partition.
type Found struct {
	Type      string       `json:"type"` // "found" or "none"
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Dir       string       `json:"dir"`
	Query     Query        `json:"query"`
	Record    *Record      `json:"record,omitempty"`
	Start     int64        `json:"startOffset"` // of the log
	End       int64        `json:"endOffset"`
	Damage    string       `json:"damage,omitempty"` // why the record found cannot be shown
	Explain   *Explanation `json:"explain,omitempty"`
}

// Explanation is the way of a look-up through the indexes.
type Explanation struct {
	Segments           []ConsideredSegment `json:"segments"`
	SegmentsConsidered int                 `json:"segmentsConsidered"` // largest timestamps compared
	SegmentBase        int64               `json:"segmentBase"`        // the segment searched last; -1: none
	TimeEntry          *TimeEntry          `json:"timeIndexEntry,omitempty"`
	OffsetEntry        OffsetEntry         `json:"offsetIndexEntry"`
	BatchesScanned     int                 `json:"batchesScanned"` // headers looked at
	BatchesDecoded     int                 `json:"batchesDecoded"`
	BytesScanned       int64               `json:"bytesScanned"`
}

// TimeEntry is an entry of a time index; Timestamp -1: before the first.
type TimeEntry struct {
	Timestamp int64 `json:"timestamp"`
	Offset    int64 `json:"offset"`
}

// OffsetEntry is an entry of an offset index: where the scan of the log began.
type OffsetEntry struct {
	Offset int64 `json:"offset"`
	Pos    int64 `json:"position"`
}

// ConsideredSegment is one segment as the look-up saw it.
type ConsideredSegment struct {
	BaseOffset       int64 `json:"baseOffset"`
	NextOffset       int64 `json:"nextOffset"`
	SizeBytes        int64 `json:"sizeBytes"`
	LargestTimestamp int64 `json:"largestTimestamp"`
	Searched         bool  `json:"searched"`
}

// Find looks a record up in one partition, the way a broker would. Errors are the disk's; damage is passed over.
func Find(fsys vfs.FS, t Target, cfg commitlog.Config, q Query, explain bool) (*Found, error) {
	log, err := Open(fsys, t, cfg)
	if err != nil {
		return nil, err
	}
	defer log.Abandon() //nolint:errcheck // nothing was written
	f := &Found{
		Type: "none", Topic: t.Topic, Partition: t.Partition, Dir: t.Dir, Query: q,
		Start: log.StartOffset(), End: log.EndOffset(),
	}
	if q.Offset != nil {
		return f, f.byOffset(log, explain)
	}
	return f, f.byTime(log, explain)
}

func (f *Found) byTime(log *commitlog.Log, explain bool) error {
	var trace commitlog.Trace
	var found commitlog.Found
	var ok bool
	var err error
	if f.Query.Max {
		if err = log.LoadMaxima(); err == nil {
			found, ok, err = log.MaxTimestamp(log.EndOffset())
		}
	} else if err = log.PassOver(*f.Query.Time); err == nil {
		found, ok, err = log.OffsetForTime(*f.Query.Time, log.EndOffset(), &trace)
	}
	if err != nil {
		return err
	}
	if ok {
		f.show(log, found.Offset, Record{Offset: found.Offset, Timestamp: found.Timestamp, LeaderEpoch: found.LeaderEpoch,
			ProducerID: -1})
	}
	if !explain || f.Query.Max {
		return nil
	}
	f.Explain = &Explanation{
		SegmentsConsidered: trace.SegmentsConsidered, SegmentBase: trace.SegmentBase,
		TimeEntry:      &TimeEntry{trace.TimeEntryTimestamp, trace.TimeEntryOffset},
		OffsetEntry:    OffsetEntry{trace.OffsetEntryOffset, trace.Position},
		BatchesScanned: trace.BatchesScanned, BatchesDecoded: trace.BatchesDecoded, BytesScanned: trace.BytesScanned,
	}
	return f.listSegments(log)
}

func (f *Found) byOffset(log *commitlog.Log, explain bool) error {
	offset := *f.Query.Offset
	if offset >= f.Start && offset < f.End {
		f.show(log, offset, Record{Offset: -1, Timestamp: -1})
	}
	if !explain {
		return nil
	}
	trace, ok, err := log.TraceOffset(offset)
	if err != nil && !isDamage(err) {
		return err
	}
	f.Explain = &Explanation{SegmentBase: -1}
	if ok {
		f.Explain = &Explanation{
			SegmentBase: trace.SegmentBase, OffsetEntry: OffsetEntry{trace.IndexEntryOffset, trace.Position},
			BatchesScanned: trace.BatchesScanned, BatchesDecoded: 1, BytesScanned: trace.BytesScanned,
		}
	}
	return f.listSegments(log)
}

// show reads the record found. One that cannot be read is shown as the look-up knows it.
func (f *Found) show(log *commitlog.Log, offset int64, known Record) {
	r, ok, err := recordAt(log, offset)
	var outside *commitlog.OffsetOutOfRangeError
	switch {
	case err != nil && !errors.As(err, &outside):
		f.Damage = err.Error()
		if known.Offset < 0 {
			return
		}
		f.Type, f.Record = "found", &known
	case ok:
		f.Type, f.Record = "found", &r
	case known.Offset >= 0:
		f.Type, f.Record = "found", &known
	}
}

func (f *Found) listSegments(log *commitlog.Log) error {
	segments, err := log.Segments()
	if err != nil {
		return err
	}
	for _, s := range segments {
		f.Explain.Segments = append(f.Explain.Segments, ConsideredSegment{
			BaseOffset: s.BaseOffset, NextOffset: s.NextOffset, SizeBytes: s.SizeBytes,
			LargestTimestamp: s.LargestTimestamp, Searched: s.BaseOffset == f.Explain.SegmentBase,
		})
	}
	return nil
}
