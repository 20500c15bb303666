package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"tidemark/internal/index"
)

// What the first use of a segment costs at most, when nothing vouches for it.
const (
	// fullCheckBytes bounds the segments whose headers are all read and compared with the indexes. Of a larger one the
	// ends are looked at; its entries are compared with the log as they are used.
	fullCheckBytes = 64 << 20
	// deepCheckBytes bounds the index files that are then read whole.
	deepCheckBytes = 64 << 10
)

// ready makes sure, once, that the offset and time index of a segment that was there at the start are right, and
// rebuilds both when one is not.
func (s *Segment) ready() error {
	if s.verified.Load() {
		return nil
	}
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	return s.readyLocked(fullCheckBytes)
}

// readyTxns makes sure that the transaction index tells of every aborted transaction that ends in the segment.
func (s *Segment) readyTxns() error {
	if s.txnsOK.Load() {
		return nil
	}
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	if s.txnsOK.Load() {
		return nil
	}
	return s.readyLocked(math.MaxInt64)
}

// readyLocked compares a segment of at most so many bytes with its indexes. The caller holds checkMu.
func (s *Segment) readyLocked(most int64) error {
	if err := s.readyEndsLocked(); err != nil {
		return err
	}
	size, err := s.foundSize()
	if err != nil {
		return err
	}
	if !s.compared && size <= most {
		reason, err := s.compare(size)
		if err != nil {
			return err
		}
		if reason != "" {
			return s.rebuildLocked(reason)
		}
		if err := s.settleTxns(); err != nil {
			return err
		}
		s.compared = true
		s.trusted.Store(true)
	}
	s.verified.Store(true)
	return nil
}

// settleTxns rebuilds the transaction index when the batches, all of which were looked at, speak against it.
func (s *Segment) settleTxns() error {
	if s.txnDoubt != "" {
		if err := s.rebuildTxns(s.txnDoubt); err != nil {
			return fmt.Errorf("rebuild transaction index of segment %020d: %w", s.base, err)
		}
		s.txnDoubt = ""
	}
	s.txnsOK.Store(true)
	return nil
}

// foundSize is the length of what was there at the start.
func (s *Segment) foundSize() (int64, error) {
	if s.growing.Load() {
		return s.openSize.Load(), nil
	}
	return s.Size()
}

// readyEnds makes sure that the indexes are in order and end where the log does.
func (s *Segment) readyEnds() error {
	if s.endsOK.Load() {
		return nil
	}
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	return s.readyEndsLocked()
}

func (s *Segment) readyEndsLocked() error {
	if s.endsOK.Load() {
		return nil
	}
	if err := s.trySeal(); err != nil || s.endsOK.Load() {
		return err
	}
	reason, err := s.checkEnds()
	if err != nil {
		return err
	}
	if reason != "" {
		return s.rebuildLocked(reason)
	}
	s.endsOK.Store(true)
	return nil
}

// checkEnds says what is wrong with the indexes, at a glance; "" for nothing.
func (s *Segment) checkEnds() (string, error) {
	if s.distrusted.Load() {
		return reasonEnded, nil
	}
	if !s.has(HasIndex) {
		return "the offset index is missing", nil
	}
	if !s.has(HasTime) {
		return "the time index is missing", nil
	}
	if err := errors.Join(s.checkOffsets(), s.checkTimes()); err != nil {
		if errors.As(err, new(*index.CorruptError)) || errors.Is(err, fs.ErrNotExist) {
			return err.Error(), nil
		}
		return "", err
	}
	size, err := s.Size()
	if err != nil {
		return "", err
	}
	e, ok, err := s.files().offsets.Last()
	if err != nil {
		return "", err
	}
	if !ok && size > fullCheckBytes {
		return reasonEmpty, nil
	}
	if ok {
		fits, err := s.fits(e, size)
		if err != nil {
			return "", err
		}
		if !fits || e.Pos >= size {
			return fmt.Sprintf("the last offset index entry (%d, %d) points at no batch of that offset", e.Offset, e.Pos), nil
		}
	}
	return s.checkLargest(size)
}

