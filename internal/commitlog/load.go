package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/vfs"
)

// Open opens the log in a partition's folder, making an empty one when there is none; the folder itself must be
// there. After a clean stop it lists the folder and looks at the last segment only. Otherwise every batch from the
// segment that holds the recovery point on is read and checked: the log ends behind the last good one. What lies there
// is kept in cut-* files. Errors are the disk's and *checkpoint.MalformedError.
func Open(o Options) (*Log, error) {
	l := newLog(o)
	if err := l.load(); err != nil {
		for _, s := range l.opened {
			s.Release()
		}
		return nil, fmt.Errorf("open log %s: %w", l.name, err)
	}
	l.opened = nil
	return l, nil
}

// listing is what one reading of the folder showed.
type listing struct {
	logs      []int64 // base offsets with a .log, ascending
	present   map[int64]segment.Present
	snapshots []int64
	others    []string // the other names
}

var indexKinds = map[string]segment.Present{
	segment.IndexSuffix: segment.HasIndex, segment.TimeSuffix: segment.HasTime, segment.TxnSuffix: segment.HasTxn,
}

func (l *Log) list() (*listing, error) {
	found := &listing{present: make(map[int64]segment.Present)}
	err := vfs.EachEntry(l.o.FS, l.Dir(), func(e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		base, kind, ok := splitName(e.Name())
		switch {
		case !ok:
			found.others = append(found.others, e.Name())
		case indexKinds[kind] != 0:
			found.present[base] |= indexKinds[kind]
		case kind == segment.LogSuffix:
			found.logs = append(found.logs, base)
		case kind == producerstate.SnapshotSuffix:
			found.snapshots = append(found.snapshots, base)
		default:
			found.others = append(found.others, e.Name())
		}
		return nil
	})
	slices.Sort(found.logs)
	slices.Sort(found.snapshots)
	slices.Sort(found.others)
	return found, err
}

