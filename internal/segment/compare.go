package segment

import (
	"fmt"

	"tidemark/internal/index"
	"tidemark/record"
)

// comparison holds the indexes against the log, header by header.
type comparison struct {
	s        *Segment
	offsets  cursor[index.OffsetEntry]
	times    cursor[index.TimeEntry]
	max      index.TimeEntry // of the batches so far
	indexed  bool            // a batch lies so far behind the start that an index has an entry for it
	overflow bool            // offsets do not fit the indexes from some batch on
}

// cursor goes through the entries of an index.
type cursor[E any] struct {
	entry func(int) (E, error)
	i, n  int
	e     E // entry i; valid while i < n
}

func (c *cursor[E]) start(n int, entry func(int) (E, error)) (err error) {
	c.n, c.entry = n, entry
	if n > 0 {
		c.e, err = entry(0)
	}
	return err
}

func (c *cursor[E]) advance() (err error) {
	if c.i++; c.i < c.n {
		c.e, err = c.entry(c.i)
	}
	return err
}

// compare reads the headers of the first size bytes of the log and compares every index entry with them: "" when all
// are right. What it learns of the transaction index is kept in txnDoubt. The caller holds checkMu.
func (s *Segment) compare(size int64) (reason string, err error) {
	f := s.files()
	c := comparison{s: s, max: index.TimeEntry{Timestamp: -1, Offset: s.base}}
	n, err := f.offsets.Len()
	if err != nil {
		return "", err
	}
	if err := c.offsets.start(n, f.offsets.Entry); err != nil {
		return "", err
	}
	if n, err = f.times.Len(); err != nil {
		return "", err
	}
	if err := c.times.start(n, f.times.Entry); err != nil {
		return "", err
	}
	txns, err := s.startTxnCheck()
	if err != nil {
		return "", err
	}
	sc := s.scanWith(0, size, walk{order: true})
	defer sc.close()
	for sc.next() {
		if reason, err = c.batch(sc.h, sc.Pos()); reason != "" || err != nil {
			return reason, err
		}
		if err := txns.batch(&sc); err != nil {
			return "", err
		}
	}
	if err := notDamage(sc.Err()); err != nil {
		return "", err
	}
	s.txnDoubt = txns.doubt
	if s.growing.Load() {
		return c.atEnd(sc.nextOffset(s.base), size), nil
	}
	return c.atClose(), nil
}

func (c *comparison) batch(h record.Header, pos int64) (string, error) {
	c.indexed = c.indexed || pos > c.s.cfg.IndexIntervalBytes
	c.overflow = c.overflow || !c.s.CanHold(h.LastOffset)
	if h.MaxTimestamp > c.max.Timestamp {
		c.max = index.TimeEntry{Timestamp: h.MaxTimestamp, Offset: h.LastOffset}
	}
	for c.offsets.i < c.offsets.n && c.offsets.e.Pos <= pos {
		// Kafka: older versions made one entry for several batches appended at once.
		if e := c.offsets.e; e.Pos < pos || e.Offset < h.LastOffset {
			return fmt.Sprintf("offset index entry (%d, %d) points at no batch of that offset", e.Offset, e.Pos), nil
		}
		if err := c.offsets.advance(); err != nil {
			return "", err
		}
	}
	for c.times.i < c.times.n && c.times.e.Offset <= h.LastOffset {
		e := c.times.e
		if e.Timestamp != c.max.Timestamp || h.LastOffset != c.max.Offset || h.Magic >= 2 && e.Offset < h.BaseOffset {
			return fmt.Sprintf("time index entry (%d, %d) is not of the first batch with the largest timestamp up to there, %d",
				e.Timestamp, e.Offset, c.max.Timestamp), nil
		}
		if err := c.times.advance(); err != nil {
			return "", err
		}
	}
	return "", nil
}

// atClose judges what is left at the end of a segment that takes no more.
func (c *comparison) atClose() string {
	switch {
	case c.offsets.i < c.offsets.n:
		return fmt.Sprintf("offset index entry (%d, %d) lies behind the log", c.offsets.e.Offset, c.offsets.e.Pos)
	case c.times.i < c.times.n:
		return fmt.Sprintf("time index entry (%d, %d) lies behind the log", c.times.e.Timestamp, c.times.e.Offset)
	case c.offsets.n == 0 && c.indexed && !c.overflow:
		return reasonEmpty
	case c.times.n == 0 && c.max.Timestamp >= 0 && !c.overflow,
		c.times.n > 0 && c.times.e.Timestamp != c.max.Timestamp && !c.overflow:
		return fmt.Sprintf("the largest timestamp %d is missing in the time index", c.max.Timestamp)
	}
	return ""
}

// atEnd judges what is left at the end of the part that was there when appends began.
func (c *comparison) atEnd(next, size int64) string {
	switch {
	case c.offsets.i < c.offsets.n && c.offsets.e.Pos < size:
		return fmt.Sprintf("offset index entry (%d, %d) points at no batch", c.offsets.e.Offset, c.offsets.e.Pos)
	case c.times.i < c.times.n && c.times.e.Offset < next:
		return fmt.Sprintf("time index entry (%d, %d) is of no batch", c.times.e.Timestamp, c.times.e.Offset)
	}
	return ""
}

// txnCheck holds the transaction index against the markers in the log.
type txnCheck struct {
	txns  []index.AbortedTxn
	i     int
	doubt string
}

func (s *Segment) startTxnCheck() (*txnCheck, error) {
	t := &txnCheck{}
	if !s.has(HasTxn) {
		return t, nil
	}
	err := s.files().txns.Check()
	if isDamaged(err) {
		t.doubt = err.Error()
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.txns, err = s.files().txns.All()
	return t, err
}

// batch looks at one batch. An abort marker without an entry may be right: of a transaction that wrote nothing here.
// Only the state of producers tells. One with a delete horizon is what compaction left of a transaction. An entry at
// whose offset there is no batch may be right, too: compaction or damage took the marker.
func (t *txnCheck) batch(sc *scanner) error {
	h := sc.h
	for t.i < len(t.txns) && t.txns[t.i].LastOffset < h.BaseOffset {
		t.i++
	}
	named := t.i < len(t.txns) && t.txns[t.i].LastOffset <= h.LastOffset
	if t.doubt != "" || !named && (!h.IsControl() || !h.HasProducerID()) {
		return nil
	}
	aborts, err := abortsOne(h, sc.Batch)
	if err != nil {
		return err
	}
	switch {
	case named && !(aborts && t.txns[t.i].ProducerID == h.ProducerID):
		t.doubt = fmt.Sprintf("the transaction index has an abort at offset %d, the log has none", t.txns[t.i].LastOffset)
	case aborts && !named && !h.HasDeleteHorizon():
		t.doubt = fmt.Sprintf("the abort at offset %d is not in the transaction index", h.LastOffset)
	}
	return nil
}

// abortsOne reports whether a batch is the abort marker of a producer.
func abortsOne(h record.Header, entry func() ([]byte, error)) (bool, error) {
	if !h.IsControl() || !h.HasProducerID() {
		return false, nil
	}
	data, err := entry()
	return err == nil && isAbort(data), err
}

// isAbort reports whether a control batch is an abort marker. One that cannot be read is none.
func isAbort(entry []byte) bool {
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		return false
	}
	defer it.Close()
	if !it.Next() {
		return false
	}
	kind, err := record.ParseControlKey(it.Record().Key)
	return err == nil && kind == record.ControlAbort
}
