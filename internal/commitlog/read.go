package commitlog

import (
	"errors"
	"fmt"
	"io"

	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// Slice is a range of a segment's bytes: whole batches, but for the last one, which may be cut. It stays valid until
// Release, whatever happens to the log.
type Slice struct {
	File        vfs.File // nil when SizeBytes is 0; to be read below Pos + SizeBytes only
	Pos         int64
	SizeBytes   int
	SegmentBase int64 // base offset of the segment, -1 when none was read
	// FirstBatchCut says that not even the first batch is whole: MaxBytes was below its size, and MinOneBatch not set.
	FirstBatchCut bool
	// AbortedTxns are the aborted transactions that a read_committed reader needs to know, by their markers; perhaps
	// some more. nil for ReadUncommitted, not nil for ReadCommitted.
	AbortedTxns []index.AbortedTxn

	segment *segment.Segment
}

// Release ends the use of the bytes. It may be called more than once.
func (s *Slice) Release() {
	if s.segment == nil {
		return
	}
	s.segment.Unpin()
	s.segment.Release()
	s.segment, s.File = nil, nil
}

// AppendTo reads the bytes and appends them to dst.
func (s *Slice) AppendTo(dst []byte) ([]byte, error) {
	if s.SizeBytes == 0 {
		return dst, nil
	}
	have := len(dst)
	dst = append(dst, make([]byte, s.SizeBytes)...)
	if n, err := s.File.ReadAt(dst[have:], s.Pos); n < s.SizeBytes {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return dst[:have], fmt.Errorf("read segment %020d: %w", s.SegmentBase, err)
	}
	return dst, nil
}

// Bytes reads the bytes.
func (s *Slice) Bytes() ([]byte, error) { return s.AppendTo(nil) }

// Read returns the batches from the one that holds offset on, or from the next one where compaction left a gap. The
// bytes end with the segment, at the bounds of o or, in the middle of a batch, at MaxBytes. They are not read: the
// caller sends or reads the Slice, and releases it.
//
// An offset in [log start offset, log end offset] at or above UpTo gives an empty slice; another is an
// *[OffsetOutOfRangeError]. At an offset whose batch is damaged the error wraps [ErrCorruptMessage] and a
// *record.CorruptError; reads from before it end there. Other errors are the disk's.
func (l *Log) Read(offset int64, o ReadOptions) (Slice, error) {
	for {
		v := l.view.Load()
		if start := l.StartOffset(); offset < start || offset > v.end {
			return Slice{}, &OffsetOutOfRangeError{Requested: offset, Start: start, End: v.end}
		}
		s, err := l.readView(v, offset, o)
		if !l.outdated(v, err) {
			return s, closedError(err)
		}
		s.Release()
	}
}

func (l *Log) readView(v *view, offset int64, o ReadOptions) (Slice, error) {
	empty := Slice{SegmentBase: -1}
	if o.Isolation == ReadCommitted {
		empty.AbortedTxns = []index.AbortedTxn{}
	}
	upTo := min(o.UpTo, v.end)
	if offset >= upTo {
		return empty, nil
	}
	for i := max(v.floor(offset), 0); i < len(v.segments) && v.segments[i].BaseOffset() < upTo; i++ {
		s, found, err := l.readSegment(v, i, offset, upTo, o)
		if err != nil || found {
			return s, err
		}
	}
	return empty, nil
}

// readSegment reads from segment i. found is false when it holds no batch at or behind offset.
func (l *Log) readSegment(v *view, i int, offset, upTo int64, o ReadOptions) (out Slice, found bool, err error) {
	s := v.segments[i]
	out = Slice{SegmentBase: s.BaseOffset()}
	if !s.Acquire() {
		return out, false, errGone // deleted: the log start offset has moved past it
	}
	defer func() {
		if out.segment == nil {
			s.Release()
		}
	}()
	end, err := v.endOf(i)
	if err != nil {
		return out, false, err
	}
	at, size, err := l.findIn(v, i, offset, upTo, end, o)
	if err != nil || at.SizeBytes == 0 {
		return out, false, err
	}
	if o.Isolation == ReadCommitted {
		if out.AbortedTxns, err = l.aborted(v, i, offset, at.Pos+size); err != nil {
			return out, false, err
		}
	}
	if size == 0 {
		return out, true, nil
	}
	if out.File, err = s.Pin(); err != nil {
		return out, false, err
	}
	out.Pos, out.SizeBytes, out.segment = at.Pos, int(size), s
	out.FirstBatchCut = size < at.SizeBytes
	return out, true, nil
}

// findIn finds the batch of segment i that a read begins with, and how many bytes from there on may be given. The
// batch is empty when there is none.
func (l *Log) findIn(v *view, i int, offset, upTo, end int64, o ReadOptions) (segment.Location, int64, error) {
	s := v.segments[i]
	for bad := int64(-1); ; {
		at, found, err := s.Find(offset, end)
		if err != nil || !found {
			return segment.Location{}, 0, damaged(err)
		}
		visible, err := l.visibleEnd(v, i, upTo, end)
		if err != nil {
			return at, 0, err
		}
		size := int64(max(o.MaxBytes, 0))
		if o.MinOneBatch {
			size = max(size, at.SizeBytes)
		}
		size = max(min(size, visible-at.Pos), 0)
		if size == 0 {
			return at, 0, nil
		}
		good, err := s.Prove(at.Pos, at.Pos+size, end)
		if err != nil {
			return at, 0, err
		}
		if good > at.Pos {
			return at, good - at.Pos, nil
		}
		if at.Pos == bad {
			return at, 0, damaged(&record.CorruptError{
				File: s.LogName(), Pos: at.Pos, Offset: at.BaseOffset, Reason: "the batch cannot be read",
			})
		}
		bad = at.Pos // and Find knows it by now
	}
}

// damaged marks the error of a read that found damage.
func damaged(err error) error {
	if errors.As(err, new(*record.CorruptError)) {
		return fmt.Errorf("%w: %w", ErrCorruptMessage, err)
	}
	return err
}

// visibleEnd is where in segment i the first batch that reaches upTo starts; end when there is none.
func (l *Log) visibleEnd(v *view, i int, upTo, end int64) (int64, error) {
	if upTo >= v.end || (i+1 < len(v.segments) && v.segments[i+1].BaseOffset() <= upTo) {
		return end, nil
	}
	at, found, err := v.segments[i].Find(upTo, end)
	var c *record.CorruptError
	if errors.As(err, &c) && c.Pos >= 0 { // the bound lies in damage
		return min(c.Pos, end), nil
	}
	if err != nil || !found {
		return end, err
	}
	return at.Pos, nil
}
