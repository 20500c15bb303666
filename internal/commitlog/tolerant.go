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
	found, err := l.list()
	if err != nil {
		return err
	}
	if found, err = l.finishSwap(found); err != nil {
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
	if len(segments) == 0 {
		first, err := segment.Create(l.env, l.o.StartOffset, l.segmentConfig(l.cfg.Load()))
		if err != nil {
			return err
		}
		segments = append(segments, first)
	}
	last := segments[len(segments)-1]
	size, err := last.Size()
	if err != nil {
		return err
	}
	end, endPos, _, err := last.End(size)
	if err != nil {
		return err
	}
	l.view.Store(&view{segments: segments, end: end, endPos: endPos})
	l.start.Store(max(l.o.StartOffset, segments[0].BaseOffset()))
	l.highWatermark.Store(end)
	l.recoveryPoint.Store(min(l.o.RecoveryPoint, end))
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
		_, err := segments[i].Largest()
		return err
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
