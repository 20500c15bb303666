package segment

import (
	"errors"
	"io"
	"io/fs"

	"tidemark/internal/index"
)

// claimBytes is how much of the end of a time index Claim reads.
const claimBytes = 4096 / index.TimeEntrySize * index.TimeEntrySize

// Claim is what the time index of a segment that takes no more appends says of its largest timestamp, at the cost of
// one small read and without a look at the log. next is the base offset of the segment behind it.
//
// plain says that the claim agrees with itself: the last entries rise and the very last one is of the last offset
// before next. Such an index was not cut short and has no zeros at its end; one flipped bit in the last timestamp is
// what it cannot tell. Where plain is false, ts means nothing: ask [Segment.Largest]. Errors are the disk's.
func (s *Segment) Claim(next int64) (ts int64, plain bool, err error) {
	s.maxMu.Lock()
	e, known := s.max, s.maxKnown
	s.maxMu.Unlock()
	if known {
		return e.Timestamp, true, nil
	}
	if !s.has(HasIndex) || !s.has(HasTime) || s.distrusted.Load() {
		return 0, false, nil
	}
	s.mu.Lock()
	name := s.pathLocked(TimeSuffix)
	s.mu.Unlock()
	data, err := s.lastOf(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	last, rises := index.DecodeTimes(data, s.base)
	return last.Timestamp, rises && last.Timestamp >= 0 && last.Offset == next-1, nil
}

// lastOf reads the last bytes of an index; none of one that is torn.
func (s *Segment) lastOf(name string) ([]byte, error) {
	f, err := s.env.Files.FS().Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size()%index.TimeEntrySize != 0 {
		return nil, err
	}
	data := make([]byte, min(info.Size(), claimBytes))
	n, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if n < len(data) && (err == nil || errors.Is(err, io.EOF)) {
		return nil, nil // it was cut meanwhile
	}
	if n == len(data) {
		err = nil
	}
	return data, err
}
