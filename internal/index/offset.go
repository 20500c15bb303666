package index

import "encoding/binary"

// OffsetEntrySize is the size in bytes of an entry of an offset index.
const OffsetEntrySize = 8

// OffsetEntry says that the batch whose last offset is Offset starts at byte Pos
// of the log file.
type OffsetEntry struct {
	Offset int64 // absolute
	Pos    int64 // 0…2^31-1
}

// Entry of an offset index:
//
//	 0       4        8
//	+--------+--------+
//	| rel    | pos    |   rel = offset - base offset of the segment; int32, int32
//	+--------+--------+
func (OffsetEntry) decode(b []byte, baseOffset int64) OffsetEntry {
	return OffsetEntry{
		Offset: baseOffset + int64(int32(binary.BigEndian.Uint32(b))),
		Pos:    int64(int32(binary.BigEndian.Uint32(b[4:]))),
	}
}

func (e OffsetEntry) encode(b []byte, baseOffset int64) {
	binary.BigEndian.PutUint32(b, uint32(e.Offset-baseOffset))
	binary.BigEndian.PutUint32(b[4:], uint32(e.Pos))
}

func offsetOf(e OffsetEntry) int64 { return e.Offset }
func posOf(e OffsetEntry) int64    { return e.Pos }

// OffsetIndex maps offsets to byte positions of one segment (".index").
//
// An entry is written for some batches only, at most one for every
// index.interval.bytes of log, and never for the first batch of the segment. Its
// offset is the batch's last one, its position the batch's start.
type OffsetIndex struct{ preallocated[OffsetEntry] }

// OpenOffsetIndex names an offset index. No I/O happens before the first use,
// which creates an absent file at full size.
func OpenOffsetIndex(o Options) *OffsetIndex {
	x := &OffsetIndex{}
	x.init(o, OffsetEntrySize, true)
	return x
}

// Append adds an entry. Errors: ErrFull, *OrderError when offset is not larger
// than that of the last entry, *RangeError when offset or pos does not fit.
func (x *OffsetIndex) Append(offset, pos int64) error {
	if !x.CanHold(offset) {
		return &RangeError{Name: x.Name(), What: "offset", Got: offset, BaseOffset: x.o.BaseOffset}
	}
	if !fitsInt32(pos) {
		return &RangeError{Name: x.Name(), What: "position", Got: pos, BaseOffset: x.o.BaseOffset}
	}
	return x.write(func(s state[OffsetEntry]) error {
		if s.n > 0 && offset <= s.last.Offset {
			return &OrderError{Name: x.Name(), What: "offset", Got: offset, Last: s.last.Offset}
		}
		return x.append(s, OffsetEntry{Offset: offset, Pos: pos}, 0)
	})
}

// Lookup finds the last entry whose offset is ≤ the one given: a scan of the log
// from its position meets that offset. Without such an entry ok is false and the
// entry is the start of the segment.
func (x *OffsetIndex) Lookup(offset int64) (e OffsetEntry, ok bool, err error) {
	err = x.read(func(s state[OffsetEntry]) error {
		i, err := x.floor(s, offsetOf, offset)
		if err != nil || i < 0 {
			e, ok = OffsetEntry{Offset: x.o.BaseOffset}, false
			return err
		}
		e, err = x.at(s, i)
		ok = err == nil
		return err
	})
	return e, ok, err
}

// LookupEnd finds the first entry whose position is ≥ pos: a bound for the
// offsets in the bytes below pos.
func (x *OffsetIndex) LookupEnd(pos int64) (e OffsetEntry, ok bool, err error) {
	err = x.read(func(s state[OffsetEntry]) error {
		i, err := x.ceil(s, posOf, pos)
		if err != nil || i < 0 {
			e, ok = OffsetEntry{}, false
			return err
		}
		e, err = x.at(s, i)
		ok = err == nil
		return err
	})
	return e, ok, err
}

// Entry reads entry i, counted from 0.
func (x *OffsetIndex) Entry(i int) (OffsetEntry, error) { return x.entryAt(i) }

// Last is the last entry. Without one ok is false and the entry is the start of
// the segment.
func (x *OffsetIndex) Last() (e OffsetEntry, ok bool, err error) {
	s, err := x.load()
	if err != nil || s.n == 0 {
		return OffsetEntry{Offset: x.o.BaseOffset}, false, err
	}
	return s.last, true, nil
}

// IsFull says that the segment must roll before the next entry. A trimmed index
// is full until it grows.
func (x *OffsetIndex) IsFull() (bool, error) {
	s, err := x.load()
	return s.n >= x.capacity(s), err
}

// Truncate drops the entries whose offset is ≥ the one given.
func (x *OffsetIndex) Truncate(offset int64) error {
	return x.write(func(s state[OffsetEntry]) error {
		i, err := x.floor(s, offsetOf, offset)
		if err != nil {
			return err
		}
		return truncateAt(&x.table, s, offsetOf, i, offset)
	})
}

// truncateAt drops the entries behind i, and i itself when its key is the target.
func truncateAt[E entry[E]](t *table[E], s state[E], key func(E) int64, i, target int64) error {
	if i < 0 {
		return t.keep(s, 0)
	}
	e, err := t.at(s, i)
	if err != nil {
		return err
	}
	if key(e) == target {
		return t.keep(s, i)
	}
	return t.keep(s, i+1)
}
