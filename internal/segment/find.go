package segment

import (
	"errors"
	"os"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// Location is one batch in a segment.
type Location struct {
	Pos        int64
	SizeBytes  int64
	BaseOffset int64 // as the header has it; of a compressed batch of magic 0 or 1 its last offset
	LastOffset int64
}

// Find returns the first batch before the position end whose last offset is at least offset; false when there is
// none. It reads one interval of the log, found through the offset index. Errors are the disk's, and
// *record.CorruptError when the batch with the offset was in a part that is damaged.
func (s *Segment) Find(offset, end int64) (Location, bool, error) {
	if err := s.lost(offset); err != nil {
		return Location{}, false, err
	}
	var sc scanner
	_, more, err := s.scanFor(&sc, offset, end)
	if err != nil {
		return Location{}, false, err
	}
	defer sc.close()
	for ; more; more = sc.next() {
		if sc.h.LastOffset >= offset {
			return Location{
				Pos: sc.Pos(), SizeBytes: int64(sc.h.SizeBytes),
				BaseOffset: sc.h.BaseOffset, LastOffset: sc.h.LastOffset,
			}, true, s.lost(offset)
		}
	}
	if err := s.lost(offset); err != nil {
		return Location{}, false, err
	}
	return Location{}, false, sc.Err()
}

// scanFor starts a scan at the last batch that the offset index knows not to lie behind offset, and goes to that
// batch: more is what next returned. An index that was there at the start is doubted: when its entry points at no
// batch of such an offset, the index is rebuilt and asked again.
func (s *Segment) scanFor(sc *scanner, offset, end int64) (e index.OffsetEntry, more bool, err error) {
	for doubt := true; ; doubt = false {
		if err := s.ready(); err != nil {
			return e, false, err
		}
		doubt = doubt && !s.trusted.Load()
		e, ok, err := s.files().offsets.Lookup(offset)
		if err != nil {
			return e, false, err
		}
		fits := true
		if doubt && ok {
			if fits, err = s.fits(e, end); err != nil {
				return e, false, err
			}
		}
		if fits {
			*sc = s.scan(e.Pos, end)
			return e, sc.next(), nil
		}
		if err := s.rebuild("an offset index entry points at no batch of that offset"); err != nil {
			return e, false, err
		}
	}
}

// fits reports whether the batch that an index entry points at can be the one it means. A scan must not begin where it
// cannot: it would take the bytes there for damage.
//
// Kafka: older versions made one entry for several batches appended at once: the last offset of all and the position
// of the first. So the batch may end before the entry's offset, but never behind it.
func (s *Segment) fits(e index.OffsetEntry, end int64) (bool, error) {
	if e.Pos >= end {
		return true, nil // behind what the caller may see
	}
	h, err := s.headerAt(e.Pos, end)
	if notDamage(err) != nil && !errors.Is(err, record.ErrShort) {
		return false, err
	}
	return err == nil && h.LastOffset <= e.Offset && h.LastOffset >= s.base, nil
}

// UpperBound is the offset of the first offset index entry at or behind a position; false when there is none.
//
// Kafka: a position that is exactly the first entry's gives the second entry (AbstractIndex.binarySearch).
func (s *Segment) UpperBound(pos int64) (int64, bool, error) {
	if err := s.ready(); err != nil {
		return 0, false, err
	}
	offsets := s.files().offsets
	e, ok, err := offsets.LookupEnd(pos)
	if err != nil || !ok || e.Pos != pos {
		return e.Offset, ok, err
	}
	first, err := offsets.Entry(0)
	if err != nil || first != e {
		return e.Offset, true, err
	}
	if n, err := offsets.Len(); err != nil || n == 1 {
		return 0, false, err
	}
	e, err = offsets.Entry(1)
	return e.Offset, true, err
}

// CollectAborted returns the aborted transactions of this segment that touch [from, to). done says that no later
// segment can have more.
func (s *Segment) CollectAborted(from, to int64) (txns []index.AbortedTxn, done bool, err error) {
	if err := s.readyTxns(); err != nil {
		return nil, false, err
	}
	if !s.has(HasTxn) {
		return nil, false, nil
	}
	txns, done, err = s.files().txns.Collect(from, to)
	if err != nil || done {
		return txns, done, err
	}
	txns, done = s.collectLate(txns, from, to)
	return txns, done, nil
}

// Pin keeps the .log file open until Unpin and returns it, for reads at explicit positions below what the caller
// knows as written. The caller holds a reference on the segment.
func (s *Segment) Pin() (vfs.File, error) { return s.files().log.Acquire() }

// Unpin ends a Pin.
func (s *Segment) Unpin() { s.files().log.Release() }

// End finds the last batch before the position end by a scan from the last index entry: the offset after it, the base
// offset when there is no batch, and the position behind it. damage is the *record.CorruptError that ended the scan
// before end was reached, with no batch behind it. The checksum of the last batch is verified, for its header tells
// where the log ends.
func (s *Segment) End(end int64) (next, pos int64, damage, err error) {
	if err := s.readyEnds(); err != nil {
		return 0, 0, nil, err
	}
	last, _, err := s.files().offsets.Last()
	if err != nil {
		return 0, 0, nil, err
	}
	sc := s.scanWith(last.Pos, end, walk{tail: true})
	defer sc.close()
	for sc.next() { //nolint:revive // to the last one
	}
	if err := notDamage(sc.Err()); err != nil || sc.batches == 0 {
		return s.base, sc.End(), sc.Err(), err
	}
	at, cause, err := sc.blame(sc.pos+int64(sc.h.SizeBytes), nil)
	if err != nil || cause == nil {
		return sc.nextOffset(s.base), sc.End(), sc.Err(), err
	}
	next, err = s.nextBefore(at)
	return next, at, cause, err
}

// Batches calls a function for each batch before the position end whose last offset is at least from, in order; entry
// reads its bytes, which are valid during the call. Damage is passed over. An error of the function ends it and is
// returned. Errors besides are the disk's.
func (s *Segment) Batches(from, end int64, each func(h record.Header, entry func() ([]byte, error)) error) error {
	var sc scanner
	_, more, err := s.scanFor(&sc, from, end)
	if err != nil {
		return err
	}
	defer sc.close()
	for ; more; more = sc.next() {
		if sc.h.LastOffset < from {
			continue
		}
		if err := each(sc.h, sc.Batch); err != nil {
			return err
		}
	}
	return notDamage(sc.Err())
}

// ScanNextOffset is the offset after the last batch of a .log file that belongs to no segment; base when it has none.
func ScanNextOffset(files *index.FileCache, name string, base int64) (int64, error) {
	f := files.File(name, os.O_RDONLY)
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	sc := record.NewScanner(f, 0, size)
	sc.File = name
	next := base
	for sc.Next() {
		next = sc.Header().NextOffset()
	}
	return next, errors.Join(notDamage(sc.Err()), f.Close())
}
