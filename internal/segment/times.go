package segment

import (
	"errors"
	"sync"

	"tidemark/internal/index"
	"tidemark/record"
)

// Found is a record found by its time.
type Found struct {
	Timestamp   int64
	Offset      int64
	LeaderEpoch int32 // of its batch; -1 when negative or of an old magic
}

// Way tells how a look-up by time went.
type Way struct {
	TimeEntry      index.TimeEntry
	OffsetEntry    index.OffsetEntry
	BatchesScanned int
	BatchesDecoded int
	BytesScanned   int64
}

// Largest is the largest timestamp of the segment's batches in ms, -1 when none is ≥ 0. It is read from the last time
// index entry once, and the log behind that entry is asked whether it is true.
func (s *Segment) Largest() (int64, error) {
	e, err := s.largestEntry()
	return e.Timestamp, err
}

func (s *Segment) largestEntry() (index.TimeEntry, error) {
	s.maxMu.Lock()
	e, known := s.max, s.maxKnown
	s.maxMu.Unlock()
	if known {
		return e, nil
	}
	return s.loadLargest()
}

func (s *Segment) loadLargest() (index.TimeEntry, error) {
	if err := s.readyEnds(); err != nil {
		return index.TimeEntry{}, err
	}
	e, _, err := s.files().times.Last()
	if err != nil {
		return index.TimeEntry{}, err
	}
	s.maxMu.Lock()
	defer s.maxMu.Unlock()
	if !s.maxKnown {
		s.max, s.maxKnown = e, true
	}
	return s.max, nil
}

// largestFrom raises e by the batches from a position on.
func (s *Segment) largestFrom(pos int64, e index.TimeEntry) (index.TimeEntry, error) {
	size, err := s.Size()
	if err != nil {
		return e, err
	}
	sc := s.scan(pos, size)
	defer sc.close()
	for sc.next() {
		if sc.h.MaxTimestamp > e.Timestamp {
			e = index.TimeEntry{Timestamp: sc.h.MaxTimestamp, Offset: sc.h.LastOffset}
		}
	}
	return e, notDamage(sc.Err())
}

// OffsetForTime returns the first record before the position end whose timestamp is at least ts and whose offset is
// at least from; false when there is none. way may be nil.
func (s *Segment) OffsetForTime(ts, from, end int64, way *Way) (Found, bool, error) {
	if err := s.ready(); err != nil {
		return Found{}, false, err
	}
	te, err := s.lookupTime(ts, end)
	if err != nil {
		return Found{}, false, err
	}
	var sc scanner
	oe, more, err := s.scanFor(&sc, max(te.Offset, from), end)
	if err != nil {
		return Found{}, false, err
	}
	defer sc.close()
	found, ok, decoded, err := s.firstAtLeast(&sc, more, ts, from)
	if way != nil {
		*way = Way{
			TimeEntry: te, OffsetEntry: oe,
			BatchesScanned: sc.batches, BatchesDecoded: decoded, BytesScanned: sc.BytesRead(),
		}
	}
	return found, ok, err
}

// lookupTime finds the last time index entry that is not above ts. An index that was not compared as a whole is
// doubted: the batch that the entry is of must have its timestamp.
func (s *Segment) lookupTime(ts, end int64) (index.TimeEntry, error) {
	e, ok, err := s.files().times.Lookup(ts)
	if err != nil || !ok || s.trusted.Load() {
		return e, err
	}
	var sc scanner
	_, more, err := s.scanFor(&sc, e.Offset, end)
	if err != nil {
		return e, err
	}
	for more && sc.h.LastOffset < e.Offset {
		more = sc.next()
	}
	wrong, failed := more && sc.h.MaxTimestamp != e.Timestamp, notDamage(sc.Err())
	sc.close()
	if failed != nil || !wrong {
		return e, failed
	}
	if err := s.rebuild("a time index entry is of no batch"); err != nil {
		return e, err
	}
	e, _, err = s.files().times.Lookup(ts)
	return e, err
}

