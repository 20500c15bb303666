package segment

import (
	"encoding/binary"
	"errors"
	"slices"

	"tidemark/record"
)

// Damage is a part of the log that holds no batch fit to be served.
type Damage struct {
	Pos, End int64 // bytes [Pos, End)
	// From, To are the offsets [From, To) that may have been in it: those between the batches around it. To is
	// math.MaxInt64 when no batch of the segment follows.
	From, To int64
	Err      *record.CorruptError
}

// damages is the list of a segment's damage, by position. It is replaced, never changed.
type damages []Damage

// at returns the damage that covers a position.
func (d damages) at(pos int64) (Damage, bool) {
	i, _ := slices.BinarySearchFunc(d, pos, func(d Damage, pos int64) int {
		if d.End <= pos {
			return -1
		}
		return 1
	})
	if i < len(d) && d[i].Pos <= pos {
		return d[i], true
	}
	return Damage{}, false
}

// from returns the position of the first damage at or behind pos; end when there is none before it.
func (d damages) from(pos, end int64) int64 {
	for _, one := range d {
		if one.End > pos {
			return min(max(one.Pos, pos), end)
		}
	}
	return end
}

// damaged is the list at present.
func (s *Segment) damaged() damages {
	if d := s.damage.Load(); d != nil {
		return *d
	}
	return nil
}

// Damage lists what is known to be damaged, by position.
func (s *Segment) Damage() []Damage { return slices.Clone(s.damaged()) }

// lost is the error for an offset that lies in damage; nil when it does not.
func (s *Segment) lost(offset int64) error {
	for _, d := range s.damaged() {
		if d.From <= offset && offset < d.To {
			return d.Err
		}
	}
	return nil
}

// noteDamage adds to the list and reports what is new, once.
func (s *Segment) noteDamage(d Damage) {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	old := s.damaged()
	list := make(damages, 0, len(old)+1)
	for _, one := range old {
		switch {
		case one.Pos <= d.Pos && d.End <= one.End:
			return // known
		case one.End <= d.Pos || d.End <= one.Pos:
			list = append(list, one)
		default: // the new one tells more
			d.Pos, d.End = min(d.Pos, one.Pos), max(d.End, one.End)
			d.From, d.To = min(d.From, one.From), max(d.To, one.To)
		}
	}
	list = append(list, d)
	slices.SortFunc(list, func(a, b Damage) int { return int(a.Pos - b.Pos) })
	s.damage.Store(&list)
	s.seen.Add(1)
	s.env.Metrics.Damages.Add(1)
	s.env.Metrics.DamagedBytes.Add(d.End - d.Pos)
	s.env.Logger.Error("a log is damaged; what lies around is served", "error", d.Err,
		"bytes", d.End-d.Pos, "first_offset", d.From, "next_offset", d.To)
}

// dropDamage forgets the damage from a position on: the log was cut there.
func (s *Segment) dropDamage(pos int64) {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.damaged()), func(d Damage) bool { return d.End > pos })
	s.damage.Store(&list)
}

// corrupt is the error for a batch of the log.
func (s *Segment) corrupt(pos, offset int64, reason string) *record.CorruptError {
	return &record.CorruptError{File: s.LogName(), Pos: pos, Offset: offset, Reason: reason}
}

// findChunk is how much of a log a search for the next batch holds in memory.
const findChunk = 64 << 10

// search looks for the batch with which a log goes on behind damage.
type search struct {
	s      *Segment
	from   int64 // the least offset that fits
	limit  int64 // the first offset that does not fit
	end    int64 // of the part of the log that is looked at
	budget int64 // bytes of which it may compute checksums
}

// resume finds the first batch behind the damage at pos: one whose checksum holds and whose offset fits. Every position
// is tried up to the next batch that is known: by the length that the damaged bytes tell, or by the offset index.
func (q *search) resume(pos int64, useIndex bool) (next int64, h record.Header, ok bool, err error) {
	q.budget = 8*(q.end-pos) + 1<<20
	stop, close, err := q.told(pos)
	if err != nil {
		return 0, h, false, err
	}
	if close {
		h, ok, err = q.good(stop)
		return stop, h, ok, err
	}
	if stop == q.end && useIndex {
		if stop, err = q.indexed(pos); err != nil {
			return 0, h, false, err
		}
	}
	limit := q.limit
	if stop < q.end {
		if h, ok, err = q.good(stop); !ok || err != nil {
			return 0, h, false, err
		}
		q.limit = min(q.limit, h.BaseOffset)
	}
	if next, h, ok, err = q.scan(pos+1, stop); ok || err != nil || stop == q.end {
		return next, h, ok, err
	}
	q.limit = limit
	h, ok, err = q.good(stop)
	return stop, h, ok, err
}

