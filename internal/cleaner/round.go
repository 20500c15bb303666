package cleaner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
)

// round is one compaction of one log.
type round struct {
	ctx      context.Context
	plan     *plan
	nowMs    int64
	options  record.IterOptions
	offsets  *offsetMap
	filter   filter
	src      source
	room     int // bytes gathered for one write
	throttle *throttle
	stats    Stats
	out      []byte // what stays of the present batch
}

// Stats tell what a round did.
type Stats struct {
	MapBytes, MapRecords          int64 // read for the map
	BytesRead, BytesWritten       int64 // by the rewriting
	RecordsRead, RecordsWritten   int64
	InvalidRecords                int64 // without a key: they were dropped
	Keys                          int64 // in the map
	BufferUtilization             float64
	MapTook, Took                 time.Duration
	SegmentsBefore, SegmentsAfter int64
}

// errStopped ends a round that is not wanted any more.
var errStopped = errors.New("compaction was stopped")

// errNoRoom is a map that takes no key.
var errNoRoom = errors.New("the map of keys has no room: log.cleaner.dedupe.buffer.size is too small for the threads")

// run does the round and returns the first offset that is dirty after it.
//
// Errors: errStopped; commitlog.ErrClosed and ErrChanged; those of the disk, as commitlog.Log.ReplaceFailed has them;
// others tell what of the log cannot be compacted.
func (r *round) run(now func() time.Time) (int64, error) {
	began := now()
	r.nowMs = began.UnixMilli()
	if err := r.fillMap(); err != nil {
		return 0, r.classify(err)
	}
	r.stats.MapTook = now().Sub(began)
	r.stats.Keys, r.stats.BufferUtilization = int64(r.offsets.size), r.offsets.utilization()
	end := r.offsets.latest + 1
	if end <= r.plan.firstDirty {
		return 0, errNoRoom
	}
	if err := r.rewrite(end); err != nil {
		return 0, r.classify(err)
	}
	r.stats.Took = now().Sub(began)
	return end, nil
}

// classify tells an error of the disk to the log, unless that has it already.
func (r *round) classify(err error) error {
	known := errors.Is(err, commitlog.ErrFailed) || errors.Is(err, commitlog.ErrClosed)
	if !known && isDisk(err) {
		return r.plan.Log.ReplaceFailed(err)
	}
	return err
}

// isDisk reports whether the disk is to blame for an error, not what is on it.
func isDisk(err error) bool { return errors.As(err, new(*fs.PathError)) }

// fillMap reads the dirty part into the map, until that is full.
func (r *round) fillMap() error {
	p := r.plan
	segments := p.held.Segments[from(p.held.Segments, p.firstDirty):]
	txns := newTransactions()
	aborted, err := p.held.Aborted(from(p.held.Segments, p.firstDirty), p.firstDirty, p.end)
	if err != nil {
		return err
	}
	txns.add(aborted)
	for i, s := range segments {
		if s.BaseOffset() >= p.end {
			break
		}
		limit := segments[i+1].BaseOffset()
		full, err := r.mapSegment(s, limit, txns)
		if full || err != nil {
			return err
		}
		r.offsets.latest = limit - 1 // offsets may be missing at the end of the segment
	}
	return nil
}

// mapSegment reads one segment into the map; full says that not all of it found room there.
func (r *round) mapSegment(s *segment.Segment, limit int64, txns *transactions) (full bool, err error) {
	pos := int64(0)
	if first := r.plan.firstDirty; first > s.BaseOffset() {
		size, err := s.Size()
		if err != nil {
			return false, err
		}
		at, found, err := s.Find(first, size)
		if err != nil || !found {
			return false, err
		}
		pos = at.Pos
	}
	if err := r.src.open(s, pos, limit, 0); err != nil {
		return false, err
	}
	var it record.Iterator
	defer it.Close()
	for r.src.scan() {
		if err := r.read(r.src.entry); err != nil {
			return false, err
		}
		r.stats.MapBytes += int64(len(r.src.entry))
		h := r.src.sc.Header()
		full, err := r.mapBatch(h, &it, txns)
		if err != nil {
			return false, r.src.blame(err)
		}
		if full {
			return true, nil
		}
		if h.LastOffset >= r.plan.firstDirty {
			r.offsets.latest = h.LastOffset
		}
	}
	return false, r.src.failure()
}