func (s *Segment) firstAtLeast(sc *scanner, more bool, ts, from int64) (f Found, ok bool, decoded int, err error) {
	for ; more; more = sc.next() {
		if sc.h.MaxTimestamp < ts || sc.h.LastOffset < from {
			continue
		}
		b, err := s.lookInto(sc, ts, func(offset, _ int64) bool { return offset >= from })
		if err != nil {
			return f, false, decoded, err
		}
		if b.damaged {
			sc.refuse("wrong checksum")
			continue
		}
		if b.decoded {
			decoded++
		}
		if b.ok {
			return b.found, true, decoded, nil
		}
	}
	return Found{}, false, decoded, notDamage(sc.Err())
}

var iterators = sync.Pool{New: func() any { return new(record.Iterator) }}

// firstRecord decodes the scanner's batch up to the first record that is wanted, or to its end when note, which gets
// the records, is not nil. A batch that cannot be decoded hides nothing behind it: it is counted and passed over.
func (s *Segment) firstRecord(sc *scanner, note *marker, want func(offset, timestamp int64) bool) (f Found, ok bool,
	err error) {
	it := iterators.Get().(*record.Iterator)
	defer func() { it.Close(); iterators.Put(it) }()
	if err = it.ResetTo(sc.Scanner, record.IterOptions{SkipKV: true, MaxBytes: s.env.MaxDecompressedBytes,
		Memory: s.env.Memory}); err == nil {
		for it.Next() {
			r := it.Record()
			if !ok && want(r.Offset, r.Timestamp) {
				f, ok = foundIn(sc, r.Offset, r.Timestamp), true
			}
			if note != nil {
				note.add(r.Offset, r.Timestamp)
			}
			if ok && (note == nil || note.full()) {
				return f, true, nil
			}
		}
		err = it.Err()
	}
	if note != nil {
		note.whole = err == nil && !note.full()
	}
	if ok || err == nil {
		return f, ok, nil
	}
	if failed := new(record.ReadError); errors.As(err, &failed) {
		return Found{}, false, failed.Err
	}
	s.env.Metrics.BadBatches.Add(1)
	s.env.Logger.Warn("look-up by time passes over a batch that cannot be decoded",
		"file", s.LogName(), "position", sc.Pos(), "offset", sc.h.BaseOffset, "error", err)
	return Found{}, false, nil
}

// foundIn is a record of the scanner's batch.
func foundIn(sc *scanner, offset, timestamp int64) Found {
	return Found{Timestamp: timestamp, Offset: offset, LeaderEpoch: max(sc.h.LeaderEpoch, -1)}
}

// MaxTimestamp returns the first record that has the segment's largest timestamp.
//
// Kafka: a log start offset behind it does not matter. Batches of magic 0 have no timestamps, so a segment of them
// has no such record.
func (s *Segment) MaxTimestamp(end int64) (Found, bool, error) {
	for {
		f, ok, damaged, err := s.findLargest(end)
		if !damaged || err != nil {
			return f, ok, err
		}
		if err := s.rebuild("the batch with the largest timestamp is damaged"); err != nil {
			return Found{}, false, err
		}
	}
}

// findLargest finds the first batch with the largest timestamp. damaged says that the indexes know of damaged batches
// whose timestamp it may be.
func (s *Segment) findLargest(end int64) (f Found, ok, damaged bool, err error) {
	if err := s.ready(); err != nil {
		return f, false, false, err
	}
	if s.staleMax() {
		return f, false, true, nil
	}
	largest, err := s.largestEntry()
	if err != nil {
		return f, false, false, err
	}
	var sc scanner
	_, more, err := s.scanFor(&sc, largest.Offset, end)
	if err != nil {
		return f, false, false, err
	}
	defer sc.close()
	for ; more; more = sc.next() {
		if sc.h.MaxTimestamp != largest.Timestamp {
			continue
		}
		b, err := s.lookInto(&sc, largest.Timestamp, func(_, timestamp int64) bool {
			return sc.h.Magic > 0 && timestamp == largest.Timestamp
		})
		if b.damaged && err == nil {
			sc.refuse("wrong checksum")
			continue
		}
		return b.found, b.ok, false, err
	}
	return f, false, s.staleMax(), notDamage(sc.Err())
}

// staleMax reports whether damage was found that the indexes do not take into account.
func (s *Segment) staleMax() bool {
	known := s.seen.Load()
	if known == 0 {
		return false
	}
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	return s.builtWith < known
}
