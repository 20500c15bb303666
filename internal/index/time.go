package index

import "encoding/binary"

// TimeEntrySize is the size in bytes of an entry of a time index.
const TimeEntrySize = 12

// NoTimestamp is the timestamp of records that have none.
const NoTimestamp = -1

// TimeEntry says that every record of the segment with a timestamp greater than
// Timestamp has an offset greater than Offset.
type TimeEntry struct {
	Timestamp int64 // ms
	Offset    int64 // absolute
}

// Entry of a time index:
//
//	 0       8     12
//	+-------+------+
//	| ts    | rel  |   ts in ms, int64; rel = offset - base offset of the segment, int32
//	+-------+------+
func (TimeEntry) decode(b []byte, baseOffset int64) TimeEntry {
	return TimeEntry{
		Timestamp: int64(binary.BigEndian.Uint64(b)),
		Offset:    baseOffset + int64(int32(binary.BigEndian.Uint32(b[8:]))),
	}
}

func (e TimeEntry) encode(b []byte, baseOffset int64) {
	binary.BigEndian.PutUint64(b, uint64(e.Timestamp))
	binary.BigEndian.PutUint32(b[8:], uint32(e.Offset-baseOffset))
}

// DecodeTimes reads entries of a time index, at least one, from the bytes of a file: the last one, and whether they
// rise as Append lets them.
func DecodeTimes(b []byte, baseOffset int64) (last TimeEntry, rise bool) {
	rise = true
	for at := 0; at+TimeEntrySize <= len(b); at += TimeEntrySize {
		e := TimeEntry{}.decode(b[at:], baseOffset)
		rise = rise && (at == 0 || e.Timestamp > last.Timestamp && e.Offset >= last.Offset)
		last = e
	}
	return last, rise
}

func timestampOf(e TimeEntry) int64  { return e.Timestamp }
func timeOffsetOf(e TimeEntry) int64 { return e.Offset }

// TimeIndex maps timestamps to offsets of one segment (".timeindex").
//
// Its entries are copies of the running maximum (largest timestamp so far, last
// offset of the batch that had it), taken when an offset index entry is written
// and when the segment is rolled or closed. Timestamps increase strictly.
type TimeIndex struct{ preallocated[TimeEntry] }

// OpenTimeIndex names a time index. No I/O happens before the first use, which
// creates an absent file at full size.
func OpenTimeIndex(o Options) *TimeIndex {
	x := &TimeIndex{}
	x.init(o, TimeEntrySize, true)
	return x
}

// Append adds an entry if its timestamp is greater than that of the last entry,
// or than NoTimestamp in an empty index, and says whether it did.
//
// One slot is kept for the entry of a roll or close, which passes final. Errors:
// ErrFull, *OrderError when timestamp or offset is smaller than that of the last
// entry, *RangeError when offset does not fit.
func (x *TimeIndex) Append(ts, offset int64, final bool) (written bool, err error) {
	err = x.write(func(s state[TimeEntry]) error {
		spare := int64(1)
		if final {
			spare = 0
		} else if x.isFull(s) {
			return ErrFull
		}
		if s.n > 0 && offset < s.last.Offset {
			return &OrderError{Name: x.Name(), What: "offset", Got: offset, Last: s.last.Offset}
		}
		if s.n > 0 && ts < s.last.Timestamp {
			return &OrderError{Name: x.Name(), What: "timestamp", Got: ts, Last: s.last.Timestamp}
		}
		if ts <= x.lastEntry(s).Timestamp {
			return nil
		}
		if !x.CanHold(offset) {
			return &RangeError{Name: x.Name(), What: "offset", Got: offset, BaseOffset: x.o.BaseOffset}
		}
		written = true
		return x.append(s, TimeEntry{Timestamp: ts, Offset: offset}, spare)
	})
	return written && err == nil, err
}

// lastEntry is the last entry of a state, or (NoTimestamp, base offset).
func (x *TimeIndex) lastEntry(s state[TimeEntry]) TimeEntry {
	if s.n == 0 {
		return TimeEntry{Timestamp: NoTimestamp, Offset: x.o.BaseOffset}
	}
	return s.last
}

func (x *TimeIndex) isFull(s state[TimeEntry]) bool { return s.n >= x.capacity(s)-1 }

// Lookup finds the last entry whose timestamp is ≤ the one given: no record with
// that timestamp or a later one lies before its offset. Without such an entry ok
// is false and the entry is (NoTimestamp, base offset).
func (x *TimeIndex) Lookup(ts int64) (e TimeEntry, ok bool, err error) {
	err = x.read(func(s state[TimeEntry]) error {
		i, err := x.floor(s, timestampOf, ts)
		if err != nil || i < 0 {
			e, ok = TimeEntry{Timestamp: NoTimestamp, Offset: x.o.BaseOffset}, false
			return err
		}
		e, err = x.at(s, i)
		ok = err == nil
		return err
	})
	return e, ok, err
}

// Entry reads entry i, counted from 0.
func (x *TimeIndex) Entry(i int) (TimeEntry, error) { return x.entryAt(i) }

// Last is the last entry. Without one ok is false and the entry is (NoTimestamp,
// base offset).
func (x *TimeIndex) Last() (e TimeEntry, ok bool, err error) {
	s, err := x.load()
	return x.lastEntry(s), err == nil && s.n > 0, err
}

// IsFull says that the segment must roll before the next entry: only the slot for
// the roll is left. A trimmed index is full until it grows.
func (x *TimeIndex) IsFull() (bool, error) {
	s, err := x.load()
	return x.isFull(s), err
}

// Truncate drops the entries whose offset is ≥ the one given.
func (x *TimeIndex) Truncate(offset int64) error {
	return x.write(func(s state[TimeEntry]) error {
		i, err := x.floor(s, timeOffsetOf, offset)
		if err != nil {
			return err
		}
		return truncateAt(&x.table, s, timeOffsetOf, i, offset)
	})
}