// splitName takes a name of digits and a suffix apart.
func splitName(name string) (base int64, kind string, ok bool) {
	digits, _, found := strings.Cut(name, ".")
	if !found {
		return 0, "", false
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || base < 0 || len(digits) != 20 || digits[0] == '+' {
		return 0, "", false
	}
	return base, name[len(digits):], true
}

// load does all of Open.
func (l *Log) load() error {
	found, err := l.list()
	if err != nil {
		return err
	}
	if found, err = l.finishSwap(found); err != nil {
		return err
	}
	if err := l.removeOrphans(found); err != nil {
		return err
	}
	if err := l.makeSmallFiles(found); err != nil {
		return err
	}
	l.epochs, err = checkpoint.OpenLeaderEpochs(l.o.FS, l.path(checkpoint.LeaderEpochFile))
	if err != nil {
		return err
	}
	l.producers = l.newProducers(l.o.FS, found.snapshots)
	segments := l.openSegments(found)
	l.opened = segments
	if !l.o.Clean {
		if segments, err = l.recoverSegments(segments); err != nil {
			return err
		}
	}
	return l.settle(segments)
}

// makeSmallFiles writes partition.metadata and an empty leader-epoch-checkpoint into a folder that has none, so that
// the topic id is on disk before any data is. In a new folder both names become durable with the first flush of data,
// which syncs the folder.
func (l *Log) makeSmallFiles(found *listing) error {
	if !slices.Contains(found.others, checkpoint.PartitionMetadataFile) && l.o.TopicID != [16]byte{} {
		write := checkpoint.WritePartitionMetadata
		if len(found.logs) == 0 {
			write = checkpoint.AddPartitionMetadata
		}
		if err := write(l.o.FS, l.path(checkpoint.PartitionMetadataFile), l.o.TopicID); err != nil {
			return err
		}
	}
	if slices.Contains(found.others, checkpoint.LeaderEpochFile) {
		return nil
	}
	f, err := l.o.FS.OpenFile(l.path(checkpoint.LeaderEpochFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (l *Log) openSegments(found *listing) []*segment.Segment {
	out := make([]*segment.Segment, len(found.logs), len(found.logs)+1)
	for i := range found.logs {
		out[i] = l.openSegment(found, i)
	}
	return out
}

// openSegment makes the segment of the i-th log of a listing, without looking at it.
func (l *Log) openSegment(found *listing, i int) *segment.Segment {
	c := l.segmentConfig(l.cfg.Load())
	c.PreallocateBytes = 0
	s := segment.Open(l.env, found.logs[i], c, found.present[found.logs[i]])
	if i+1 < len(found.logs) {
		s.SetLimit(found.logs[i+1])
	}
	return s
}

// settle finds the ends of a log whose segments are in order, and makes the last one fit for appends.
func (l *Log) settle(segments []*segment.Segment) error {
	end, endPos, err := l.findEnd(segments)
	if err != nil {
		return err
	}
	if end < l.o.StartOffset {
		l.o.Logger.Warn("the log ends before its start offset; its segments are kept aside",
			"end", end, "start", l.o.StartOffset)
		if segments, err = l.setAsideAll(segments); err != nil {
			return err
		}
		l.epochs.Clear()
	}
	if len(segments) == 0 {
		first, err := segment.Create(l.env, l.o.StartOffset, l.segmentConfig(l.cfg.Load()))
		if err != nil {
			return err
		}
		segments, end, endPos = append(segments, first), l.o.StartOffset, 0
	}
	l.opened = segments
	l.view.Store(&view{segments: segments, end: end, endPos: endPos})
	l.start.Store(max(l.o.StartOffset, segments[0].BaseOffset()))
	l.highWatermark.Store(l.start.Load())
	l.recoveryPoint.Store(min(l.o.RecoveryPoint, end))
	if l.o.Clean {
		l.recoveryPoint.Store(end)
	}
	if err := segments[len(segments)-1].Grow(end); err != nil {
		return err
	}
	l.epochs.TruncateFromEnd(end)
	l.epochs.TruncateFromStart(l.o.StartOffset)
	if err := l.epochs.Flush(); err != nil {
		return err
	}
	if err := l.sealRecovered(segments[:len(segments)-1]); err != nil {
		return err
	}
	return l.loadProducers(end)
}

// sealRecovered seals the segments that recovery proved. Older seals of theirs must not be taken for true: where the
// new ones cannot be stored, all go.
func (l *Log) sealRecovered(segments []*segment.Segment) error {
	for _, s := range segments {
		if !s.Proven() {
			continue
		}
		if l.seal(s); s.Sealed() {
			continue
		}
		err := l.o.FS.Remove(l.path(SealsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l.seals.forget()
	}
	return nil
}

// findEnd is the log end offset and the length of the last segment. Bytes behind the last batch, which are found after
// a clean stop only if somebody else wrote them, have the last segment recovered.
func (l *Log) findEnd(segments []*segment.Segment) (end, endPos int64, err error) {
	if len(segments) == 0 {
		return l.o.StartOffset, 0, nil
	}
	last := segments[len(segments)-1]
	size, err := last.Size()
	if err != nil {
		return 0, 0, err
	}
	end, endPos, damage, err := last.End(size)
	if err != nil || damage == nil {
		return end, endPos, err
	}
	r, err := l.recoverSegment(last, segments[:len(segments)-1], segments, 0)
	if err != nil {
		return 0, 0, err
	}
	return r.NextOffset, r.SizeBytes, l.cut(last, r)
}

// finishSwap removes what an interrupted deletion or cleaning left, and completes one whose new files were whole.
//
// Kafka: .cleaned files are not trusted, and neither are .swap files from the lowest .cleaned one on, which belong to
// an unfinished split; any other .swap file replaces the segments in its range of offsets.
func (l *Log) finishSwap(found *listing) (*listing, error) {
	leftovers, swaps := l.sortLeftovers(found)
	for _, name := range leftovers {
		l.o.Logger.Info("remove a leftover file", "file", name)
		if err := l.o.FS.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(swaps) == 0 {
		return found, nil
	}
	from, to, err := l.swapRange(swaps)
	if err != nil {
		return nil, err
	}
	all, err := l.o.FS.ReadDir(l.Dir())
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		name := e.Name()
		base, _, ok := splitName(name)
		if !ok || e.IsDir() || base < from || base >= to || strings.HasSuffix(name, segment.SwapSuffix) ||
			slices.Contains(leftovers, name) {
			continue
		}
		l.o.Logger.Info("remove a file that was replaced", "file", name)
		if err := l.o.FS.Remove(l.path(name)); err != nil {
			return nil, err
		}
	}
	for _, name := range swaps {
		l.o.Logger.Info("complete a replacement", "file", name)
		if err := l.o.FS.Rename(l.path(name), l.path(strings.TrimSuffix(name, segment.SwapSuffix))); err != nil {
			return nil, err
		}
	}
	if err := l.o.FS.SyncDir(l.Dir()); err != nil {
		return nil, err
	}
	return l.list()
}

// sortLeftovers tells files to remove from .swap files to complete.
func (l *Log) sortLeftovers(found *listing) (leftovers, swaps []string) {
	lowestCleaned := int64(-1)
	for _, name := range found.others {
		if !strings.HasSuffix(name, segment.CleanedSuffix) {
			continue
		}
		if base, _, ok := splitName(name); ok {
			if lowestCleaned < 0 || base < lowestCleaned {
				lowestCleaned = base
			}
		}
	}
	for _, name := range found.others {
		if !isLeftover(name) { // most are not
			continue
		}
		base, _, numbered := splitName(name)
		switch {
		case isTemporary(name), numbered && strings.HasSuffix(name, segment.CleanedSuffix):
			leftovers = append(leftovers, name)
		case strings.HasSuffix(name, segment.DeletedSuffix):
			if !strings.HasSuffix(name, ".checkpoint.deleted") { // a snapshot of the metadata log
				leftovers = append(leftovers, name)
			}
		case numbered && strings.HasSuffix(name, segment.SwapSuffix):
			if lowestCleaned >= 0 && base >= lowestCleaned {
				leftovers = append(leftovers, name)
			} else {
				swaps = append(swaps, name)
			}
		}
	}
	return leftovers, swaps
}

// isLeftover tells names that may be leftovers by their ends.
func isLeftover(name string) bool {
	return strings.HasSuffix(name, segment.TemporarySuffix) || strings.HasSuffix(name, segment.CleanedSuffix) ||
		strings.HasSuffix(name, segment.DeletedSuffix) || strings.HasSuffix(name, segment.SwapSuffix)
}

// isTemporary recognises the copy of a truncation that did not come to its end.
func isTemporary(name string) bool {
	_, kind, ok := splitName(name)
	return ok && kind == segment.LogSuffix+segment.TemporarySuffix
}

// swapRange is the range of offsets [from, to) that .swap logs cover.
//
// Kafka: an empty one covers nothing there, so that a transaction index of the segment it replaces stays behind.
func (l *Log) swapRange(swaps []string) (from, to int64, err error) {
	from, to = int64(1)<<62, -1
	for _, name := range swaps {
		base, kind, _ := splitName(name)
		if kind != segment.LogSuffix+segment.SwapSuffix {
			continue
		}
		next, err := segment.ScanNextOffset(l.o.Files, l.path(name), base)
		if err != nil {
			return 0, 0, err
		}
		from, to = min(from, base), max(to, next, base+1)
	}
	return from, to, nil
}

// removeOrphans removes index files without a log.
func (l *Log) removeOrphans(found *listing) error {
	for base, p := range found.present {
		if _, ok := slices.BinarySearch(found.logs, base); ok {
			continue
		}
		for kind, has := range indexKinds {
			if p&has == 0 {
				continue
			}
			name := segment.Name(base, kind)
			l.o.Logger.Warn("remove an index file without its log", "file", name)
			if err := l.o.FS.Remove(l.path(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
