package inspect

import (
	"errors"
	"fmt"
	"path/filepath"

	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
)

// txnCheck replays the producers of a segment, from the snapshot at its start, and compares the transaction index and
// the next snapshot with what comes out. In a compacted log batches are missing that both files were made from; there
// only what is sure is compared.
type txnCheck struct {
	state   *replay
	known   bool // the state at the start of the segment is known
	file    []index.AbortedTxn
	at      int // in file
	pending []Finding
	broken  error // the replay stopped here
	present bool
	markers markerCheck
}

func (x *txnCheck) name(c *segmentCheck) string { return c.path(segment.TxnSuffix) }

// start reads the transaction index and the snapshot at the segment's start.
func (x *txnCheck) start(c *segmentCheck) {
	x.readIndex(c)
	snapshot := false
	if c.hasSnapshot(c.base) {
		_, err := readSnapshot(c.fs, c.target.Dir, c.base)
		snapshot = err == nil
	}
	x.known = snapshot || c.base == 0
	x.state, x.broken = newReplay(c.fs, c.target, c.base, snapshot)
}

// readIndex reads the entries, a torn one apart.
func (x *txnCheck) readIndex(c *segmentCheck) {
	name := x.name(c)
	size, err := fileSize(c.fs, name)
	if err != nil || size < 0 {
		return
	}
	x.present = true
	if tail := size % index.TxnEntrySize; tail != 0 && !(c.inUse && c.last()) {
		c.index(name, Error, TxnTorn, size-tail, fmt.Sprintf("%d bytes of an entry that is not whole", tail),
			"readers of committed records are not told of the aborted transaction there and show its records")
	}
	txns := index.OpenTxnIndex(index.Options{
		Files: index.NewFileCache(c.fs, 1), Name: name, BaseOffset: c.base, ReadOnly: true,
	})
	defer txns.Close()
	if err = txns.Check(); err == nil || isTorn(err) {
		x.file, err = txns.All()
	}
	if err != nil {
		c.index(name, Error, TxnEntryWrong, -1, err.Error(), "readers of committed records get an error in this segment")
		x.file = nil
	}
}

// isTorn reports whether nothing is wrong with an index but bytes behind its last whole entry.
func isTorn(err error) bool {
	var damage *index.CorruptError
	return errors.As(err, &damage) && damage.Kind == index.Torn
}

// batch takes a good batch in.
func (x *txnCheck) batch(c *segmentCheck, h record.Header, pos int64, entry []byte) {
	if h.IsControl() && entry == nil {
		return
	}
	x.markers.batch(x, c, h, entry)
	if x.broken != nil {
		return
	}
	done, aborted, err := x.state.batch(h, entry)
	if err != nil {
		x.broken = err
		if !c.compactedSoFar() && x.known && !c.report.damaged {
			c.add(Error, BadRecords, pos, h.BaseOffset, "the transaction state does not allow this batch: "+err.Error(),
				"a recovery by Kafka cuts the log here", "none: only a truncation would help")
		}
		return
	}
	if done == nil || !done.Aborted {
		return
	}
	for x.at < len(x.file) && x.file[x.at].LastOffset < aborted.LastOffset {
		x.extra(c, x.file[x.at])
		x.at++
	}
	if x.at == len(x.file) || x.file[x.at].LastOffset > aborted.LastOffset {
		x.missing(c, aborted)
		return
	}
	if got := x.file[x.at]; got != aborted && x.known {
		x.later(c, TxnEntryWrong, got.LastOffset,
			fmt.Sprintf("entry %d is %s; the log says %s", x.at, txnText(got), txnText(aborted)),
			filtersOthers)
	}
	x.at++
}

func txnText(t index.AbortedTxn) string {
	return fmt.Sprintf("(producer %d, offsets %d to %d, last stable %d)", t.ProducerID, t.FirstOffset, t.LastOffset,
		t.LastStableOffset)
}

func (x *txnCheck) missing(c *segmentCheck, t index.AbortedTxn) {
	what := "the aborted transaction " + txnText(t) + " is not in it"
	if !x.present {
		what = "there is no transaction index; the aborted transaction " + txnText(t) + " must be in it"
	}
	x.later(c, TxnMissing, t.FirstOffset, what, showsAborted)
}

// extra judges an entry for which the replay met no abort marker. With an unknown start the transaction may have
// begun before the segment.
func (x *txnCheck) extra(c *segmentCheck, t index.AbortedTxn) {
	if !x.known && t.FirstOffset < c.base {
		return
	}
	x.later(c, TxnEntryWrong, t.LastOffset, "entry "+txnText(t)+": the log has no such abort marker", hidesRecords)
}

// later keeps a finding until it is known whether the segment was compacted.
func (x *txnCheck) later(c *segmentCheck, k Kind, offset int64, what, breaks string) {
	if len(x.pending) < 100 {
		x.pending = append(x.pending, x.finding(c, x.at, k, offset, what, breaks))
	}
}

func (x *txnCheck) finding(c *segmentCheck, entry int, k Kind, offset int64, what, breaks string) Finding {
	return Finding{
		Severity: Error, Kind: k, File: x.name(c), Pos: int64(entry) * index.TxnEntrySize, Offset: offset,
		What: what, Breaks: breaks, Repair: rebuildText, base: c.base,
	}
}

const (
	showsAborted  = "readers of committed records show the records of the aborted transaction"
	hidesRecords  = "readers of committed records leave out records that were committed"
	filtersOthers = "readers of committed records filter other records than those of the aborted transaction"
)

func (c *segmentCheck) compactedSoFar() bool { return c.report.compacted || c.report.gaps > 0 }

// finish tells of what is certain, and compares the snapshot behind the segment.
func (x *txnCheck) finish(c *segmentCheck) error {
	if c.report.damaged {
		return nil
	}
	if x.broken != nil || c.compactedSoFar() {
		x.markers.finish(x, c)
		return nil
	}
	for ; x.at < len(x.file); x.at++ {
		if t := x.file[x.at]; t.LastOffset < c.report.next || !(c.inUse && c.last()) {
			x.extra(c, t)
		}
	}
	for _, f := range x.pending {
		c.finds.add(f)
	}
	next := c.nextBase
	if c.last() {
		next = c.report.next
	}
	if !x.known || !c.hasSnapshot(next) || c.report.next != next {
		return nil
	}
	return x.compareSnapshot(c, next)
}

// compareSnapshot compares producers that both know: one that expired is only in the log.
func (x *txnCheck) compareSnapshot(c *segmentCheck, at int64) error {
	entries, err := readSnapshot(c.fs, c.target.Dir, at)
	if errors.As(err, new(*producerstate.CorruptSnapshotError)) || isAbsent(err) {
		return nil // told by the check of the folder
	}
	if err != nil {
		return err
	}
	name := filepath.Join(c.target.Dir, producerstate.SnapshotName(at))
	for i := range entries {
		want, ok := x.state.m.Get(entries[i].ProducerID)
		reason := "the log does not know it"
		if ok {
			reason = sameProducer(&entries[i], &want)
		}
		if reason == "" {
			continue
		}
		c.finds.add(Finding{
			Severity: Warning, Kind: SnapshotStale, File: name, Pos: -1, Offset: at,
			What:   fmt.Sprintf("producer %d: %s", entries[i].ProducerID, reason),
			Breaks: "after a start duplicates may be stored twice or retries refused, and open transactions mistaken",
			Repair: "write it anew from the log", base: -1,
		})
	}
	return nil
}
