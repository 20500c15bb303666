package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"tidemark/record"
)

var scanners = sync.Pool{New: func() any { return new(record.Scanner) }}

// walk says how a scanner goes about the log.
type walk struct {
	checksums bool  // verify them
	order     bool  // a batch must fit the one behind it, too
	noIndex   bool  // the offset index is not to be asked
	stop      bool  // at the first damage, instead of passing over it
	limit     int64 // the first offset that is the next segment's; set by the scanner
	// tail keeps damage with no batch behind it to itself: the log may just end there.
	tail bool
}

// scanner walks the batches of a part of the log by their headers and counts them; it passes over damage, which it
// notes in the segment. close gives its buffer back; batches that it returned before are no longer valid then.
type scanner struct {
	*record.Scanner
	s       *Segment
	walk    walk
	h       record.Header // of the last batch met
	pos     int64         // of it
	batches int
	end     int64
	from    int64 // the least offset that the next batch may have
	exact   bool  // from is the offset behind the batch before
	read    int64 // bytes, before the last Reset
	stopped error // why it ended before end: *record.CorruptError, or of the disk
	stopPos int64
	refused string        // what the caller has against the last batch
	before  record.Header // the batch before the last one, and what had been known of the last
	least   int64
	known   bool
}

// scan starts before the batch at pos; nothing at or behind end is looked at.
func (s *Segment) scan(pos, end int64) scanner { return s.scanWith(pos, end, walk{}) }

func (s *Segment) scanWith(pos, end int64, w walk) scanner {
	f := s.files()
	sc := scanners.Get().(*record.Scanner)
	sc.File = f.log.Name()
	sc.Reset(f.log, pos, end)
	if w.limit = s.limit.Load(); w.limit == 0 {
		w.limit = math.MaxInt64
	}
	return scanner{Scanner: sc, s: s, walk: w, end: end, from: s.base, exact: pos == 0}
}

func (sc *scanner) close() {
	if sc.Scanner != nil {
		sc.Reset(nil, 0, 0)
		scanners.Put(sc.Scanner)
		sc.Scanner = nil
	}
}

// next goes to the next batch. It is false at the end of the part, at damage with no batch behind it, and when a read
// fails; Err tells these apart.
func (sc *scanner) next() bool {
	for sc.stopped == nil {
		at := sc.Scanner.End()
		if sc.refused != "" {
			at = sc.Pos()
		} else if d, known := sc.s.damaged().at(at); known && at < sc.end && !sc.walk.stop {
			sc.jump(d.End, d.To)
			continue
		}
		cause, ok := sc.step()
		if ok {
			return true
		}
		if cause == nil {
			return false
		}
		if !sc.passOver(at, cause) {
			return false
		}
	}
	return false
}

// step tries the batch at the present position. cause says what is wrong with it; nil at the end.
func (sc *scanner) step() (cause *record.CorruptError, ok bool) {
	if reason := sc.refused; reason != "" {
		sc.refused = ""
		return sc.takeBack(reason), false
	}
	if !sc.Next() {
		if err := sc.Scanner.Err(); err != nil && !errors.As(err, &cause) {
			sc.stopped = err
		}
		return cause, false
	}
	h := sc.Header()
	reason, err := sc.misfit(h)
	if err != nil {
		sc.stopped = err
		return nil, false
	}
	if reason != "" {
		return sc.s.corrupt(sc.Pos(), h.BaseOffset, reason), false
	}
	sc.before, sc.least, sc.known = sc.h, sc.from, sc.exact
	sc.h, sc.from, sc.exact = h, h.NextOffset(), true
	sc.pos = sc.Pos()
	sc.batches++
	return nil, true
}

// misfit says why a batch cannot stand where it does; "" when it can.
//
// Kafka does not ask whether offsets rise: a batch that repeats offsets is kept there, and moves the log end back.
func (sc *scanner) misfit(h record.Header) (string, error) {
	switch {
	case h.LastOffset < h.BaseOffset:
		return fmt.Sprintf("last offset %d lies below base offset %d", h.LastOffset, h.BaseOffset), nil
	case h.BaseOffset < sc.from:
		return fmt.Sprintf("base offset %d lies below the end offset %d of the batch before", h.BaseOffset, sc.from), nil
	case h.LastOffset >= sc.walk.limit:
		return fmt.Sprintf("last offset %d reaches into the next segment, from %d", h.LastOffset, sc.walk.limit), nil
	}
	if sc.walk.checksums {
		if good, err := sc.ValidCRC(); err != nil || !good {
			return "wrong checksum", err
		}
	}
	if sc.walk.order && h.BaseOffset > sc.from {
		return sc.leap(h), nil
	}
	return "", nil
}

// leap looks at a batch that leaves offsets out: compaction does that, and so does a wrong base offset, which no
// checksum covers. The batch behind it tells which.
func (sc *scanner) leap(h record.Header) string {
	after, err := sc.s.headerAt(sc.Scanner.End(), sc.end)
	behind := err == nil && after.BaseOffset >= sc.from && after.LastOffset >= after.BaseOffset
	if behind && after.BaseOffset <= h.LastOffset || !behind && !sc.s.CanHold(h.LastOffset) {
		return fmt.Sprintf("offsets %d to %d do not fit those around", h.BaseOffset, h.LastOffset)
	}
	return ""
}

