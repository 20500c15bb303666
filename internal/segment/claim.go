package segment

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"sync"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// claimBytes is how much of the end of an index Claim reads.
const claimBytes = 4096

var claimBuffers = sync.Pool{New: func() any { return new([claimBytes]byte) }}

// Claim is the largest timestamp of a segment that takes no more appends, as the end of its time index tells and the
// last batch of its log confirms: three small reads, where [Segment.Largest] checks both indexes. next is the base
// offset of the segment behind it.
//
// Where plain is false, ts means nothing: ask [Segment.Largest]. It is true when the last entries of the time index
// rise, the very last one is of the last offset before next, and the batch of that offset has its timestamp. Such an
// index was not cut short, has no zeros at its end, and a changed last timestamp would not be that of the batch. A
// claim of least or more is not confirmed. Errors are the disk's.
func (s *Segment) Claim(next, least int64) (ts int64, plain bool, err error) {
	s.maxMu.Lock()
	e, known := s.max, s.maxKnown
	s.maxMu.Unlock()
	if known {
		return e.Timestamp, true, nil
	}
	if !s.has(HasIndex) || !s.has(HasTime) || s.distrusted.Load() {
		return 0, false, nil
	}
	buf := claimBuffers.Get().(*[claimBytes]byte)
	defer claimBuffers.Put(buf)
	data, err := s.lastOf(TimeSuffix, buf[:claimBytes/index.TimeEntrySize*index.TimeEntrySize], index.TimeEntrySize)
	if err != nil || len(data) == 0 {
		return 0, false, err
	}
	last, rises := index.DecodeTimes(data, s.base)
	if !rises || last.Timestamp < 0 || last.Offset != next-1 {
		return 0, false, nil
	}
	if last.Timestamp >= least {
		return last.Timestamp, true, nil
	}
	plain, err = s.confirm(last, buf[:])
	return last.Timestamp, plain, err
}

// confirm looks whether the batch of a time index entry, which is the last one of the log, has its timestamp.
func (s *Segment) confirm(last index.TimeEntry, buf []byte) (bool, error) {
	data, err := s.lastOf(IndexSuffix, buf, index.OffsetEntrySize)
	if err != nil {
		return false, err
	}
	pos := int64(0)
	if n := len(data) - index.OffsetEntrySize; n >= 0 {
		pos = int64(binary.BigEndian.Uint32(data[n+4:]))
	}
	fsys, name := s.env.Files.FS(), s.path(LogSuffix)
	for range confirmBatches {
		n, err := vfs.ReadPart(fsys, name, buf[:record.HeaderSize], pos)
		if err != nil {
			return false, err
		}
		h, err := record.ParseHeader(buf[:n])
		if err != nil || h.LastOffset >= last.Offset {
			return err == nil && h.LastOffset == last.Offset && h.MaxTimestamp == last.Timestamp, nil
		}
		pos += int64(h.SizeBytes)
	}
	return false, nil
}

// confirmBatches is how many batches may lie behind the last entry of an offset index.
const confirmBatches = 128

// lastOf reads the last bytes of an index; none of one that is torn or gone.
func (s *Segment) lastOf(suffix string, buf []byte, width int64) ([]byte, error) {
	data, size, err := vfs.ReadEnd(s.env.Files.FS(), s.path(suffix), buf)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && size%width != 0 {
		return nil, nil // torn, or cut meanwhile
	}
	return data, err
}

// path is a file of the segment.
func (s *Segment) path(suffix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pathLocked(suffix)
}
