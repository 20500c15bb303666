package index

import "fmt"

// CheckOptions say what is known about the log file of the segment.
type CheckOptions struct {
	LogSizeBytes int64 // of the log file; 0: unknown
}

// checkChunk is read at a time: 4096 entries of each kind fit whole.
const checkChunk = 4096

// Check reads the whole index and returns nil, a *CorruptError for the first
// thing wrong, or fs.ErrNotExist. It never writes, and does not create the file.
// A damaged index may pass: only a rebuild proves it right.
func (x *OffsetIndex) Check(o CheckOptions) error {
	prev := OffsetEntry{Offset: x.o.BaseOffset - 1}
	return x.check(true, func(i int64, e OffsetEntry) (CorruptKind, string) {
		defer func() { prev = e }()
		switch {
		case e == OffsetEntry{Offset: x.o.BaseOffset}:
			return ZeroFilled, "all zeros"
		case e.Offset < x.o.BaseOffset || e.Pos <= 0:
			return OutOfRange, fmt.Sprintf("offset %d, position %d in a segment from %d", e.Offset, e.Pos, x.o.BaseOffset)
		case o.LogSizeBytes > 0 && e.Pos >= o.LogSizeBytes:
			return OutOfRange, fmt.Sprintf("position %d in a log of %d bytes", e.Pos, o.LogSizeBytes)
		case e.Offset <= prev.Offset || e.Pos <= prev.Pos:
			return NotIncreasing, fmt.Sprintf("(%d, %d) after (%d, %d)", e.Offset, e.Pos, prev.Offset, prev.Pos)
		}
		return 0, ""
	})
}

// Check reads the whole index and returns nil, a *CorruptError for the first
// thing wrong, or fs.ErrNotExist. It never writes, and does not create the file.
// A damaged index may pass: only a rebuild proves it right.
func (x *TimeIndex) Check(CheckOptions) error {
	var prev TimeEntry
	zero := TimeEntry{Offset: x.o.BaseOffset}
	return x.check(true, func(i int64, e TimeEntry) (CorruptKind, string) {
		defer func() { prev = e }()
		switch {
		case i > 0 && e == zero: // a first entry of zeros can be real
			return ZeroFilled, "all zeros"
		case e.Offset < x.o.BaseOffset:
			return OutOfRange, fmt.Sprintf("offset %d in a segment from %d", e.Offset, x.o.BaseOffset)
		case i > 0 && (e.Timestamp <= prev.Timestamp || e.Offset < prev.Offset):
			return NotIncreasing, fmt.Sprintf("(%d, %d) after (%d, %d)", e.Timestamp, e.Offset, prev.Timestamp, prev.Offset)
		}
		return 0, ""
	})
}

// Check reads the whole index and returns nil, a *CorruptError for the first
// thing wrong, or fs.ErrNotExist. A torn tail is reported, though harmless.
func (x *TxnIndex) Check() error {
	prev := x.o.BaseOffset - 1
	return x.check(false, func(i int64, e txnEntry) (CorruptKind, string) {
		defer func() { prev = e.LastOffset }()
		switch {
		case e.version != txnVersion:
			return BadVersion, fmt.Sprintf("version %d", e.version)
		case e == txnEntry{}:
			return ZeroFilled, "all zeros"
		case e.LastOffset < x.o.BaseOffset:
			return OutOfRange, fmt.Sprintf("last offset %d in a segment from %d", e.LastOffset, x.o.BaseOffset)
		case e.FirstOffset < 0 || e.FirstOffset > e.LastOffset || e.LastStableOffset > e.LastOffset+1:
			return OutOfRange, fmt.Sprintf("offsets %d…%d, last stable %d", e.FirstOffset, e.LastOffset, e.LastStableOffset)
		case e.LastOffset <= prev:
			return NotIncreasing, fmt.Sprintf("last offset %d after %d", e.LastOffset, prev)
		}
		return 0, ""
	})
}

// check reads all entries, past the cache, and passes them to bad. The entries
// come before the size: they tell more.
func (t *table[E]) check(bounded bool, bad func(i int64, e E) (CorruptKind, string)) error {
	if !t.snapshot().loaded {
		// Loading would create an absent file.
		if _, err := t.o.Files.FS().Stat(t.Name()); err != nil {
			return fmt.Errorf("check index: %w", err)
		}
	}
	return t.read(func(s state[E]) error {
		if err := t.checkEntries(s, bad); err != nil {
			return err
		}
		if tail := s.sizeBytes % t.entrySize; tail != 0 {
			return &CorruptError{Name: t.Name(), Entry: -1, Kind: Torn,
				Reason: fmt.Sprintf("%d bytes are not a multiple of %d", s.sizeBytes, t.entrySize)}
		}
		if limit := t.fullSize(); bounded && limit > 0 && s.sizeBytes > limit {
			return &CorruptError{Name: t.Name(), Entry: -1, Kind: Oversized,
				Reason: fmt.Sprintf("%d bytes are more than %d", s.sizeBytes, limit)}
		}
		return nil
	})
}

func (t *table[E]) checkEntries(s state[E], bad func(i int64, e E) (CorruptKind, string)) error {
	var zero E
	buf := make([]byte, min(s.n, checkChunk)*t.entrySize)
	for i := int64(0); i < s.n; {
		n := min(s.n-i, checkChunk)
		if err := t.readFull(buf[:n*t.entrySize], i*t.entrySize); err != nil {
			return err
		}
		for j := range n {
			e := zero.decode(buf[j*t.entrySize:], t.o.BaseOffset)
			if kind, reason := bad(i+j, e); kind != 0 {
				return &CorruptError{Name: t.Name(), Entry: i + j, Kind: kind, Reason: reason}
			}
		}
		i += n
	}
	return nil
}