// refuse declares the last batch damaged; next goes on behind it.
func (sc *scanner) refuse(reason string) { sc.refused = reason }

// takeBack declares the last batch damaged, with what came of it.
func (sc *scanner) takeBack(reason string) *record.CorruptError {
	cause := sc.s.corrupt(sc.pos, sc.h.BaseOffset, reason)
	sc.h, sc.from, sc.exact = sc.before, sc.least, sc.known
	sc.batches--
	return cause
}

// blame finds out whether the batch before damage at pos is to blame, whose length would then be what is wrong.
func (sc *scanner) blame(pos int64, cause *record.CorruptError) (int64, *record.CorruptError, error) {
	if sc.walk.checksums || sc.batches == 0 || sc.pos+int64(sc.h.SizeBytes) != pos {
		return pos, cause, nil
	}
	var one record.Scanner
	one.Reset(sc.s.files().log, sc.pos, pos)
	if !one.Next() {
		return pos, cause, notDamage(one.Err())
	}
	good, err := one.ValidCRC()
	if err != nil || good {
		return pos, cause, err
	}
	return sc.pos, sc.takeBack("wrong checksum"), nil
}

// passOver goes to the first batch behind the damage at pos; false when there is none.
func (sc *scanner) passOver(pos int64, cause *record.CorruptError) bool {
	if sc.walk.stop {
		sc.stopped, sc.stopPos = cause, pos
		return false
	}
	pos, cause, err := sc.blame(pos, cause)
	if err != nil {
		sc.stopped, sc.stopPos = err, pos
		return false
	}
	from := sc.from
	if !sc.exact {
		if from, err = sc.s.nextBefore(pos); err != nil {
			sc.stopped, sc.stopPos = err, pos
			return false
		}
	}
	q := search{s: sc.s, from: from, limit: sc.walk.limit, end: sc.end}
	next, h, found, err := q.resume(pos, !sc.walk.noIndex)
	if err != nil {
		sc.stopped, sc.stopPos = err, pos
		return false
	}
	if found {
		d := Damage{Pos: pos, End: next, From: from, To: sc.s.firstOffset(h, next, from), Err: cause}
		sc.s.noteDamage(d)
		sc.jump(d.End, d.To)
		return true
	}
	if !sc.walk.tail {
		end, to := sc.s.endOfLog(sc.end, sc.walk.limit)
		if end > sc.end { // more was written meanwhile
			sc.end = end
			return sc.passOver(pos, cause)
		}
		sc.s.noteDamage(Damage{Pos: pos, End: sc.end, From: from, To: to, Err: cause})
	}
	sc.stopped, sc.stopPos = cause, pos
	return false
}

// endOfLog is the position behind the last batch, and the offset up to which damage there may reach.
func (s *Segment) endOfLog(end, limit int64) (pos, to int64) {
	if !s.growing.Load() {
		return end, limit
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	return s.indexedTo, s.nextBatch
}

// firstOffset is the offset of the first record of a good batch. A compressed batch of an old magic has to be read for
// it; least is the answer when that fails.
func (s *Segment) firstOffset(h record.Header, pos, least int64) int64 {
	if h.Magic >= 2 || h.Codec() == record.None {
		return h.BaseOffset
	}
	var sc record.Scanner
	sc.Reset(s.files().log, pos, pos+int64(h.SizeBytes))
	if !sc.Next() {
		return least
	}
	entry, err := sc.Batch()
	if err != nil {
		return least
	}
	it, err := record.NewIterator(entry, record.IterOptions{SkipKV: true, MaxBytes: s.env.MaxDecompressedBytes,
		Memory: s.env.Memory})
	if err != nil {
		return least
	}
	defer it.Close()
	if !it.Next() {
		return least
	}
	return max(it.Record().Offset, least)
}

// nextBefore is the offset behind the last batch that ends at or before pos, found by reading all headers before it.
func (s *Segment) nextBefore(pos int64) (int64, error) {
	sc := s.scanWith(0, pos, walk{noIndex: true, tail: true})
	defer sc.close()
	for sc.next() { //nolint:revive // to the last one
	}
	return sc.nextOffset(s.base), notDamage(sc.Err())
}

// jump goes on at a position behind damage.
func (sc *scanner) jump(pos, from int64) {
	sc.read += sc.Scanner.BytesRead()
	if pos >= sc.end {
		pos = sc.end
	}
	sc.Reset(sc.s.files().log, pos, sc.end)
	if from != math.MaxInt64 {
		sc.from, sc.exact = max(sc.from, from), true
	}
}

// Err is why next was false: nil at the end of the part, *record.CorruptError at damage with no batch behind it, else
// an error of the disk.
func (sc *scanner) Err() error { return sc.stopped }

// End is the position behind the last batch met, or behind the damage passed over since.
func (sc *scanner) End() int64 {
	if sc.stopped != nil && sc.stopPos > 0 {
		return sc.stopPos
	}
	return sc.Scanner.End()
}

// BytesRead is the number of bytes read from the file.
func (sc *scanner) BytesRead() int64 { return sc.read + sc.Scanner.BytesRead() }

// nextOffset is the offset after the last batch met, or the one given.
func (sc *scanner) nextOffset(base int64) int64 {
	if sc.batches == 0 {
		return base
	}
	return sc.h.NextOffset()
}

// notEnd drops io.EOF.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