// checkLargest compares the last time index entry with its batch and with all that lie behind.
func (s *Segment) checkLargest(size int64) (string, error) {
	f := s.files()
	last, ok, err := f.times.Last()
	if err != nil {
		return "", err
	}
	at, found, err := f.offsets.Lookup(last.Offset)
	if err != nil {
		return "", err
	}
	if !ok {
		at.Pos = 0
	} else if found {
		if fits, err := s.fits(at, size); err != nil || !fits {
			return fmt.Sprintf("the offset index entry (%d, %d) points at no batch of that offset", at.Offset, at.Pos), err
		}
	}
	sc := s.scanWith(at.Pos, size, walk{tail: true})
	defer sc.close()
	largest := last
	for met := !ok; sc.next(); {
		if sc.h.MaxTimestamp > largest.Timestamp {
			largest = index.TimeEntry{Timestamp: sc.h.MaxTimestamp, Offset: sc.h.LastOffset}
		}
		switch {
		case !met && sc.h.LastOffset < last.Offset:
			continue
		case !met:
			met = true
			if sc.h.MaxTimestamp != last.Timestamp {
				return fmt.Sprintf("the last time index entry (%d, %d) is of no batch", last.Timestamp, last.Offset), nil
			}
		case sc.h.MaxTimestamp > last.Timestamp && s.CanHold(sc.h.LastOffset):
			return fmt.Sprintf("timestamp %d lies behind the last time index entry (%d, %d)",
				sc.h.MaxTimestamp, last.Timestamp, last.Offset), nil
		}
	}
	if ok && sc.batches == 0 {
		return "the last time index entry lies behind the log", nil
	}
	if err := notDamage(sc.Err()); err != nil {
		return "", err
	}
	s.setMax(largest)
	return "", nil
}

// Distrust has the indexes rebuilt at their first use unless a seal vouches for them. It is for a segment that was
// ended just before a power loss: the closing time index entry may not have reached the disk.
func (s *Segment) Distrust() { s.distrusted.Store(true) }

func (s *Segment) checkOffsets() error {
	f := s.files()
	size, err := s.Size()
	if err != nil {
		return err
	}
	n, err := f.offsets.Len()
	if err != nil {
		return err
	}
	if n*index.OffsetEntrySize <= deepCheckBytes {
		return tolerate(f.offsets.Check(index.CheckOptions{LogSizeBytes: size}))
	}
	return checkRise(n, f.offsets.Name(), f.offsets.Entry, func(a, b index.OffsetEntry) bool {
		return b.Offset > a.Offset && b.Pos > a.Pos && b.Pos < size
	})
}

func (s *Segment) checkTimes() error {
	f := s.files()
	n, err := f.times.Len()
	if err != nil {
		return err
	}
	if n*index.TimeEntrySize <= deepCheckBytes {
		return tolerate(f.times.Check(index.CheckOptions{}))
	}
	return checkRise(n, f.times.Name(), f.times.Entry, func(a, b index.TimeEntry) bool {
		return b.Timestamp > a.Timestamp && b.Offset >= a.Offset
	})
}

// checkRise looks whether the last entries of a large index rise, and lie above the first.
func checkRise[E any](n int, name string, entry func(int) (E, error), rises func(a, b E) bool) error {
	prev, err := entry(0)
	if err != nil {
		return err
	}
	for i := n - 16; i < n; i++ {
		e, err := entry(i)
		if err != nil {
			return err
		}
		if !rises(prev, e) {
			return &index.CorruptError{
				Name: name, Entry: int64(i), Kind: index.NotIncreasing, Reason: fmt.Sprintf("%v after %v", e, prev),
			}
		}
		prev = e
	}
	return nil
}

// tolerate passes an index that is larger than the topic now allows: it was made under another segment.index.bytes.
func tolerate(err error) error {
	var damaged *index.CorruptError
	if errors.As(err, &damaged) && damaged.Kind == index.Oversized {
		return nil
	}
	return err
}

// TxnsReady reports whether the transaction index is known to be right.
func (s *Segment) TxnsReady() bool { return s.txnsOK.Load() }

// SetOpenTxn keeps what [Segment.OpenTxn] returns.
func (s *Segment) SetOpenTxn(first int64) { s.openTxn.Store(&first) }

// OpenTxn is the first offset of the oldest transaction that was open at the start of the segment, as the log has
// found out; false before that.
func (s *Segment) OpenTxn() (first int64, known bool) {
	if p := s.openTxn.Load(); p != nil {
		return *p, true
	}
	return 0, false
}
