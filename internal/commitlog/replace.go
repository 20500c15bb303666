package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tidemark/internal/index"
	"tidemark/internal/segment"
)

// ErrChanged is returned by [Log.ReplaceSegments] when the segments to be replaced are no longer those of the log:
// retention or a truncation was there first. Nothing was changed.
var ErrChanged = errors.New("segments of the log have changed")

// Held is a log at one moment, for compaction. Its segments keep their bytes until they are released.
type Held struct {
	Segments   []*segment.Segment // oldest first; the last one is appended to
	Start, End int64              // log start and log end offset
	LastStable int64              // below it every transaction is decided, and nothing above the high watermark lies

	log      *Log
	released int
}

// Hold takes a reference on every segment. The caller must call [Held.Release]. The error is ErrClosed.
func (l *Log) Hold() (*Held, error) {
	for !l.closed.Load() {
		v := l.view.Load()
		h := &Held{
			Segments: v.segments, Start: l.StartOffset(), End: v.end,
			LastStable: l.LastStableOffset(min(l.highWatermark.Load(), v.end)), log: l, released: len(v.segments),
		}
		for i, s := range slices.Backward(v.segments) {
			if !s.Acquire() {
				break
			}
			h.released = i
		}
		if h.released == 0 {
			return h, nil
		}
		h.drop()
		if l.view.Load() == v && l.closed.Load() {
			break
		}
	}
	return nil, ErrClosed
}

// drop releases what was acquired, from the end of the list, when not all could be.
func (h *Held) drop() {
	for _, s := range h.Segments[h.released:] {
		s.Release()
	}
}

// Release lets go of the first n segments, or of all when there are fewer; those released already count.
func (h *Held) Release(n int) {
	for ; h.released < min(n, len(h.Segments)); h.released++ {
		h.Segments[h.released].Release()
	}
}

// Aborted lists the aborted transactions that touch [from, to) and end in segment i or a later one. Errors are the
// disk's.
func (h *Held) Aborted(i int, from, to int64) ([]index.AbortedTxn, error) {
	return h.log.collectAborted(h.Segments[i:], from, to)
}

// LastRecord is what the log remembers of a producer's last batch with data.
type LastRecord struct {
	Offset int64 // the batch's last; -1: there is none
	Epoch  int16 // the producer's
}

// LastRecords tells the last batch of each producer that the log knows, by the producer's id.
func (l *Log) LastRecords() map[int64]LastRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[int64]LastRecord, l.producers.Len())
	for _, e := range l.producers.ActiveProducers() {
		last, _ := e.LastBatch()
		out[e.ProducerID] = LastRecord{Offset: last.LastOffset, Epoch: e.ProducerEpoch}
	}
	return out
}

// NewReplacement makes an empty segment that [Log.ReplaceSegments] may put in the place of others. Its files end in
// .cleaned; a start removes them. Errors are the disk's; tell them to [Log.ReplaceFailed].
func (l *Log) NewReplacement(base int64) (*segment.Segment, error) {
	if l.closed.Load() {
		return nil, ErrClosed
	}
	return segment.CreateCleaned(l.env, base, l.segmentConfig(l.cfg.Load()))
}

// ReplaceFailed takes note of an error of the disk that the making of a replacement met, and returns it as what
// callers see: an error that wraps ErrDiskFull when there was no room, else one that wraps ErrFailed: the log takes no
// more changes. A closed log stays as it is.
func (l *Log) ReplaceFailed(err error) error {
	if l.closed.Load() {
		return ErrClosed
	}
	return l.failUnlessFull("compact "+l.name, err)
}

// ReplaceSegments puts the segments fresh, which [Log.NewReplacement] made and [segment.Segment.Finish] ended, in the
// place of the segments old, which follow each other in the log and are not appended to. All are in order; the first
// of both begin at the same offset. The old ones are removed after file.delete.delay.ms, when their last reader is
// done. Producer snapshots at bases that are gone go, too.
//
// Each step leaves a folder that Kafka and [Open] make whole: up to the renaming of the last .cleaned file nothing has
// happened; from then on the new segments stand and the old ones go. The steps are made durable one by one.
//
// The fresh segments are the log's from the call on, also after an error: it removes them, unless the disk may hold
// them as trusted already; then the next start decides.
//
// Errors: ErrChanged, ErrClosed; those of the disk, as [Log.ReplaceFailed] has them, from the first renaming on as
// ErrFailed.
func (l *Log) ReplaceSegments(old, fresh []*segment.Segment) error {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	if err := l.prepareReplacement(old, fresh); err != nil {
		for _, s := range fresh {
			s.Discard()
		}
		return err
	}
	err := l.offer(fresh)
	if err != nil {
		err = l.fail("compact "+l.name, err)
	} else {
		err = l.putInPlace(old, fresh)
	}
	if err != nil {
		for _, s := range fresh {
			if errors.Is(err, ErrFailed) {
				s.Release()
			} else {
				s.Discard()
			}
		}
		return err
	}
	if err := l.settleReplaced(fresh); err != nil {
		return l.fail("compact "+l.name, err)
	}
	for _, s := range fresh {
		l.seal(s)
	}
	return nil
}

