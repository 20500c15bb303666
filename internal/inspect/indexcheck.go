package inspect

import (
	"fmt"

	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
)

const rebuildText = "rebuild it from the log"

// openIndexes opens the index files of a segment and looks at their sizes.
func (c *segmentCheck) openIndexes() error {
	offsets, err := openEntries(c.fs, c.path(segment.IndexSuffix), index.OffsetEntrySize)
	if err != nil {
		return err
	}
	c.offsets.offsetCursor = offsetCursor{offsets, c.base}
	times, err := openEntries(c.fs, c.path(segment.TimeSuffix), index.TimeEntrySize)
	if err != nil {
		offsets.close()
		return err
	}
	c.times.timeCursor = timeCursor{times, c.base}
	c.report.hasIndex = offsets.file != nil
	if c.size == 0 && offsets.n+times.n > 0 && !(c.inUse && c.last()) {
		c.add(Error, SegmentEmpty, -1, c.base,
			fmt.Sprintf("the log is empty, but its indexes have %d and %d entries", offsets.n, times.n),
			fmt.Sprintf("the records from offset %d on that were in it are gone", c.base), "rebuild the indexes, as empty ones")
		offsets.n, times.n = 0, 0
		return nil
	}
	c.checkPresence()
	c.checkPadding(offsets, times)
	return nil
}

func (c *segmentCheck) checkPresence() {
	if c.offsets.file == nil && c.size > 0 && !(c.inUse && c.last()) {
		c.index(c.offsets.name, Warning, IndexMissing, -1, "there is no offset index",
			fmt.Sprintf("Kafka builds it when it starts; until then a reader scans up to %d bytes", c.size))
	}
	if c.times.file == nil && c.size > 0 && !(c.inUse && c.last()) {
		c.index(c.times.name, Error, TimeMissing, -1, "there is no time index",
			"Kafka starts with an empty one: look-ups by time take the segment for as new as its file, scan all of it, and "+
				"the look-up of the largest timestamp finds nothing")
	}
}

// index adds a finding about an index file; repair rebuilds it.
func (c *segmentCheck) index(file string, s Severity, k Kind, pos int64, what, breaks string) *Finding {
	return c.finds.add(Finding{
		Severity: s, Kind: k, File: file, Pos: pos, Offset: -1, What: what, Breaks: breaks, Repair: rebuildText, base: c.base,
	})
}

// checkPadding looks at the ends of the files. Zeros there are what the active segment of a broker has that runs, or
// was killed: then both files have their full size.
func (c *segmentCheck) checkPadding(offsets, times *entryReader) {
	preallocated := c.last() && !c.clean && times.padding > 0 &&
		(offsets.file == nil || offsets.padding > 0 && abs(offsets.size-times.size) < index.TimeEntrySize)
	for _, r := range []*entryReader{offsets, times} {
		torn, zeros, look := IndexTorn, IndexZeros, "look-ups by offset"
		if r == times {
			torn, zeros, look = TimeTorn, TimeZeros, "look-ups by time"
		}
		if n := r.tail(); n > 0 && !(c.inUse && c.last()) {
			c.index(r.name, Warning, torn, r.size-n, fmt.Sprintf("%d bytes behind the last whole entry", n),
				"Kafka ignores the bytes, or rebuilds the file when it checks it")
		}
		if r.padding > 0 && !preallocated && !r.oneZeroEntry() {
			c.index(r.name, Error, zeros, r.n*r.width, fmt.Sprintf("%d entries of zeros", r.padding/r.width),
				look+" take the zeros for entries: they scan the segment from its start, or pass it over")
		}
	}
}

// oneZeroEntry reports whether the file is a single entry of zeros: one that may be right, see zeroEntryFits.
func (r *entryReader) oneZeroEntry() bool { return r.size == r.width && r.n == 0 }

