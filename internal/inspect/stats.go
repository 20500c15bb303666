package inspect

import (
	"errors"
	"path/filepath"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// Statistics are what the indexes and timestamps of a partition are like.
type Statistics struct {
	Type               string             `json:"type"` // "statistics"
	Topic              string             `json:"topic"`
	Partition          int32              `json:"partition"`
	Dir                string             `json:"dir"`
	Segments           []SegmentStatistic `json:"segments"`
	Batches            int64              `json:"batches"`
	Records            int64              `json:"records"`
	LogBytes           int64              `json:"logBytes"`
	IndexBytes         int64              `json:"indexBytes"` // of entries in .index and .timeindex
	IndexIntervalBytes int64              `json:"indexIntervalBytes"`
	IntervalKnown      bool               `json:"indexIntervalKnown"` // false: it is the default
	SegmentIndexBytes  int64              `json:"segmentIndexBytes"`
	BetweenEntries     Distribution       `json:"bytesBetweenEntries"`
	ScanByOffset       Distribution       `json:"scanBytesByOffset"` // of look-ups of every offset
	ScanByTime         Distribution       `json:"scanBytesByTime"`   // of look-ups of every time that moves the maximum
	Timestamps         Timestamps         `json:"timestamps"`
	Retention          Retention          `json:"retention"`
	Samples            []Sample           `json:"-"`
}

// SegmentStatistic is the part of one segment.
type SegmentStatistic struct {
	BaseOffset       int64 `json:"baseOffset"`
	NextOffset       int64 `json:"nextOffset"`
	SizeBytes        int64 `json:"sizeBytes"`
	OffsetEntries    int64 `json:"offsetIndexEntries"`
	TimeEntries      int64 `json:"timeIndexEntries"`
	ScanP99          int64 `json:"scanBytesByOffsetP99"`
	LargestTimestamp int64 `json:"largestTimestamp"`
	DueMs            int64 `json:"retentionDueMs"` // when time retention may delete it; -1: never
}

// Timestamps tell of the order of records in time.
type Timestamps struct {
	First        int64 `json:"first"` // of the first record that has one; -1: none
	Smallest     int64 `json:"smallest"`
	Largest      int64 `json:"largest"`
	None         int64 `json:"none"`         // records without
	MovesMaximum int64 `json:"movesMaximum"` // records newer than all before: the only ones that look-ups by time find
	OutOfOrder   int64 `json:"outOfOrder"`   // records older than one before
	// WorstLagMs is by how much the record at WorstLagOffset is older than one before it.
	WorstLagMs     int64   `json:"worstLagMs"`
	WorstLagOffset int64   `json:"worstLagOffset"`
	Future         Outlier `json:"future"`       // more than an hour after now
	Seconds        Outlier `json:"seconds"`      // look like seconds, not milliseconds
	Microseconds   Outlier `json:"microseconds"` // look like microseconds or nanoseconds
}

// Outlier counts records, and tells the first.
type Outlier struct {
	Count     int64 `json:"count"`
	Offset    int64 `json:"offset"`
	Timestamp int64 `json:"timestamp"`
}

func (o *Outlier) add(r *record.Record) {
	if o.Count == 0 {
		o.Offset, o.Timestamp = r.Offset, r.Timestamp
	}
	o.Count++
}

// Sample is one batch of the picture of offsets against time.
type Sample struct {
	Offset    int64
	Timestamp int64 // ms, of its newest record
	Late      bool  // older than a batch before
}

// maxSamples bounds the samples of a partition. When there are as many, every second is dropped.
const maxSamples = 1500

type sampler struct {
	all    []Sample
	stride int64
	seen   int64
}

func (s *sampler) add(x Sample) {
	if s.stride == 0 {
		s.stride = 1
	}
	if s.seen%s.stride == 0 || x.Late && s.seen%max(1, s.stride/4) == 0 {
		s.all = append(s.all, x)
	}
	s.seen++
	if len(s.all) >= maxSamples {
		kept := s.all[:0]
		for i, x := range s.all {
			if i%2 == 0 {
				kept = append(kept, x)
			}
		}
		s.all, s.stride = kept, s.stride*2
	}
}

// Compute reads all of a partition and measures it. now is what future timestamps and retention are told by; progress
// gets numbers of bytes and may be nil. Errors are the disk's; damaged parts are left out.
func Compute(fsys vfs.FS, t Target, settings *Settings, now time.Time, progress func(int64)) (*Statistics, error) {
	cfg, set := settings.Topic(t)
	f, err := readFolder(fsys, t.Dir)
	if err != nil {
		return nil, err
	}
	s := &statistician{fs: fsys, dir: t.Dir, nowMs: now.UnixMilli(), progress: progress, maximum: -1}
	s.out = Statistics{
		Type: "statistics", Topic: t.Topic, Partition: t.Partition, Dir: t.Dir, Segments: []SegmentStatistic{},
		IndexIntervalBytes: int64(cfg.IndexIntervalBytes), SegmentIndexBytes: int64(cfg.SegmentIndexBytes),
		Timestamps: Timestamps{First: -1, Smallest: -1, Largest: -1, WorstLagOffset: -1},
	}
	_, s.out.IntervalKnown = set["index.interval.bytes"]
	for i, base := range f.logs {
		if !t.wants(base) {
			continue
		}
		if err := s.segment(base, f.nextBase(i)); err != nil {
			return nil, err
		}
	}
	s.out.BetweenEntries = s.between.Distribution()
	s.out.ScanByOffset, s.out.ScanByTime = s.byOffset.Distribution(), s.byTime.Distribution()
	s.out.Samples = s.samples.all
	s.retention(cfg, checkpointOffset(fsys, t, logStartFile))
	return &s.out, nil
}

type statistician struct {
	fs       vfs.FS
	dir      string
	nowMs    int64
	progress func(int64)
	out      Statistics
	it       record.Iterator
	samples  sampler
	maximum  int64 // running, over the whole log

	between, byOffset, byTime Histogram
}

func (s *statistician) segment(base, next int64) error {
	name := filepath.Join(s.dir, segment.Name(base, segment.LogSuffix))
	f, err := s.fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	g, err := s.guide(base)
	if err != nil {
		return err
	}
	defer g.close()
	stat := SegmentStatistic{BaseOffset: base, NextOffset: base, SizeBytes: info.Size(), LargestTimestamp: -1, DueMs: -1}
	sc := record.NewScanner(f, 0, info.Size())
	sc.MaxBatchBytes = maxDecoded
	for sc.Next() {
		h := sc.Header()
		if next >= 0 && h.BaseOffset >= next {
			break // a batch with a wrong offset
		}
		s.batch(g, h, sc)
		stat.NextOffset = max(stat.NextOffset, h.NextOffset())
		stat.LargestTimestamp = max(stat.LargestTimestamp, h.MaxTimestamp)
	}
	if err := sc.Err(); err != nil && !isDamage(err) {
		return err
	}
	if stat.LargestTimestamp < 0 {
		stat.LargestTimestamp = info.ModTime().UnixMilli()
	}
	stat.OffsetEntries, stat.TimeEntries = g.offsets.n, g.times.n
	stat.ScanP99 = g.byOffset.quantile(0.99)
	s.byOffset.Merge(&g.byOffset)
	s.out.Segments = append(s.out.Segments, stat)
	s.out.LogBytes += info.Size()
	s.out.IndexBytes += g.offsets.n*index.OffsetEntrySize + g.times.n*index.TimeEntrySize
	return nil
}

func (s *statistician) batch(g *guide, h record.Header, sc *record.Scanner) {
	if s.progress != nil {
		s.progress(int64(h.SizeBytes))
	}
	s.out.Batches++
	g.byOffsetScan(h, sc.Pos(), &s.between)
	if h.MaxTimestamp > g.maximum {
		g.maximum = h.MaxTimestamp
		s.byTime.Add(g.timeScan(h, sc.Pos()), 1)
	}
	if h.MaxTimestamp >= 0 {
		s.samples.add(Sample{Offset: h.LastOffset, Timestamp: h.MaxTimestamp, Late: h.MaxTimestamp < s.maximum})
	}
	entry, err := sc.Batch()
	if err == nil {
		err = s.it.Reset(entry, record.IterOptions{SkipKV: true})
	}
	if err != nil {
		return
	}
	defer s.it.Close()
	for s.it.Next() {
		s.out.Records++
		s.timestamp(s.it.Record())
	}
}

// timestamp takes the timestamp of a record in.
func (s *statistician) timestamp(r *record.Record) {
	t, ts := &s.out.Timestamps, r.Timestamp
	if ts < 0 {
		t.None++
		return
	}
	if t.First < 0 {
		t.First, t.Smallest = ts, ts
	}
	t.Smallest, t.Largest = min(t.Smallest, ts), max(t.Largest, ts)
	switch {
	case ts > s.maximum:
		s.maximum = ts
		t.MovesMaximum++
	case ts < s.maximum:
		t.OutOfOrder++
		if lag := s.maximum - ts; lag > t.WorstLagMs {
			t.WorstLagMs, t.WorstLagOffset = lag, r.Offset
		}
	}
	switch {
	case ts > greatestPlausibleMs:
		t.Microseconds.add(r)
	case ts > s.nowMs+time.Hour.Milliseconds():
		t.Future.add(r)
	case ts > 1e9 && ts < leastPlausibleMs:
		t.Seconds.add(r)
	}
}

// guide follows the indexes of a segment as look-ups would use them.
type guide struct {
	offsets   *offsetCursor // for look-ups by offset
	times     *timeCursor
	forTime   *offsetCursor // for look-ups by time
	start     int64         // position of the last offset entry at or below the batch
	timeStart int64
	timeFrom  int64 // offset of the last time entry at or below the maximum
	maximum   int64
	byOffset  Histogram
}

func (s *statistician) guide(base int64) (*guide, error) {
	path := func(suffix string) string { return filepath.Join(s.dir, segment.Name(base, suffix)) }
	a, errA := openEntries(s.fs, path(segment.IndexSuffix), index.OffsetEntrySize)
	b, errB := openEntries(s.fs, path(segment.IndexSuffix), index.OffsetEntrySize)
	c, errC := openEntries(s.fs, path(segment.TimeSuffix), index.TimeEntrySize)
	if err := errors.Join(errA, errB, errC); err != nil {
		return nil, err
	}
	return &guide{
		offsets: &offsetCursor{a, base}, forTime: &offsetCursor{b, base}, times: &timeCursor{c, base}, timeFrom: base,
		maximum: -1,
	}, nil
}

func (g *guide) close() {
	g.offsets.close()
	g.forTime.close()
	g.times.close()
}

// byOffsetScan counts what look-ups of the batch's offsets scan: from the last entry at or below each offset to the end
// of the batch's header.
func (g *guide) byOffsetScan(h record.Header, pos int64, between *Histogram) {
	offsets := h.LastOffset - h.BaseOffset + 1
	scan := pos - g.start + record.HeaderSize
	e, ok := g.offsets.entry()
	for ok && e.Offset < h.BaseOffset { // an entry that fits no batch
		g.offsets.next++
		e, ok = g.offsets.entry()
	}
	if ok && e.Offset <= h.LastOffset && e.Pos <= pos {
		g.byOffset.Add(scan, offsets-1)
		between.Add(e.Pos-g.start, 1)
		g.byOffset.Add(pos-e.Pos+record.HeaderSize, 1)
		g.start = e.Pos
		g.offsets.next++
		return
	}
	g.byOffset.Add(scan, offsets)
}

// timeScan is what a look-up of the batch's largest timestamp scans, when it is newer than all before: the headers from
// where the indexes lead, and the batch itself.
func (g *guide) timeScan(h record.Header, pos int64) int64 {
	for {
		e, ok := g.times.entry()
		if !ok || e.Timestamp > h.MaxTimestamp {
			break
		}
		g.timeFrom = e.Offset
		g.times.next++
	}
	for {
		e, ok := g.forTime.entry()
		if !ok || e.Offset > g.timeFrom {
			break
		}
		g.timeStart = e.Pos
		g.forTime.next++
	}
	return max(pos-g.timeStart, 0) + int64(h.SizeBytes)
}

// Retention tells what retention does with the log, as far as the settings are known.
type Retention struct {
	Policy         string `json:"policy"`
	RetentionMs    int64  `json:"retentionMs"`
	RetentionBytes int64  `json:"retentionBytes"`
	// Expired are the segments that the next pass deletes, with the reason of the first.
	Expired       int              `json:"expired"`
	ExpiredReason commitlog.Reason `json:"expiredReason,omitempty"`
	// NextBase is the segment that goes after those, by time, at NextDueMs; -1: none.
	NextBase  int64 `json:"nextBase"`
	NextDueMs int64 `json:"nextDueMs"`
	// HeldBy is the segment whose newer timestamp keeps later, older segments from being deleted; -1: none.
	HeldBy int64 `json:"heldBy"`
}

func (s *statistician) retention(cfg commitlog.Config, start int64) {
	r := &s.out.Retention
	*r = Retention{Policy: policyText(cfg.CleanupPolicy), RetentionMs: cfg.RetentionMs, RetentionBytes: cfg.RetentionBytes,
		NextBase: -1, NextDueMs: -1, HeldBy: -1}
	segments := s.out.Segments
	var candidates []commitlog.Candidate
	for i := range segments {
		next := segments[i].NextOffset
		if i+1 < len(segments) {
			next = segments[i+1].BaseOffset
		}
		candidates = append(candidates, commitlog.Candidate{
			SizeBytes: segments[i].SizeBytes, LargestTimestamp: segments[i].LargestTimestamp, NextBase: next,
			Last: i == len(segments)-1,
		})
	}
	if len(candidates) == 0 {
		return
	}
	rules := commitlog.Retention{
		NowMs: s.nowMs, StartOffset: start, HighWatermark: candidates[len(candidates)-1].NextBase, Config: &cfg,
	}
	for _, why := range []commitlog.Reason{commitlog.BelowStart, commitlog.TooLarge, commitlog.TooOld} {
		if why != commitlog.BelowStart && !cfg.CleanupPolicy.Delete() {
			continue
		}
		n := rules.Expired(why, candidates)
		if n > 0 && r.Expired == 0 {
			r.ExpiredReason = why
		}
		r.Expired += n
		candidates = candidates[n:]
	}
	if cfg.RetentionMs < 0 || !cfg.CleanupPolicy.Delete() {
		return
	}
	s.dueTimes(cfg.RetentionMs)
}

// dueTimes fills in when time retention may delete each segment: not before the segments ahead of it.
func (s *statistician) dueTimes(retentionMs int64) {
	r, due, holder := &s.out.Retention, int64(-1), int64(-1)
	for i := range s.out.Segments {
		g := &s.out.Segments[i]
		own := g.LargestTimestamp + retentionMs + 1
		if own < g.LargestTimestamp { // beyond the largest number
			own = 1<<63 - 1
		}
		if own >= due {
			due, holder = own, g.BaseOffset
		} else if r.HeldBy < 0 && due > s.nowMs {
			r.HeldBy = holder
		}
		g.DueMs = due
		if i == r.Expired {
			r.NextBase, r.NextDueMs = g.BaseOffset, due
		}
	}
}

func policyText(p commitlog.CleanupPolicy) string {
	switch {
	case p.Compact() && p.Delete():
		return "compact,delete"
	case p.Compact():
		return "compact"
	case p.Delete():
		return "delete"
	}
	return "none"
}