// prepareReplacement makes replacements durable, and removes what earlier attempts left: a start would not trust .swap
// files beside it.
func (l *Log) prepareReplacement(old, fresh []*segment.Segment) error {
	l.mu.Lock()
	err := l.replaceable(old)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	for _, s := range fresh {
		if err := s.Flush(); err != nil {
			return l.ReplaceFailed(err)
		}
	}
	if err := l.removeCleaned(fresh); err != nil {
		return l.ReplaceFailed(err)
	}
	return nil
}

// removeCleaned removes .cleaned files that belong to none of these segments.
func (l *Log) removeCleaned(fresh []*segment.Segment) error {
	found, err := l.list()
	if err != nil {
		return err
	}
	for _, name := range found.others {
		base, _, ok := splitName(name)
		if !ok || !strings.HasSuffix(name, segment.CleanedSuffix) || startsAt(fresh, base) {
			continue
		}
		if err := l.o.FS.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// startsAt reports whether one of the segments has a base offset.
func startsAt(segments []*segment.Segment, base int64) bool {
	return slices.ContainsFunc(segments, func(s *segment.Segment) bool { return s.BaseOffset() == base })
}

// replaceable says why segments cannot be replaced. The caller holds mu.
func (l *Log) replaceable(old []*segment.Segment) error {
	if err := l.writable(); err != nil {
		return err
	}
	if i := l.indexOf(old); i < 0 || i+len(old) >= len(l.view.Load().segments) {
		return ErrChanged
	}
	return nil
}

// indexOf is where in the view these segments are; -1 when they are not there, one behind the other.
func (l *Log) indexOf(some []*segment.Segment) int {
	segments := l.view.Load().segments
	i := slices.Index(segments, some[0])
	if i < 0 || i+len(some) > len(segments) || !slices.Equal(segments[i:i+len(some)], some) {
		return -1
	}
	return i
}

// offer renames the files of replacements from .cleaned to .swap, durably: from here on they are trusted. The highest
// base comes first, for .cleaned files make a start distrust the .swap files of their base and above.
func (l *Log) offer(fresh []*segment.Segment) error {
	for _, s := range slices.Backward(fresh) {
		if err := s.Rename(segment.SwapSuffix); err != nil {
			return err
		}
	}
	return l.o.FS.SyncDir(l.Dir())
}

// putInPlace puts the replacements into the view and marks the old files .deleted. After an error the replacements are
// not in the view.
func (l *Log) putInPlace(old, fresh []*segment.Segment) error {
	l.mu.Lock()
	defer l.unlock()
	if err := l.replaceable(old); err != nil {
		return errors.Join(err, l.withdraw(fresh))
	}
	for _, s := range old {
		if err := l.dropReplaced(s, fresh); err != nil {
			return l.fail("compact "+l.name, err)
		}
		l.skipped.Delete(s.BaseOffset())
	}
	v := *l.view.Load()
	i := l.indexOf(old)
	limits := append(slices.Clone(fresh[1:]), v.segments[i+len(old)])
	for n, s := range fresh {
		s.SetLimit(limits[n].BaseOffset())
	}
	v.segments = slices.Concat(v.segments[:i], fresh, v.segments[i+len(old):])
	v.cuts++
	l.view.Store(&v)
	l.o.Metrics.SegmentsCompacted.Add(int64(len(old)))
	return nil
}

// dropReplaced dooms a segment, and its producer snapshot unless a replacement begins there.
func (l *Log) dropReplaced(s *segment.Segment, fresh []*segment.Segment) error {
	if startsAt(fresh, s.BaseOffset()) {
		return l.doom(s)
	}
	return l.dropSegment(s)
}

// withdraw takes back an offer, before anything was done to the old segments.
func (l *Log) withdraw(fresh []*segment.Segment) error {
	var err error
	for _, s := range fresh {
		err = errors.Join(err, s.Rename(segment.CleanedSuffix))
	}
	if err = errors.Join(err, l.o.FS.SyncDir(l.Dir())); err != nil {
		return l.fail("compact "+l.name, err)
	}
	return nil
}

// settleReplaced gives replacements their plain names, after it is durable that the old files have others.
func (l *Log) settleReplaced(fresh []*segment.Segment) error {
	if err := l.o.FS.SyncDir(l.Dir()); err != nil {
		return err
	}
	for _, s := range fresh {
		if err := s.Rename(""); err != nil {
			return fmt.Errorf("put segment %020d in place: %w", s.BaseOffset(), err)
		}
	}
	return l.o.FS.SyncDir(l.Dir())
}
