package inspect

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"tidemark/internal/checkpoint"
	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// segmentPlan is what the check of a segment knows of its surroundings.
type segmentPlan struct {
	fs        vfs.FS
	target    Target
	base      int64
	nextBase  int64 // of the segment behind; -1: this is the last
	first     bool
	inUse     bool // a broker is at work: the end of the last segment is on the move
	clean     bool // the log directory was closed in good order
	epochs    []checkpoint.EpochEntry
	snapshots []int64 // ascending
	progress  func(bytes int64)
}

func (p *segmentPlan) last() bool { return p.nextBase < 0 }

func (p *segmentPlan) hasSnapshot(at int64) bool {
	_, ok := slices.BinarySearch(p.snapshots, at)
	return ok
}

func (p *segmentPlan) path(suffix string) string {
	return filepath.Join(p.target.Dir, segment.Name(p.base, suffix))
}

// most is the largest offset that may be in the segment.
func (p *segmentPlan) most() int64 {
	if p.last() {
		return p.base + math.MaxInt32
	}
	return min(p.nextBase-1, p.base+math.MaxInt32)
}

// segmentReport is what the check of a segment found out.
type segmentReport struct {
	base     int64
	findings []Finding

	firstOffset int64 // base offset of the first batch; -1: no batch
	next        int64 // the offset behind the last good batch
	batches     int64
	records     int64
	bytes       int64
	largest     index.TimeEntry
	gaps        int64
	firstGap    [2]int64 // offsets [from, to)
	firstGapPos int64
	compacted   bool // something tells that the cleaner was here
	damaged     bool
	producers   bool  // batches of idempotent producers
	newMagic    bool  // batches with a leader epoch
	leastStep   int64 // smallest distance between indexed positions; 0: no entries
	longestRun  int64 // most bytes of batches without an entry
	runStart    int64
	largestSize int64
	hasIndex    bool
	ranges      []badRange
	oddEpochs   []oddEpoch
	old         bool // messages of magic 0 or 1
}

// badRange is bytes of a log that are no good batch.
type badRange struct {
	from, to int64
	zeros    bool
	// least and most are what the offsets of a batch there lie between. alone: good batches stand on both sides.
	least, most int64
	alone       bool
}

// oddEpoch is a batch whose leader epoch is not what the checkpoint says.
type oddEpoch struct {
	pos       int64
	got, want int32
}

// maxRanges bounds what is remembered of one segment; a log with more damage is not repaired.
const maxRanges = 4096

func (c *segmentCheck) bad(from, to int64, zeros bool) {
	if r := &c.report; len(r.ranges) <= maxRanges {
		r.ranges = append(r.ranges, badRange{from: from, to: to, zeros: zeros, least: r.next, most: c.most(),
			alone: !c.unknown})
	}
}

// behindBad notes what the good batch behind bad parts tells of them.
func (c *segmentCheck) behindBad(h record.Header, pos int64) {
	r := &c.report
	for i := len(r.ranges) - 1; i >= 0 && r.ranges[i].least == r.next; i-- {
		b := &r.ranges[i]
		b.most = h.BaseOffset - 1
		b.alone = b.alone && b.to == pos
	}
}

// told reports whether one of the kinds was found.
func (r *segmentReport) told(kinds ...Kind) bool {
	return slices.ContainsFunc(r.findings, func(f Finding) bool { return slices.Contains(kinds, f.Kind) })
}

// segmentCheck is the check of one segment: one pass over its log, with its indexes at the side.
type segmentCheck struct {
	*segmentPlan
	report              segmentReport
	finds               findings
	file                vfs.File
	size                int64
	name                string
	offsets             offsetCheck
	times               timeCheck
	txns                txnCheck
	epoch               int // index into epochs
	it                  *record.Iterator
	firstLast, firstMax int64 // last offset and largest timestamp of the first good batch

	unknown bool // the batch before had a wrong checksum: its end is not known
	// inside is where, in a batch with a wrong checksum, a good one begins: the length in its header is wrong; 0: nowhere.
	inside int64
}

