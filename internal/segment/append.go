package segment

import (
	"fmt"
	"math"

	"tidemark/internal/index"
	"tidemark/record"
)

// Batch is what the indexes need to know of one batch that was written.
type Batch struct {
	LastOffset   int64
	MaxTimestamp int64 // ms, as in the batch
	Pos          int64 // where the batch starts
	SizeBytes    int64
}

// Write appends whole batches at the end of the segment and returns where. largestTs is the largest MaxTimestamp
// among them. [Segment.Index] is then to be called for each. After an error the end of the file is not defined; the
// segment takes no more.
func (s *Segment) Write(batches []byte, largestTs int64) (pos int64, err error) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	pos, err = s.Size()
	if err != nil {
		return 0, err
	}
	if pos+int64(len(batches)) > math.MaxInt32 {
		return 0, fmt.Errorf("append to segment %020d: %d bytes do not fit behind %d", s.base, len(batches), pos)
	}
	f := s.files()
	if err := s.makeOffsetIndex(f); err != nil {
		return 0, err
	}
	s.dirty.Store(true)
	if _, err := f.log.WriteAt(batches, pos); err != nil {
		return 0, err
	}
	if pos == 0 {
		s.firstTs, s.firstTsKnown = largestTs, true
	}
	s.size.Store(pos + int64(len(batches)))
	return pos, nil
}

func (s *Segment) makeOffsetIndex(f *files) error {
	if s.has(HasIndex) {
		return nil
	}
	if err := f.offsets.Grow(); err != nil {
		return err
	}
	s.found(HasIndex)
	return nil
}

// Index notes a batch that was written: the running largest timestamp, and an entry in both indexes when more than
// the interval was written since the last one.
//
// Kafka: the entry holds the batch's last offset and its start, so the first batch of a segment never has one; the
// time index gets the largest timestamp so far with the last offset of the batch that brought it.
func (s *Segment) Index(b Batch) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.indexedTo, s.nextBatch = b.Pos+b.SizeBytes, b.LastOffset+1
	largest := s.raiseMax(b)
	if s.accBytes > s.cfg.IndexIntervalBytes {
		f := s.files()
		if err := f.offsets.Append(b.LastOffset, b.Pos); err != nil {
			return err
		}
		if _, err := f.times.Append(largest.Timestamp, largest.Offset, false); err != nil {
			return err
		}
		s.accBytes = 0
	}
	s.accBytes += b.SizeBytes
	return nil
}

func (s *Segment) raiseMax(b Batch) index.TimeEntry {
	s.maxMu.Lock()
	defer s.maxMu.Unlock()
	if b.MaxTimestamp > s.max.Timestamp {
		s.max = index.TimeEntry{Timestamp: b.MaxTimestamp, Offset: b.LastOffset}
	}
	return s.max
}

// Roll is what decides about rolling, besides the segment itself.
type Roll struct {
	SizeBytes    int64 // of the batches to come
	MaxTimestamp int64 // ms, the largest among them
	LastOffset   int64
	SegmentBytes int64
	SegmentMs    int64
	NowMs        int64
}

// ShouldRoll reports whether batches must go into a new segment.
func (s *Segment) ShouldRoll(r Roll) (bool, error) {
	size, err := s.Size()
	if err != nil {
		return false, err
	}
	if size > r.SegmentBytes-r.SizeBytes || !s.CanHold(r.LastOffset) {
		return true, nil
	}
	if size > 0 {
		waited, err := s.waitedMs(r)
		if err != nil || waited > r.SegmentMs-s.cfg.JitterMs {
			return true, err
		}
	}
	f := s.files()
	if full, err := f.offsets.IsFull(); full || err != nil {
		return full, err
	}
	return f.times.IsFull()
}

// CanHold reports whether an offset can be told from the base in 31 bits.
func (s *Segment) CanHold(offset int64) bool {
	return offset >= s.base && offset-s.base <= math.MaxInt32
}

// waitedMs is the age of the segment in record time, or by the clock when its first timestamp is negative.
func (s *Segment) waitedMs(r Roll) (int64, error) {
	first, err := s.FirstTimestamp()
	if err != nil {
		return 0, err
	}
	if first >= 0 {
		return r.MaxTimestamp - first, nil
	}
	return r.NowMs - s.createdMs, nil
}

// FirstTimestamp is the largest timestamp of the first append, or of the first batch when the segment was there at
// the start; -1 when there is none. The writer's.
func (s *Segment) FirstTimestamp() (int64, error) {
	if s.firstTsKnown {
		return s.firstTs, nil
	}
	size, err := s.Size()
	if err != nil || size == 0 {
		return -1, err
	}
	sc := s.scan(0, size)
	defer sc.close()
	if !sc.next() {
		return -1, sc.Err()
	}
	s.firstTs, s.firstTsKnown = sc.h.MaxTimestamp, true
	return s.firstTs, nil
}

// Grow makes the indexes of an opened segment fit for appends: full size on disk. next is the log end offset. accBytes
// starts at 0.
//
// Kafka: the bytes since the last index entry are not kept over a restart.
func (s *Segment) Grow(next int64) error {
	if _, err := s.Largest(); err != nil {
		return err
	}
	size, err := s.Size()
	if err != nil {
		return err
	}
	s.openSize.Store(size)
	s.indexedTo, s.nextBatch = size, next
	s.growing.Store(true)
	s.provenFrom(size)
	s.dirty.Store(true)
	f := s.files()
	if err := f.offsets.Grow(); err != nil {
		return err
	}
	s.found(HasIndex | HasTime)
	return f.times.Grow()
}

// Finish ends the appends: the closing time index entry is written, files are cut to their content. A segment that was
// not appended to in this run stays as it is.
func (s *Segment) Finish() error {
	if !s.growing.Load() {
		return nil
	}
	largest, err := s.largestEntry()
	if err != nil {
		return err
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.dirty.Store(true)
	f := s.files()
	if err := s.writeLateTxns(); err != nil {
		return err
	}
	if s.CanHold(largest.Offset) {
		if _, err := f.times.Append(largest.Timestamp, largest.Offset, true); err != nil {
			return err
		}
	}
	if err := s.trimIndexes(f); err != nil {
		return err
	}
	if err := s.trimLog(f); err != nil {
		return err
	}
	s.growing.Store(false)
	return nil
}

func (s *Segment) trimIndexes(f *files) error {
	if s.has(HasIndex) {
		if err := f.offsets.Trim(); err != nil {
			return err
		}
	}
	return f.times.Trim()
}

func (s *Segment) trimLog(f *files) error {
	if !s.prealloc {
		return nil
	}
	size, err := s.Size()
	if err != nil {
		return err
	}
	s.prealloc = false
	return f.log.Truncate(size)
}

// BatchOf is the part of a header that the indexes need.
func BatchOf(h record.Header, pos int64) Batch {
	return Batch{
		LastOffset: h.LastOffset, MaxTimestamp: h.MaxTimestamp,
		Pos: pos, SizeBytes: int64(h.SizeBytes),
	}
}