// told is the position behind the entry at pos that its header tells, if there is a good batch; else the end of the
// part. close says that its offsets leave no room for a batch between.
func (q *search) told(pos int64) (next int64, close bool, err error) {
	h, err := q.s.headerAt(pos, q.end)
	next = pos + int64(h.SizeBytes)
	if err != nil || next >= q.end {
		return q.end, false, notHeader(err)
	}
	after, ok, err := q.good(next)
	if err != nil || !ok {
		return q.end, false, err
	}
	return next, after.BaseOffset == h.NextOffset() && h.BaseOffset == q.from, nil
}

// indexed is the position of the first good batch behind pos that the offset index knows, else the end of the part.
func (q *search) indexed(pos int64) (int64, error) {
	e, found, err := q.s.files().offsets.LookupEnd(pos + 1)
	if err != nil || !found || e.Pos >= q.end {
		return q.end, nil // an index that cannot be read is no help
	}
	h, ok, err := q.good(e.Pos)
	if err != nil || !ok || h.LastOffset > e.Offset {
		return q.end, err
	}
	return e.Pos, nil
}

// notHeader drops an error that tells of bytes that are no header.
func notHeader(err error) error {
	if errors.Is(err, record.ErrShort) {
		return nil
	}
	return notEnd(notDamage(err))
}

// headerAt reads one header.
func (s *Segment) headerAt(pos, end int64) (record.Header, error) {
	var buf [record.HeaderSize]byte
	n, err := s.files().log.ReadAt(buf[:max(min(int64(len(buf)), end-pos), 0)], pos)
	if h, perr := record.ParseHeader(buf[:n]); perr == nil {
		return h, nil
	} else if err == nil || n > 0 {
		err = perr
	}
	return record.Header{}, err
}

// scan tries every position in [pos, stop).
func (q *search) scan(pos, stop int64) (next int64, h record.Header, ok bool, err error) {
	buf := make([]byte, min(findChunk+record.HeaderSize, q.end-pos))
	for pos < stop {
		part := buf[:min(int64(len(buf)), q.end-pos)]
		n, rerr := q.s.files().log.ReadAt(part, pos)
		if n == 0 {
			return 0, h, false, notEnd(rerr)
		}
		tried := int64(n)
		if n == len(buf) && pos+int64(n) < q.end {
			tried = findChunk
		}
		for i := int64(0); i < tried && pos+i < stop; i++ {
			if !q.plausible(part[i:n], q.end-pos-i) {
				continue
			}
			if h, ok, err = q.good(pos + i); ok || err != nil {
				return pos + i, h, ok, err
			}
		}
		pos += tried
	}
	return 0, h, false, nil
}

// plausible is the quick test of the bytes at one position.
func (q *search) plausible(b []byte, room int64) bool {
	if len(b) < 17 || b[16] > 2 {
		return false
	}
	offset, size := int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))
	if size < 14 || offset < q.from || offset >= q.limit {
		return false
	}
	h, err := record.ParseHeader(b[:min(len(b), record.HeaderSize)])
	return err == nil && int64(h.SizeBytes) <= room && q.fits(h)
}

func (q *search) fits(h record.Header) bool {
	return h.BaseOffset >= q.from && h.LastOffset >= h.BaseOffset && h.LastOffset < q.limit && q.s.CanHold(h.LastOffset)
}

// good reports whether the batch at pos is whole and its checksum right.
func (q *search) good(pos int64) (record.Header, bool, error) {
	var sc record.Scanner
	sc.Reset(q.s.files().log, pos, q.end)
	if !sc.Next() {
		return record.Header{}, false, notDamage(sc.Err())
	}
	h := sc.Header()
	if !q.fits(h) || q.budget < int64(h.SizeBytes) {
		return h, false, nil
	}
	q.budget -= int64(h.SizeBytes)
	good, err := sc.ValidCRC()
	return h, good, err
}

// notDamage drops an error that tells of damage in a log.
func notDamage(err error) error {
	if errors.As(err, new(*record.CorruptError)) {
		return nil
	}
	return err
}