// looksInUse is how often a segment is looked at in which something is found, while a broker is at work: it may have
// cut, replaced or removed a file between two reads. What is found every time is there.
const looksInUse = 3

// check checks the segment. One that is gone from a directory in use is empty.
func (p *segmentPlan) check() (r segmentReport, err error) {
	for look := 1; ; look++ {
		r, err = checkSegment(p)
		if !p.inUse || err == nil && len(r.findings) == 0 {
			return r, err
		}
		there, listErr := p.lookAgain()
		switch {
		case listErr != nil:
			return r, listErr
		case !there:
			return segmentReport{base: p.base, firstOffset: -1, next: p.base, damaged: true}, nil
		case look == looksInUse:
			return r, err
		}
	}
}

// lookAgain reads what is around the segment anew; there is false when the segment is gone.
func (p *segmentPlan) lookAgain() (there bool, err error) {
	f, err := readFolder(p.fs, p.target.Dir)
	if err != nil {
		return false, ignoreAbsent(err)
	}
	i, there := slices.BinarySearch(f.logs, p.base)
	if there {
		p.nextBase, p.snapshots, p.progress = f.nextBase(i), f.snapshots, nil
	}
	return there, nil
}

func ignoreAbsent(err error) error {
	if isAbsent(err) {
		return nil
	}
	return err
}

// checkSegment checks the log and the indexes of one segment. Errors are the disk's.
func checkSegment(p *segmentPlan) (segmentReport, error) {
	c := &segmentCheck{segmentPlan: p, name: p.path(segment.LogSuffix)}
	c.finds.target = p.target
	c.report = segmentReport{base: p.base, firstOffset: -1, next: p.base,
		largest: index.TimeEntry{Timestamp: -1, Offset: p.base}}
	f, err := p.fs.Open(c.name)
	if err != nil {
		return c.report, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c.report, err
	}
	c.file, c.size = f, info.Size()
	if err := c.openIndexes(); err != nil {
		return c.report, err
	}
	defer c.offsets.close()
	defer c.times.close()
	c.txns.start(c)
	if err := c.walk(); err != nil {
		return c.report, err
	}
	c.offsets.finish(c)
	c.times.finish(c)
	c.zeroEntryFits()
	if err := c.txns.finish(c); err != nil {
		return c.report, err
	}
	c.report.findings = c.finds.sorted()
	return c.report, nil
}

