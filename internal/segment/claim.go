package segment

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"tidemark/internal/index"
	"tidemark/vfs"
)

// claimBytes is how much of the end of a time index Claim reads.
const claimBytes = 4096 / index.TimeEntrySize * index.TimeEntrySize

var claimBuffers = sync.Pool{New: func() any { return new([claimBytes]byte) }}

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
	buf := claimBuffers.Get().(*[claimBytes]byte)
	defer claimBuffers.Put(buf)
	data, err := s.lastOf(name, buf[:])
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
func (s *Segment) lastOf(name string, buf []byte) ([]byte, error) {
	data, size, err := vfs.ReadEnd(s.env.Files.FS(), name, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && size%index.TimeEntrySize != 0 {
		return nil, nil // torn, or cut meanwhile
	}
	return data, err
}