// zeroEntryFits judges a single entry of zeros when the first batch is known: it must end with the base offset, and for
// a time index have the timestamp 0.
func (c *segmentCheck) zeroEntryFits() {
	for _, r := range []*entryReader{c.offsets.entryReader, c.times.entryReader} {
		kind, fits := IndexZeros, c.report.batches > 0 && c.firstLast == c.base
		if r == c.times.entryReader {
			kind, fits = TimeZeros, fits && c.firstMax == 0
		}
		if r.oneZeroEntry() && !fits && !c.report.damaged {
			c.index(r.name, Error, kind, 0, "its one entry is zero", "look-ups begin at a wrong place, or pass the segment over")
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// offsetCheck compares an offset index with the batches, which come in order.
type offsetCheck struct {
	offsetCursor
	prev    OffsetEntry
	entries int64
	pending int64 // an entry's offset that a later batch of the same append ends with; -1: none
	lastPos int64 // of the last batch with an entry
	damage  [][2]int64
}

// skip notes a part of the log in which no batch is known; entries that point there are not judged.
func (o *offsetCheck) skip(from, to int64) {
	if len(o.damage) < 64 {
		o.damage = append(o.damage, [2]int64{from, to})
	}
}

func (o *offsetCheck) inDamage(pos int64) bool {
	for _, d := range o.damage {
		if pos >= d[0] && pos < d[1] {
			return true
		}
	}
	return len(o.damage) == 64
}

// batch checks the entries up to the batch at pos.
func (o *offsetCheck) batch(c *segmentCheck, h record.Header, pos int64) {
	if o.entries == 0 && o.next == 0 {
		o.pending = -1
	}
	if o.pending >= 0 && h.LastOffset >= o.pending {
		if h.LastOffset != o.pending {
			o.wrong(c, o.prev, fmt.Sprintf("no batch ends with offset %d", o.pending))
		}
		o.pending = -1
	}
	for {
		e, ok := o.entry()
		if !ok || e.Pos > pos {
			break
		}
		o.compare(c, e, h, pos)
		o.next++
	}
	if run := pos - o.lastPos; run > c.report.longestRun {
		c.report.longestRun, c.report.runStart = run, o.lastPos
	}
}

func (o *offsetCheck) compare(c *segmentCheck, e OffsetEntry, h record.Header, pos int64) {
	switch {
	case o.inDamage(e.Pos):
	case o.entries > 0 && (e.Offset <= o.prev.Offset || e.Pos <= o.prev.Pos):
		o.wrong(c, e, fmt.Sprintf("it does not follow (%d, %d)", o.prev.Offset, o.prev.Pos))
		return
	case e.Pos < pos:
		o.wrong(c, e, "no batch starts at that position")
		return
	case e.Offset < h.LastOffset:
		o.wrong(c, e, fmt.Sprintf("the batch there ends with offset %d", h.LastOffset))
		return
	case e.Offset > h.LastOffset: // older Kafka: one entry for several batches appended at once
		o.pending = e.Offset
	}
	if step := e.Pos - o.lastPos; step > 0 && (c.report.leastStep == 0 || step < c.report.leastStep) {
		c.report.leastStep = step
	}
	if e.Pos == pos {
		o.lastPos = pos
	}
	o.prev = e
	o.entries++
}

func (o *offsetCheck) wrong(c *segmentCheck, e OffsetEntry, reason string) {
	f := c.index(o.name, Error, IndexEntry, o.next*o.width,
		fmt.Sprintf("entry %d (offset %d, position %d): %s", o.next, e.Offset, e.Pos, reason),
		fmt.Sprintf("reads and look-ups from offset %d on begin at a wrong place: they fail or miss records", e.Offset))
	if f.Count == 1 {
		f.Offset = e.Offset
	}
}

// finish checks the entries that point behind the last batch.
func (o *offsetCheck) finish(c *segmentCheck) {
	for ; ; o.next++ {
		e, ok := o.entry()
		if !ok {
			break
		}
		if c.inUse && c.last() || o.inDamage(e.Pos) {
			continue
		}
		if e.Pos >= c.size {
			o.wrong(c, e, fmt.Sprintf("the log has %d bytes", c.size))
		} else {
			o.wrong(c, e, "no batch starts at that position")
		}
	}
	if o.entries > 0 && o.pending >= 0 && !c.report.damaged && !(c.inUse && c.last()) {
		o.wrong(c, o.prev, fmt.Sprintf("no batch ends with offset %d", o.pending))
	}
}

// timeCheck compares a time index with the batches, which come in order.
type timeCheck struct {
	timeCursor
	prev    TimeEntry
	entries int64
}

// batch checks the entries whose offsets are not behind the batch.
func (t *timeCheck) batch(c *segmentCheck, h record.Header) {
	for {
		e, ok := t.entry()
		if !ok || e.Offset > h.LastOffset {
			return
		}
		before := c.report.largest
		switch {
		case t.entries > 0 && (e.Timestamp <= t.prev.Timestamp || e.Offset < t.prev.Offset):
			t.wrong(c, e, fmt.Sprintf("it does not follow (%d, %d)", t.prev.Timestamp, t.prev.Offset))
		case e.Offset < h.BaseOffset && !c.report.damaged:
			t.wrong(c, e, "its offset is in no batch, or it comes too late")
		case c.report.damaged && e.Offset < h.BaseOffset:
		case e.Timestamp != h.MaxTimestamp:
			t.wrong(c, e, fmt.Sprintf("the batch of that offset has %d as its largest timestamp", h.MaxTimestamp))
		case e.Timestamp <= before.Timestamp && !c.report.damaged:
			t.wrong(c, e, fmt.Sprintf("offset %d before it is as new (%d)", before.Offset, before.Timestamp))
		}
		t.prev = e
		t.entries++
		t.next++
	}
}

func (t *timeCheck) wrong(c *segmentCheck, e TimeEntry, reason string) {
	f := c.index(t.name, Error, TimeEntryWrong, t.next*t.width,
		fmt.Sprintf("entry %d (timestamp %d, offset %d): %s", t.next, e.Timestamp, e.Offset, reason),
		fmt.Sprintf("look-ups of times from %d on may pass over matching records or the whole segment",
			min(e.Timestamp, t.prev.Timestamp)))
	if f.Count == 1 {
		f.Offset = e.Offset
	}
}

// finish checks the entries behind the last batch, and whether the last entry has the segment's largest timestamp. An
// active segment gets that entry when it is rolled or closed.
func (t *timeCheck) finish(c *segmentCheck) {
	for ; ; t.next++ {
		e, ok := t.entry()
		if !ok {
			break
		}
		if c.inUse && c.last() || c.report.damaged {
			t.prev, t.entries = e, t.entries+1
			continue
		}
		t.wrong(c, e, fmt.Sprintf("the segment ends before offset %d", c.report.next))
	}
	largest := c.report.largest
	known := int64(-1)
	if t.entries > 0 {
		known = t.prev.Timestamp
	}
	closed := !c.last() || t.padding == 0
	if t.file == nil || !closed || largest.Timestamp <= known || largest.Timestamp < 0 {
		return
	}
	if c.inUse && c.last() || t.entries == 0 && t.padding > 0 {
		return // not closed yet; or told as zeros
	}
	f := c.index(t.name, Error, TimeShort, t.size,
		fmt.Sprintf("the largest timestamp %d (at offset %d) is not in it; its last is %d",
			largest.Timestamp, largest.Offset, known),
		fmt.Sprintf("Kafka's look-ups of times from %d to %d pass the segment over: they answer a later record or none",
			known+1, largest.Timestamp))
	f.Offset = largest.Offset
}