func (r *round) mapBatch(h record.Header, it *record.Iterator, txns *transactions) (full bool, err error) {
	if h.IsControl() {
		_, err := txns.control(h, r.src.entry, it)
		r.stats.MapRecords++
		return false, err
	}
	if txns.data(h) {
		return false, nil
	}
	if err := it.Reset(r.src.entry, r.options); err != nil {
		return false, err
	}
	for it.Next() {
		one := it.Record()
		if one.Key != nil && one.Offset >= r.plan.firstDirty && !r.offsets.put(one.Key, one.Offset) {
			return true, nil
		}
		r.stats.MapRecords++
	}
	return false, it.Err()
}

// read accounts for bytes read, and waits where the throttle says so.
func (r *round) read(entry []byte) error {
	if r.ctx.Err() != nil {
		return errStopped
	}
	return r.throttle.wait(r.ctx, len(entry))
}

// rewrite makes the segments below end anew, group by group.
func (r *round) rewrite(end int64) error {
	p := r.plan
	legacy, err := r.oldDeleteHorizon()
	if err != nil {
		return err
	}
	n := 0
	for n < len(p.held.Segments)-1 && p.held.Segments[n].BaseOffset() < end {
		n++
	}
	r.filter = filter{
		offsets: r.offsets, nowMs: r.nowMs, retentionMs: p.cfg.DeleteRetentionMs, end: p.end,
		txns: newTransactions(), options: r.options, stats: &r.stats,
	}
	bounds := limits{logBytes: int64(p.cfg.SegmentBytes), indexBytes: int64(p.cfg.SegmentIndexBytes)}
	for i := 0; i < n; {
		size, err := bounds.group(p.held.Segments[i:n], p.end)
		if err != nil {
			return err
		}
		if err := r.rewriteGroup(i, i+size, legacy); err != nil {
			return err
		}
		i += size
		p.held.Release(i)
	}
	return nil
}

// oldDeleteHorizon is the time at which tombstones of magic 0 and 1 go: a segment that was last changed later keeps
// them. It is delete.retention.ms before the end of what was clean before this round.
func (r *round) oldDeleteHorizon() (int64, error) {
	p := r.plan
	if p.held.Segments[0].BaseOffset() >= p.firstDirty {
		return 0, nil
	}
	last := p.held.Segments[from(p.held.Segments, p.firstDirty-1)]
	modified, err := last.LastModified()
	return modified.UnixMilli() - p.cfg.DeleteRetentionMs, err
}

// rewriteGroup makes the segments [i, j) anew as one.
func (r *round) rewriteGroup(i, j int, legacy int64) error {
	group := r.plan.held.Segments[i:j]
	out := &output{log: r.plan.Log, room: r.room}
	if err := r.fillGroup(i, j, legacy, out); err != nil {
		out.discard()
		return err
	}
	modified, err := group[len(group)-1].LastModified()
	if err == nil {
		err = out.setTime(modified)
	}
	if err != nil {
		out.discard()
		return err
	}
	r.stats.BytesWritten += out.written
	r.stats.SegmentsBefore += int64(len(group))
	r.stats.SegmentsAfter += int64(len(out.done))
	return r.plan.Log.ReplaceSegments(group, out.done)
}

func (r *round) fillGroup(i, j int, legacy int64, out *output) error {
	segments := r.plan.held.Segments
	if err := out.open(segments[i].BaseOffset()); err != nil {
		return err
	}
	r.filter.producers = r.plan.Log.LastRecords()
	r.filter.txns.keep = func(t index.AbortedTxn) error { return out.current.AppendAborted(t) }
	for ; i < j; i++ {
		s, limit := segments[i], segments[i+1].BaseOffset()
		aborted, err := r.plan.held.Aborted(i, r.plan.held.Start, limit)
		if err != nil {
			return err
		}
		r.filter.txns.add(aborted)
		modified, err := s.LastModified()
		if err != nil {
			return err
		}
		r.filter.oldDeletes = modified.UnixMilli() > legacy
		if err := r.rewriteSegment(s, limit, out); err != nil {
			return err
		}
	}
	return out.finish()
}

func (r *round) rewriteSegment(s *segment.Segment, limit int64, out *output) error {
	if err := r.src.open(s, 0, limit, 0); err != nil {
		return err
	}
	for r.src.scan() {
		if err := r.read(r.src.entry); err != nil {
			return err
		}
		r.stats.BytesRead += int64(len(r.src.entry))
		var err error
		if r.out, err = r.filter.batch(r.out[:0], r.src.sc.Header(), r.src.entry); err != nil {
			if isDisk(err) {
				return err
			}
			return r.src.blame(err)
		}
		if len(r.out) == 0 {
			continue
		}
		if err := r.throttle.wait(r.ctx, len(r.out)); err != nil {
			return err
		}
		if err := out.add(r.out); err != nil {
			return fmt.Errorf("write the compacted log: %w", err)
		}
	}
	return r.src.failure()
}