// walker is what goes over the batches of a segment, with its buffers.
type walker struct {
	sc record.Scanner
	it record.Iterator
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// walk goes over all batches. Behind bytes that are no batch it goes on with the next good one.
func (c *segmentCheck) walk() error {
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	defer w.sc.Reset(nil, 0, 0) // keeps no file
	sc := &w.sc
	sc.File, sc.MaxBatchBytes = c.name, maxDecoded
	c.it = &w.it
	for from := int64(0); from < c.size; {
		sc.Reset(c.file, from, c.size)
		c.inside = 0
		for c.inside == 0 && sc.Next() {
			if err := c.batch(sc); err != nil {
				return err
			}
		}
		if c.inside > 0 {
			from = c.inside
			continue
		}
		err := sc.Err()
		if err == nil {
			return nil
		}
		var damage *record.CorruptError
		if !errors.As(err, &damage) {
			return err
		}
		if c.inUse && c.last() && damage.Incomplete {
			return nil // an append is under way
		}
		at := sc.Pos()
		next, ok := resync(c.file, at+1, c.size, c.size, c.report.next, c.most())
		if !ok {
			return c.badTail(at, damage)
		}
		c.badMiddle(at, next, damage)
		from = next
	}
	return nil
}

func (c *segmentCheck) add(s Severity, k Kind, pos, offset int64, what, breaks, repair string) *Finding {
	return c.finds.add(Finding{
		Severity: s, Kind: k, File: c.name, Pos: pos, Offset: offset, What: what, Breaks: breaks, Repair: repair,
		base: c.base,
	})
}

// badTail tells of bytes behind the last batch.
func (c *segmentCheck) badTail(at int64, damage *record.CorruptError) error {
	n := c.size - at
	zeros, err := onlyZeros(c.file, at, c.size)
	if err != nil {
		return err
	}
	if c.inUse && c.last() {
		return nil // preallocated, or an append is under way
	}
	c.report.damaged = true
	kind, what := GarbageTail, fmt.Sprintf("%d bytes behind the last batch are no batch: %s", n, damage.Reason)
	switch {
	case zeros:
		kind, what = ZeroTail, fmt.Sprintf("%d zero bytes behind the last batch", n)
	case damage.Incomplete:
		kind, what = TornTail, fmt.Sprintf("the last batch is cut off: %d bytes of it are there", n)
	}
	breaks := fmt.Sprintf("offset %d and what was appended behind it cannot be read; Kafka started after a clean stop "+
		"appends behind these bytes, where nobody can read, or does not start", c.report.next)
	if !c.last() {
		breaks = fmt.Sprintf("offsets %d to %d cannot be read; a recovery by Kafka cuts here and deletes all later segments",
			c.report.next, c.nextBase-1)
		if c.report.next == c.nextBase {
			breaks = "no record is missing; a recovery by Kafka cuts here and deletes all later segments"
		}
	}
	c.bad(at, c.size, zeros)
	repair := fmt.Sprintf("keep the %d bytes in a cut-* file and end the segment at %d", n, at)
	if zeros {
		repair = fmt.Sprintf("end the segment at %d", at)
	}
	c.add(Error, kind, at, c.report.next, what, breaks, repair).Bytes = n
	return nil
}

// badMiddle tells of bytes between two batches that are no batch.
func (c *segmentCheck) badMiddle(at, next int64, damage *record.CorruptError) {
	c.bad(at, next, false)
	c.report.damaged, c.unknown = true, true
	f := c.add(Error, BadBatch, at, c.report.next,
		fmt.Sprintf("%d bytes are no batch (%s); the next good batch is at %d", next-at, damage.Reason, next),
		fmt.Sprintf("readers stop at offset %d; a recovery by Kafka cuts here and deletes what is behind", c.report.next),
		"restore a single flipped bit if that is all; else "+c.takenOut("the bytes"))
	f.Bytes = next - at
	c.offsets.skip(at, next)
}

// batch checks the scanner's batch.
func (c *segmentCheck) batch(sc *record.Scanner) error {
	h, pos := sc.Header(), sc.Pos()
	c.report.batches++
	c.report.bytes += int64(h.SizeBytes)
	c.report.largestSize = max(c.report.largestSize, int64(h.SizeBytes))
	if c.progress != nil {
		c.progress(int64(h.SizeBytes))
	}
	var entry []byte
	var good bool
	var err error
	if int64(h.SizeBytes) <= maxDecoded {
		if entry, err = sc.Batch(); err == nil {
			good = record.ValidCRC(entry)
		}
	} else {
		good, err = sc.ValidCRC()
	}
	if err != nil {
		return c.readError(err)
	}
	if !good {
		c.badChecksum(h, pos)
		return nil
	}
	if c.unknown {
		c.behindBad(h, pos)
	}
	if c.checkOffsets(&h, pos, entry) {
		c.checkEpoch(h, pos)
	}
	c.offsets.batch(c, h, pos)
	c.times.batch(c, h)
	c.txns.batch(c, h, pos, entry)
	if h.MaxTimestamp > c.report.largest.Timestamp {
		c.report.largest = index.TimeEntry{Timestamp: h.MaxTimestamp, Offset: h.LastOffset}
	}
	c.unknown = false
	return nil
}

// readError passes the disk's errors on. A file that became shorter meanwhile belongs to a broker at work.
func (c *segmentCheck) readError(err error) error {
	if c.inUse && (isDamage(err) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return nil
	}
	return err
}

// takenOut says what becomes of bytes of a log that cannot be restored.
func (c *segmentCheck) takenOut(what string) string {
	if c.target.isMetadata() {
		return "none: the metadata behind builds on it; take the log from another controller"
	}
	return "keep " + what + " in a cut-* file and close the gap, so that what is behind can be read"
}

// goodInside finds the good batch that begins inside of a bad one, when none begins where the bad one ends.
func (c *segmentCheck) goodInside(pos, end int64) (at int64, ok bool) {
	if end == c.size || wholeBatch(c.file, end, c.size, c.most()) {
		return 0, false // what looks like a batch inside may be the value of a record
	}
	return resync(c.file, pos+1, end, c.size, c.report.next, c.most())
}

func (c *segmentCheck) badChecksum(h record.Header, pos int64) {
	end, what := pos+int64(h.SizeBytes), "its bytes changed after they were written"
	if at, ok := c.goodInside(pos, end); ok {
		end, c.inside = at, at
		what = fmt.Sprintf("bytes are missing or its length is wrong, since a good batch begins at %d", at)
	}
	c.bad(pos, end, false)
	c.report.damaged, c.unknown = true, true
	f := c.add(Error, BadChecksum, pos, h.BaseOffset,
		fmt.Sprintf("the checksum of the batch of %d bytes is wrong: %s", h.SizeBytes, what),
		fmt.Sprintf("consumers stop at offset %d with a checksum error; a recovery by Kafka cuts here and deletes what is "+
			"behind", c.report.next),
		"restore a single flipped bit if that is all; else "+c.takenOut("the batch"))
	f.Bytes = end - pos
	c.offsets.skip(pos, end)
}

// checkOffsets checks where the batch stands, and its records. For a compressed message of an old magic the header
// learns its first offset. It is false when the batch's offsets cannot be right.
func (c *segmentCheck) checkOffsets(h *record.Header, pos int64, entry []byte) bool {
	if entry != nil {
		c.checkRecords(h, pos, entry)
	}
	r, fits := &c.report, true
	switch {
	case h.LastOffset < h.BaseOffset:
		c.add(Error, OffsetRange, pos, h.BaseOffset,
			fmt.Sprintf("last offset %d lies below base offset %d", h.LastOffset, h.BaseOffset),
			"look-ups by offset go wrong in this segment", "none: only the producer knows what was meant")
		return false
	case h.BaseOffset < r.next && !c.unknown:
		fits = false
		c.add(Error, OffsetOrder, pos, h.BaseOffset,
			fmt.Sprintf("base offset %d lies below %d, where the batch before ends", h.BaseOffset, r.next),
			fmt.Sprintf("offsets from %d on are there twice; consumers may read either; Kafka keeps both", h.BaseOffset),
			"restore a flipped bit of an offset if that is all; else none: Kafka's readers get along with it")
	case h.BaseOffset < c.base || h.LastOffset > c.most():
		fits = false
		c.add(Error, OffsetRange, pos, h.BaseOffset,
			fmt.Sprintf("offsets %d to %d do not belong to a segment from %d%s", h.BaseOffset, h.LastOffset, c.base, c.upTo()),
			"readers that come by offset miss these records",
			"restore a flipped bit of an offset if that is all; else none: Kafka splits a segment of too wide a range at "+
				"its start")
	case h.BaseOffset > r.next && !c.unknown:
		c.gap(r.next, h.BaseOffset, pos)
	}
	if r.firstOffset < 0 {
		r.firstOffset = h.BaseOffset
		c.firstLast, c.firstMax = h.LastOffset, h.MaxTimestamp
	}
	r.next = max(r.next, h.NextOffset())
	r.old = r.old || h.Magic < 2
	r.newMagic = r.newMagic || h.LeaderEpoch >= 0
	r.producers = r.producers || h.HasProducerID()
	r.compacted = r.compacted || h.HasDeleteHorizon() || h.Magic == 2 && h.Count <= h.LastOffsetDelta()
	return fits
}

func (c *segmentCheck) upTo() string {
	if c.last() {
		return ""
	}
	return fmt.Sprintf(" up to %d", c.nextBase-1)
}

// gap notes offsets without records. Whether that is damage is known when the whole log was seen.
func (c *segmentCheck) gap(from, to, pos int64) {
	if c.report.gaps == 0 {
		c.report.firstGap, c.report.firstGapPos = [2]int64{from, to}, pos
	}
	c.report.gaps++
}

// checkRecords decodes the records and compares them with the header.
func (c *segmentCheck) checkRecords(h *record.Header, pos int64, entry []byte) {
	if h.Magic == 2 && h.Count == 0 && int(h.SizeBytes) == record.HeaderSize {
		return
	}
	if err := c.it.Reset(entry, record.IterOptions{SkipKV: true}); err != nil {
		c.badRecords(*h, pos, err.Error())
		return
	}
	defer c.it.Close()
	largest, last, n := int64(math.MinInt64), int64(-1), int64(0)
	for c.it.Next() {
		r := c.it.Record()
		if r.Offset <= last && n > 0 || r.Offset < 0 || h.Magic == 2 && (r.Offset < h.BaseOffset || r.Offset > h.LastOffset) {
			c.badRecords(*h, pos,
				fmt.Sprintf("record %d has offset %d in a batch of %d to %d", n, r.Offset, h.BaseOffset, h.LastOffset))
			return
		}
		largest, last, n = max(largest, r.Timestamp), r.Offset, n+1
	}
	if err := c.it.Err(); err != nil {
		c.badRecords(*h, pos, err.Error())
		return
	}
	c.report.records += n
	if h.Magic < 2 {
		h.BaseOffset = c.it.Header().BaseOffset
	}
	if n > 0 && h.Magic > 0 && largest != h.MaxTimestamp && !(largest < 0 && h.MaxTimestamp < 0) {
		c.wrongMaximum(*h, pos, largest)
	}
}

func (c *segmentCheck) badRecords(h record.Header, pos int64, reason string) {
	c.add(Error, BadRecords, pos, h.BaseOffset, "the checksum is right, but the records do not fit: "+reason,
		fmt.Sprintf("consumers stop at offset %d; look-ups by time pass the batch over", h.BaseOffset),
		"none: the producer wrote it so")
}

func (c *segmentCheck) wrongMaximum(h record.Header, pos, largest int64) {
	severity, breaks := Note, "look-ups by time decode the batch without need"
	if largest > h.MaxTimestamp {
		severity = Warning
		breaks = fmt.Sprintf("look-ups between %d and %d miss its records, and retention takes them for older",
			h.MaxTimestamp+1, largest)
	}
	c.add(severity, WrongMaximum, pos, h.BaseOffset,
		fmt.Sprintf("the header's largest timestamp is %d, that of the records %d", h.MaxTimestamp, largest),
		breaks, "none: the header is covered by the checksum")
}

// checkEpoch compares the batch's leader epoch with the checkpoint.
func (c *segmentCheck) checkEpoch(h record.Header, pos int64) {
	if h.LeaderEpoch < 0 || len(c.epochs) == 0 || h.BaseOffset < c.epochs[0].StartOffset {
		return
	}
	for c.epoch > 0 && c.epochs[c.epoch].StartOffset > h.BaseOffset { // the batch before had a wrong offset
		c.epoch--
	}
	for c.epoch+1 < len(c.epochs) && c.epochs[c.epoch+1].StartOffset <= h.BaseOffset {
		c.epoch++
	}
	if want := c.epochs[c.epoch]; want.Epoch != h.LeaderEpoch {
		f := c.add(Warning, EpochsWrong, pos, h.BaseOffset,
			fmt.Sprintf("leader epoch %d in the batch; %s has %d from offset %d on", h.LeaderEpoch,
				checkpoint.LeaderEpochFile, want.Epoch, want.StartOffset),
			"followers and consumers that ask where an epoch ended are told a wrong offset, and may truncate there",
			"write "+checkpoint.LeaderEpochFile+" anew from the batches")
		f.base = -1
		if len(c.report.oddEpochs) <= maxRanges {
			c.report.oddEpochs = append(c.report.oddEpochs, oddEpoch{pos, h.LeaderEpoch, want.Epoch})
		}
	}
}
