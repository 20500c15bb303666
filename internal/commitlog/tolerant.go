package commitlog

import (
	"errors"
	"fmt"

	"tidemark/internal/checkpoint"
	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// ErrReadOnly is what a log opened with [OpenTolerant] answers to every change, wrapped in [ErrFailed].
var ErrReadOnly = errors.New("log is open for reading only")

// OpenTolerant opens the log in a partition's folder to be looked into, also while a broker has it in use. Nothing on
// disk is changed, and damage is no error: what opening would mend (indexes that are missing or wrong, a replacement of
// segments that was not completed) is mended in memory, and what cannot be read is passed over. The state of producers
// is not loaded: [Log.ActiveProducers] has none, and transactions do not hold back [Log.LastStableOffset].
//
// The log ends at the first bytes of its last segment that are no batch. Errors are the disk's.
func OpenTolerant(o Options) (*Log, error) {
	o.FS, o.Files, o.Pages, o.Clean = vfs.Overlay(o.FS), nil, nil, true
	l := newLog(o)
	if err := l.loadTolerant(); err != nil {
		return nil, fmt.Errorf("open log %s: %w", l.name, err)
	}
	l.failure.Store(&failure{ErrReadOnly})
	return l, nil
}

func (l *Log) loadTolerant() error {
	found, err := l.listTolerant()
	if err != nil {
		return err
	}
	name := l.path(checkpoint.LeaderEpochFile)
	l.epochs, err = checkpoint.OpenLeaderEpochs(l.o.FS, name)
	if errors.As(err, new(*checkpoint.MalformedError)) {
		l.epochs, err = checkpoint.NewLeaderEpochs(l.o.FS, name, nil), nil
	}
	if err != nil {
		return err
	}
	l.producers = l.newProducers(l.o.FS, nil)
	segments := l.openSegments(found)
	end, endPos, err := endOf(segments[len(segments)-1])
	if err != nil {
		return err
	}
	l.view.Store(&view{segments: segments, end: end, endPos: endPos})
	l.start.Store(max(l.o.StartOffset, segments[0].BaseOffset()))
	l.highWatermark.Store(end)
	l.recoveryPoint.Store(min(l.o.RecoveryPoint, end))
	return nil
}

// listTolerant lists the folder as its owner would find it after a start: with one segment at least.
func (l *Log) listTolerant() (*listing, error) {
	found, err := l.list()
	if err != nil {
		return nil, err
	}
	if found, err = l.finishSwap(found); err != nil || len(found.logs) > 0 {
		return found, err
	}
	first, err := segment.Create(l.env, l.o.StartOffset, l.segmentConfig(l.cfg.Load()))
	if err != nil {
		return nil, err
	}
	first.Release()
	return l.list()
}

// endOf is the offset and the position behind the last batch of a log's last segment.
func endOf(last *segment.Segment) (end, pos int64, err error) {
	size, err := last.Size()
	if err != nil {
		return 0, 0, err
	}
	end, pos, _, err = last.End(size)
	return end, pos, err
}

// EachSegment calls a function for each segment of the log in a partition's folder, oldest first, with what
// [Log.Segments] tells of a log opened with [OpenTolerant]; but memory does not grow with the segments, apart from
// their base offsets. It returns where the log starts and ends. It ends with the function's error.
func EachSegment(o Options, each func(SegmentInfo) error) (start, end int64, err error) {
	o.FS, o.Files, o.Pages, o.Clean = vfs.Overlay(o.FS), nil, nil, true
	l := newLog(o)
	found, err := l.listTolerant()
	if err != nil {
		return 0, 0, fmt.Errorf("list log %s: %w", l.name, err)
	}
	start = max(l.o.StartOffset, found.logs[0])
	for i, base := range found.logs {
		info, err := l.lookAt(found, i)
		if err != nil {
			return 0, 0, fmt.Errorf("look at segment %020d: %w", base, err)
		}
		if err := each(info); err != nil {
			return 0, 0, err
		}
		end = info.NextOffset
	}
	return start, end, nil
}

// lookAt describes one segment of a listing.
func (l *Log) lookAt(found *listing, i int) (SegmentInfo, error) {
	s := l.openSegment(found, i)
	defer s.Release()
	size, err := s.Size()
	if err != nil {
		return SegmentInfo{}, err
	}
	next, active := int64(0), i == len(found.logs)-1
	if active {
		if next, size, err = endOf(s); err != nil {
			return SegmentInfo{}, err
		}
	} else {
		next = found.logs[i+1]
	}
	info, err := infoOf(s, size)
	info.NextOffset, info.Active = next, active
	return info, errors.Join(err, s.Rest())
}

// RestSegment closes the files of the segment with a base offset and drops what was mended of it in memory, for one who
// reads a log opened with [OpenTolerant] alone and from front to back. Errors are the disk's.
func (l *Log) RestSegment(base int64) error {
	v := l.view.Load()
	if i := v.floor(base); l.lookedInto() && i >= 0 && i < len(v.segments)-1 && v.segments[i].BaseOffset() == base {
		return v.segments[i].Rest()
	}
	return nil
}

// lookedInto tells whether the log was opened with OpenTolerant.
func (l *Log) lookedInto() bool {
	f := l.failure.Load()
	return f != nil && errors.Is(f.err, ErrReadOnly)
}

// LoadMaxima reads the largest timestamp of every segment, several side by side, so that a look-up of the largest does
// not read them one after another. Errors are the disk's.
func (l *Log) LoadMaxima() error {
	segments := l.view.Load().segments
	return inParallel(len(segments), func(i int) error {
		if _, err := segments[i].Largest(); err != nil || i == len(segments)-1 {
			return err
		}
		return segments[i].Rest()
	})
}

// maximaReaders is how many segments are read at once.
const maximaReaders = 4

// OffsetTrace tells the way of a look-up by offset.
type OffsetTrace struct {
	SegmentBase      int64 // of the segment that holds the batch
	IndexEntryOffset int64 // the offset index entry used; the segment's base before the first
	Position         int64 // where the scan of the log began
	BatchPosition    int64 // where the batch starts
	BatchSizeBytes   int64
	BatchesScanned   int // batch headers looked at, the one found included
	BytesScanned     int64
}

// TraceOffset finds the batch that a read from offset begins with and tells the way there: segment, index entry,
// scan. false: no batch ends at or behind the offset. It is the same search that [Log.Read] makes, made twice.
func (l *Log) TraceOffset(offset int64) (OffsetTrace, bool, error) {
	v := l.view.Load()
	for i := max(v.floor(offset), 0); i < len(v.segments); i++ {
		s := v.segments[i]
		end, err := v.endOf(i)
		if err != nil {
			return OffsetTrace{}, false, err
		}
		found, ok, err := s.Find(offset, end)
		if err != nil && !errors.As(err, new(*record.CorruptError)) {
			return OffsetTrace{}, false, err
		}
		if ok {
			t, err := l.traceIn(s, offset, found)
			return t, err == nil, err
		}
	}
	return OffsetTrace{}, false, nil
}

func (l *Log) traceIn(s *segment.Segment, offset int64, found segment.Location) (OffsetTrace, error) {
	t := OffsetTrace{
		SegmentBase: s.BaseOffset(), IndexEntryOffset: s.BaseOffset(),
		BatchPosition: found.Pos, BatchSizeBytes: found.SizeBytes,
	}
	offsets := index.OpenOffsetIndex(index.Options{
		Files: l.o.Files, Name: l.path(segment.Name(s.BaseOffset(), segment.IndexSuffix)), BaseOffset: s.BaseOffset(),
		MaxSizeBytes: int64(l.cfg.Load().SegmentIndexBytes), ReadOnly: true,
	})
	e, _, err := offsets.Lookup(offset)
	if err != nil {
		return t, err
	}
	t.IndexEntryOffset, t.Position = e.Offset, e.Pos
	sc := record.NewScanner(s.Log(), e.Pos, found.Pos+found.SizeBytes)
	for sc.Next() {
		t.BatchesScanned++
		if sc.Pos() >= found.Pos {
			break
		}
	}
	t.BytesScanned = sc.BytesRead()
	return t, errors.Join(sc.Err(), offsets.Close())
}

// ProducerBatch is the part of a batch that producer state needs to know. entry is read of control batches only. The
// error tells of a control batch whose record makes no sense.
func ProducerBatch(h record.Header, entry []byte) (producerstate.Batch, error) {
	return producerBatch(h, entry)
}
