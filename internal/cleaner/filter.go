package cleaner

import (
	"math"

	"tidemark/internal/commitlog"
	"tidemark/record"
)

// filter decides what stays of each batch of a round, and writes it.
type filter struct {
	offsets     *offsetMap
	nowMs       int64
	retentionMs int64 // delete.retention.ms
	end         int64 // the first offset that the round leaves alone: the batch before it stays, be it as a header
	producers   map[int64]commitlog.LastRecord
	txns        *transactions
	options     record.IterOptions
	stats       *Stats

	// oldDeletes keeps the tombstones of a segment's batches of magic 0 and 1, which cannot hold a delete horizon.
	oldDeletes bool

	it      record.Iterator
	builder record.Builder
	keeps   []bool // for each record of a batch
}

// verdict is what a batch holds that stays.
type verdict struct {
	kept       int
	dropped    bool // a record goes
	tombstones bool
}

// batch appends what stays of an entry to dst: the entry itself, one made anew, a bare header, or nothing.
func (f *filter) batch(dst []byte, h record.Header, entry []byte) ([]byte, error) {
	useless, err := f.follow(h, entry)
	if err != nil {
		return dst, err
	}
	gone := useless
	if h.IsControl() {
		gone = useless && f.past(h)
	}
	header := f.needsHeader(h)
	if gone && !header {
		f.stats.RecordsRead += int64(max(h.Count, 0))
		return dst, nil
	}
	var v verdict
	if gone {
		f.stats.RecordsRead += int64(max(h.Count, 0))
	} else if v, err = f.judge(h, entry); err != nil {
		return dst, err
	}
	f.stats.RecordsWritten += int64(v.kept)
	switch {
	case v.kept > 0:
		return f.write(dst, h, entry, v, useless && h.IsControl())
	case header:
		h.Magic = 2
		return append(dst, record.EmptyBatch(h)...), nil
	default:
		return dst, nil
	}
}

// follow takes note of a batch's transaction: useless says that the batch was aborted, or is a marker of nothing.
func (f *filter) follow(h record.Header, entry []byte) (useless bool, err error) {
	if h.IsControl() {
		return f.txns.control(h, entry, &f.it)
	}
	return f.txns.data(h), nil
}

// past reports whether a batch has a delete horizon, and the time has come.
func (f *filter) past(h record.Header) bool {
	return h.HasDeleteHorizon() && h.BaseTimestamp <= f.nowMs
}

// needsHeader reports whether the header of a batch stays whatever becomes of its records: it tells the last sequence
// number of a producer or, of one without data, its epoch; or it is the last of the round, so that the offset behind
// it stays known.
func (f *filter) needsHeader(h record.Header) bool {
	if last, ok := f.producers[h.ProducerID]; ok && h.HasProducerID() {
		if last.Offset >= 0 && h.LastOffset == last.Offset ||
			last.Offset < 0 && h.IsControl() && h.ProducerEpoch == last.Epoch {
			return true
		}
	}
	return h.NextOffset() == f.end
}

// judge decides which records of an entry stay.
func (f *filter) judge(h record.Header, entry []byte) (v verdict, err error) {
	if err := f.it.Reset(entry, f.options); err != nil {
		return v, err
	}
	defer f.it.Close()
	f.keeps = f.keeps[:0]
	for f.it.Next() {
		r := f.it.Record()
		f.stats.RecordsRead++
		keep := h.IsControl() || f.keepsRecord(h, r)
		f.keeps = append(f.keeps, keep)
		if !keep {
			v.dropped = true
			continue
		}
		v.kept++
		v.tombstones = v.tombstones || r.Value == nil
	}
	return v, f.it.Err()
}

func (f *filter) keepsRecord(h record.Header, r *record.Record) bool {
	if r.Offset > f.offsets.latest {
		return true
	}
	if r.Key == nil {
		f.stats.InvalidRecords++
		return false
	}
	if r.Offset < f.offsets.get(r.Key) {
		return false
	}
	if r.Value != nil {
		return true
	}
	if h.Magic < 2 {
		return f.oldDeletes
	}
	return !f.past(h)
}

// write appends the records that stay: the entry as it is if all do, and nothing has to be noted in it. The first round
// that keeps a tombstone, or a marker of nothing, notes when it may go.
//
// Kafka: batches of magic 0 and 1 are always made anew, with magic 2.
func (f *filter) write(dst []byte, h record.Header, entry []byte, v verdict, marker bool) ([]byte, error) {
	horizon := (v.tombstones || marker) && !h.HasDeleteHorizon()
	if !v.dropped && !horizon && h.Magic >= 2 {
		return append(dst, entry...), nil
	}
	if err := f.it.Reset(entry, f.options); err != nil {
		return dst, err
	}
	defer f.it.Close()
	started := false
	for i := 0; f.it.Next(); i++ {
		r := f.it.Record()
		if !f.keeps[i] {
			continue
		}
		if !started {
			f.builder.Reset(f.rebuilt(h, r.Offset, horizon))
			started = true
		}
		if err := f.builder.AppendAt(r.Offset, r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
			return dst, err
		}
	}
	if err := f.it.Err(); err != nil {
		return dst, err
	}
	if h.Magic >= 2 {
		if err := f.builder.SetLastOffset(h.LastOffset); err != nil {
			return dst, err
		}
	}
	return append(dst, f.builder.Bytes()...), nil
}

// rebuilt is what the batch made anew of another is like. Of magic 0 and 1 it starts with the first record that stays.
func (f *filter) rebuilt(h record.Header, first int64, horizon bool) record.BuilderOptions {
	o := record.BuilderOptions{
		Codec: h.Codec(), TimestampType: h.TimestampType(), BaseOffset: h.BaseOffset, LeaderEpoch: h.LeaderEpoch,
		ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, BaseSequence: h.BaseSequence,
		Transactional: h.IsTransactional(), Control: h.IsControl(),
	}
	if h.Magic < 2 {
		o.BaseOffset = first
	}
	if o.TimestampType == record.LogAppendTime {
		o.AppendTime = h.MaxTimestamp
	}
	switch {
	case horizon:
		o.HasDeleteHorizon, o.DeleteHorizon = true, addMs(f.nowMs, f.retentionMs)
	case h.HasDeleteHorizon() && h.BaseTimestamp >= 0:
		o.HasDeleteHorizon, o.DeleteHorizon = true, h.BaseTimestamp
	}
	return o
}

// addMs adds times; the sum of large ones is the largest there is.
func addMs(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
