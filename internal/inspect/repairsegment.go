package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/bits"
	"os"
	"slices"
	"time"

	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// logRepair is the repair of one segment.
type logRepair struct {
	p       *partitionPlan
	r       *segmentReport
	name    string // of the .log
	file    vfs.File
	size    int64
	without [][2]int64
	kept    [][2]int64 // bytes to keep in cut files
	patches []patch
}

// indexKinds are the findings that a rebuild of the indexes answers.
var indexKinds = []Kind{
	IndexMissing, IndexTorn, IndexZeros, IndexEntry, IndexSparse, TimeMissing, TimeTorn, TimeZeros, TimeEntryWrong,
	TimeShort,
	TxnTorn, TxnMissing, TxnEntryWrong, SegmentEmpty,
}

// logKinds are the findings about the log that a repair may answer.
var logKinds = []Kind{BadBatch, BadChecksum, TornTail, ZeroTail, GarbageTail, OffsetOrder, OffsetRange, OffsetGap,
	EpochsWrong}

// planSegment decides what becomes of segment i.
func (p *partitionPlan) planSegment(r *segmentReport, i int) error {
	odd := p.has(-1, OffsetOrder, OffsetGap, OffsetRange)
	if len(r.ranges) == 0 && len(r.oddEpochs) == 0 && !odd && !p.has(r.base, indexKinds...) || len(r.ranges) > maxRanges {
		return nil
	}
	l := &logRepair{p: p, r: r, name: p.path(segment.Name(r.base, segment.LogSuffix))}
	f, err := p.fs.Open(l.name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	l.file, l.size = f, info.Size()
	if err := l.decideRanges(); err != nil {
		return err
	}
	behind := func(w [2]int64) bool { return w[1] < l.size || p.folder.nextBase(i) >= 0 }
	if p.target.isMetadata() && slices.ContainsFunc(l.without, behind) {
		return nil // what is behind builds on it
	}
	if odd {
		l.decideOffsets(p.folder.nextBase(i))
	}
	l.decideEpochs()
	changed := len(l.without)+len(l.patches) > 0
	if !changed && !p.has(r.base, indexKinds...) {
		return nil
	}
	built, err := l.rebuild(newLogView(f, l.size, l.without, l.patches), i)
	if err != nil || built == nil {
		return err
	}
	if changed {
		l.planLog()
	}
	l.planIndexes(built, changed)
	return nil
}

// decideRanges restores each bad part, or leaves it out.
func (l *logRepair) decideRanges() error {
	for _, b := range l.r.ranges {
		if !b.zeros && b.to-b.from <= maxDecoded {
			entry := make([]byte, b.to-b.from)
			if n, err := l.file.ReadAt(entry, b.from); n < len(entry) {
				return errors.Join(err, io.ErrUnexpectedEOF)
			}
			if patches, ok := b.restore(entry); ok {
				l.patches = append(l.patches, patches...)
				l.kept = append(l.kept, [2]int64{b.from, b.to})
				continue
			}
		}
		l.without = append(l.without, [2]int64{b.from, b.to})
		if !b.zeros {
			l.kept = append(l.kept, [2]int64{b.from, b.to})
		}
	}
	return nil
}

// restore undoes the damage of a batch, when what comes out has offsets that can be there. The base offset is not
// covered by the checksum: where it is wrong, it must join the batch before to the one behind.
func (b *badRange) restore(entry []byte) ([]patch, bool) {
	c, ok := restoreBatch(entry, b.from)
	if !ok {
		return nil, false
	}
	copy(entry[c.pos-b.from:], c.data)
	h, err := record.ParseHeader(entry)
	if err != nil {
		return nil, false
	}
	delta := h.LastOffset - h.BaseOffset
	switch {
	case h.BaseOffset >= b.least && h.LastOffset <= b.most:
		return []patch{c}, true
	case b.alone && b.least+delta == b.most:
		offset := patch{b.from, binary.BigEndian.AppendUint64(nil, uint64(b.least)), "the base offset that joins it to its " +
			"neighbours"}
		return []patch{offset, c}, true
	}
	return nil, false
}

// decideEpochs restores leader epochs that differ by one bit from the checkpoint, where all others agree with it.
func (l *logRepair) decideEpochs() {
	for _, e := range l.r.oddEpochs {
		if bits.OnesCount32(uint32(e.got^e.want)) != 1 || int64(len(l.r.oddEpochs)) > 1+l.r.batches/4 {
			return
		}
	}
	for _, e := range l.r.oddEpochs {
		if slices.ContainsFunc(l.patches, func(c patch) bool { return c.pos == e.pos }) {
			continue // its offset was wrong, not its epoch
		}
		l.patches = append(l.patches, patch{
			e.pos + 12, binary.BigEndian.AppendUint32(nil, uint32(e.want)),
			"the one flipped bit of the leader epoch",
		})
		l.kept = append(l.kept, [2]int64{e.pos, e.pos + record.HeaderSize})
		l.p.epochs = true
	}
}

// decideOffsets restores base offsets that do not fit between those of the batches before and behind, where only one
// offset does, or only one with a single flipped bit.
func (l *logRepair) decideOffsets(nextBase int64) {
	type placed struct {
		record.Header
		pos int64
	}
	var cur placed
	expected := l.r.base
	judge := func(next int64) {
		length := cur.LastOffset - cur.BaseOffset + 1
		right, ok := flippedOffset(cur.BaseOffset, expected, next-length)
		if next < 0 { // nothing is behind it: an offset that can be there may be right, and of the others only one is sure
			ok = cur.BaseOffset < expected || cur.LastOffset > l.r.base+math.MaxInt32
			right, ok = expected, ok && bits.OnesCount64(uint64(cur.BaseOffset^expected)) == 1 && !l.p.compacted()
		}
		if cur.Magic < 2 && cur.Codec() != record.None || !ok {
			expected = cur.LastOffset + 1
			return
		}
		l.patches = append(l.patches, patch{cur.pos, binary.BigEndian.AppendUint64(nil, uint64(right)),
			"the base offset"})
		l.kept = append(l.kept, [2]int64{cur.pos, cur.pos + record.HeaderSize})
		expected = right + length
	}
	sc := record.NewScanner(l.file, 0, l.size)
	for sc.Next() {
		if cur.SizeBytes > 0 {
			judge(sc.Header().BaseOffset)
		}
		cur = placed{sc.Header(), sc.Pos()}
	}
	if cur.SizeBytes > 0 && sc.Err() == nil {
		judge(nextBase)
	}
}

// flippedOffset finds the one offset in [least, most] that an offset outside may have been: the only one there is, or
// the only one that differs in one bit.
func flippedOffset(offset, least, most int64) (right int64, ok bool) {
	switch {
	case offset >= least && offset <= most:
		return offset, false
	case least == most:
		return least, true
	}
	n := 0
	for bit := range 63 {
		if o := offset ^ 1<<bit; o >= least && o <= most {
			right, n = o, n+1
		}
	}
	if o := offset ^ math.MinInt64; o >= least && o <= most {
		right, n = o, n+1
	}
	return right, n == 1
}

// rebuild recovers the log as it will be, in memory, with the code that a broker recovers with; nil when that does not
// accept the log: it is then not improved.
func (l *logRepair) rebuild(view *logView, i int) (map[string][]byte, error) {
	fsys := newViewFS(l.p.fs, l.name, view)
	env := &segment.Env{
		Files: index.NewFileCache(fsys, 8), Logger: slog.New(slog.DiscardHandler), Metrics: new(segment.Metrics),
		Clock: func() time.Time { return time.Time{} },
	}
	env.SetDir(l.p.target.Dir)
	s := segment.Open(env, l.r.base, segment.Config{
		IndexIntervalBytes: int64(l.p.cfg.IndexIntervalBytes), MaxIndexBytes: int64(l.p.cfg.SegmentIndexBytes),
	}, l.p.folder.files[l.r.base].indexes())
	defer s.Release()
	state, known, err := l.producers(i)
	if err != nil {
		return nil, err
	}
	recovered, err := s.Recover(false, 0, func(h record.Header, entry func() ([]byte, error)) error {
		if !known || h.Magic < 2 || !h.HasProducerID() {
			return nil
		}
		var data []byte
		if h.IsControl() {
			var err error
			if data, err = entry(); err != nil {
				return err
			}
		}
		_, aborted, err := state.batch(h, data)
		if err != nil {
			known = false // the log does not allow it; its transaction index is left alone
			return nil
		}
		if aborted.LastOffset > 0 && isAbort(h, data) {
			return s.AppendAborted(aborted)
		}
		return nil
	})
	if errors.As(err, new(*index.OrderError)) || errors.As(err, new(*index.RangeError)) ||
		err == nil && recovered.CutBytes > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.built(fsys, known)
}

// isAbort reports whether a control batch is an abort marker.
func isAbort(h record.Header, entry []byte) bool {
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil || !h.IsControl() {
		return false
	}
	defer it.Close()
	if !it.Next() {
		return false
	}
	kind, err := record.ParseControlKey(it.Record().Key)
	return err == nil && kind == record.ControlAbort
}

// producers is the state of producers at the start of the segment, when it is known. Where the snapshot is missing it
// is replayed from an earlier one.
func (l *logRepair) producers(i int) (*replay, bool, error) {
	base := l.r.base
	if _, err := readSnapshot(l.p.fs, l.p.target.Dir, base); err == nil {
		s, err := newReplay(l.p.fs, l.p.target, base, true)
		return s, err == nil, err
	}
	if i == 0 || base == 0 {
		s, err := newReplay(l.p.fs, l.p.target, base, false)
		return s, base == 0 && err == nil, err
	}
	start, known := l.p.goodSnapshot([]int64{base})
	if !known || l.r.compacted {
		s, err := newReplay(l.p.fs, l.p.target, base, false)
		return s, false, err
	}
	s, err := replayTo(l.p.fs, l.p.target, start, base)
	return s, err == nil, err
}

// built reads the index files that the recovery made.
func (l *logRepair) built(fsys vfs.FS, txns bool) (map[string][]byte, error) {
	out := make(map[string][]byte)
	for _, suffix := range []string{segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
		if suffix == segment.TxnSuffix && (!txns || l.r.compacted && !l.wrong(suffix)) {
			continue
		}
		data, err := vfs.ReadFile(fsys, l.p.path(segment.Name(l.r.base, suffix)))
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[suffix] = data
	}
	return out, nil
}

// planLog keeps the bytes that go and changes the log. The indexes go first: a broker that starts before they are
// there again builds them.
func (l *logRepair) planLog() {
	for _, k := range l.kept {
		name := l.p.path(cutName(l.r.base, k[0]))
		l.p.steps = append(l.p.steps, step{
			action: Action{File: l.name, What: fmt.Sprintf("keep %d bytes from position %d", k[1]-k[0], k[0]), Kept: name,
				WriteBytes: k[1] - k[0]},
			do: func(fsys vfs.FS) error { return keepBytes(fsys, l.name, name, k[0], k[1]) },
		})
	}
	view := newLogView(nil, l.size, l.without, l.patches)
	action := Action{File: l.name, What: l.changeText(view)}
	if !view.inPlace() {
		action.WriteBytes = view.size
	}
	l.p.steps = append(l.p.steps, step{action: action, do: l.change})
	base := l.r.base
	l.p.answer(func(f Finding) bool {
		return f.File == l.name && (f.base == base || f.Kind == OffsetGap || f.Kind == EpochsWrong) &&
			slices.Contains(logKinds, f.Kind)
	})
}

func (l *logRepair) changeText(view *logView) string {
	text := ""
	for _, c := range l.patches {
		text += fmt.Sprintf("; restore %s at position %d", c.what, c.pos)
	}
	for _, w := range l.without {
		if w[1] == l.size {
			text += fmt.Sprintf("; end it at %d", w[0])
		} else {
			text += fmt.Sprintf("; take out the %d bytes from position %d", w[1]-w[0], w[0])
		}
	}
	return text[2:]
}

// change makes the new log.
func (l *logRepair) change(fsys vfs.FS) error {
	dir := l.p.target.Dir
	for _, suffix := range []string{segment.IndexSuffix, segment.TimeSuffix} {
		if err := fsys.Remove(l.p.path(segment.Name(l.r.base, suffix))); err != nil && !isAbsent(err) {
			return err
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	f, err := fsys.OpenFile(l.name, os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	view := newLogView(f, l.size, l.without, l.patches)
	if view.inPlace() {
		for _, c := range l.patches {
			if _, err := f.WriteAt(c.data, c.pos); err != nil {
				return errors.Join(err, f.Close())
			}
		}
		err = errors.Join(f.Truncate(view.size), f.Sync(), f.Close())
	} else {
		err = errors.Join(writeCopy(fsys, l.name+segment.TemporarySuffix, view), f.Close())
		if err == nil {
			err = fsys.Chtimes(l.name+segment.TemporarySuffix, info.ModTime())
		}
		if err == nil {
			err = fsys.Rename(l.name+segment.TemporarySuffix, l.name)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(fsys.Chtimes(l.name, info.ModTime()), fsys.SyncDir(dir))
}

// writeCopy writes a view into a file and syncs it.
func writeCopy(fsys vfs.FS, name string, view *logView) error {
	out, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err := copyBytes(out, view, 0, view.size); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Sync(), out.Close())
}

// copyBytes copies the bytes [from, to) of in to the start of out.
func copyBytes(out io.WriterAt, in io.ReaderAt, from, to int64) error {
	buf := make([]byte, min(256<<10, to-from))
	for at := from; at < to; {
		part := buf[:min(int64(len(buf)), to-at)]
		if n, err := in.ReadAt(part, at); n < len(part) {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		if _, err := out.WriteAt(part, at-from); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}

// keepBytes copies bytes of a log into a file of their own. A file of that name that holds them already is left, one
// that holds others is not touched: a free name is taken.
func keepBytes(fsys vfs.FS, log, name string, from, to int64) error {
	in, err := fsys.Open(log)
	if err != nil {
		return err
	}
	defer in.Close()
	data := io.NewSectionReader(in, from, to-from)
	for i := 1; ; i++ {
		same, err := holds(fsys, name, data)
		if isAbsent(err) {
			break
		}
		if err != nil || same {
			return err
		}
		name = fmt.Sprintf("%s.%d", name, i)
	}
	out, err := fsys.OpenFile(name+segment.TemporarySuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = copyBytes(out, in, from, to)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(name+segment.TemporarySuffix, name); err != nil {
		return err
	}
	return fsys.SyncDir(dirOf(name))
}

// holds reports whether a file has exactly the bytes given.
func holds(fsys vfs.FS, name string, want *io.SectionReader) (bool, error) {
	size, err := fileSize(fsys, name)
	switch {
	case err != nil:
		return false, err
	case size < 0:
		return false, os.ErrNotExist
	case size != want.Size():
		return false, nil
	}
	f, err := fsys.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(a)) {
		n := min(int64(len(a)), size-at)
		if _, err := f.ReadAt(a[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if _, err := want.ReadAt(b[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// planIndexes writes the index files that are wrong, all of them when the log changes. Offset and time index keep
// company: when one of them is wrong the other loses the room for entries to come, as both do when they are closed.
func (l *logRepair) planIndexes(built map[string][]byte, changed bool) {
	pair := l.wrong(segment.IndexSuffix) || l.wrong(segment.TimeSuffix)
	for _, suffix := range []string{segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
		name := l.p.path(segment.Name(l.r.base, suffix))
		data, ok := built[suffix]
		wrong := l.wrong(suffix)
		if pair && suffix != segment.TxnSuffix {
			size, err := fileSize(l.p.fs, name)
			wrong = wrong || err == nil && size > int64(len(data))
		}
		if !ok || !wrong && !changed {
			continue
		}
		l.p.steps = append(l.p.steps, step{
			action: Action{File: name, What: fmt.Sprintf("rebuild it from the log, %d bytes", len(data)),
				WriteBytes: int64(len(data))},
			do: func(fsys vfs.FS) error { return vfs.WriteFileAtomic(fsys, name, data) },
		})
		l.p.answer(func(f Finding) bool { return f.File == name })
	}
	l.p.answer(func(f Finding) bool { return f.base == l.r.base && f.Kind == SegmentEmpty })
}

// wrong reports whether something was found about one of the segment's index files.
func (l *logRepair) wrong(suffix string) bool {
	name := l.p.path(segment.Name(l.r.base, suffix))
	return l.p.has(l.r.base, SegmentEmpty) ||
		slices.ContainsFunc(l.p.found, func(f Finding) bool { return f.File == name })
}
