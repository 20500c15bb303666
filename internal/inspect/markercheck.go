package inspect

import (
	"fmt"

	"tidemark/record"
)

// markerCheck holds the entries of a transaction index against the abort markers and the records of the segment. It
// says less than a replay of the producers, but is sure of it in a compacted log too: the cleaner keeps an entry only
// with its marker, and takes records of aborted transactions out, or leaves entry and marker.
type markerCheck struct {
	at    int             // in the entries
	first map[int64]int64 // by producer: where the first records of its transaction are, in this segment
	found []Finding
}

// batch takes a good batch in.
func (m *markerCheck) batch(x *txnCheck, c *segmentCheck, h record.Header, entry []byte) {
	if h.Magic < 2 || !h.HasProducerID() || !h.IsTransactional() {
		return
	}
	if !h.IsControl() {
		if _, known := m.first[h.ProducerID]; !known && h.Count > 0 {
			if m.first == nil {
				m.first = make(map[int64]int64)
			}
			m.first[h.ProducerID] = h.BaseOffset
		}
		return
	}
	if isAbort(h, entry) {
		m.abort(x, c, h)
	}
	delete(m.first, h.ProducerID)
}

// abort looks for the entry of an abort marker.
func (m *markerCheck) abort(x *txnCheck, c *segmentCheck, h record.Header) {
	m.passOver(x, c, h.BaseOffset)
	first, records := m.first[h.ProducerID]
	if m.at == len(x.file) || x.file[m.at].LastOffset > h.BaseOffset {
		if records {
			m.add(x, c, TxnMissing, first, fmt.Sprintf("producer %d aborted at offset %d records from %d on; that is not in it",
				h.ProducerID, h.BaseOffset, first), showsAborted)
		}
		return
	}
	switch t := x.file[m.at]; {
	case t.ProducerID != h.ProducerID:
		m.add(x, c, TxnEntryWrong, t.LastOffset,
			fmt.Sprintf("entry %d is %s; the abort marker there is of producer %d", m.at, txnText(t), h.ProducerID),
			filtersOthers)
	case records && t.FirstOffset > first:
		m.add(x, c, TxnEntryWrong, t.LastOffset,
			fmt.Sprintf("entry %d is %s; the aborted records begin at %d", m.at, txnText(t), first), showsAborted)
	}
	m.at++
}

// passOver tells of the entries that end before an offset: there is no marker for them.
func (m *markerCheck) passOver(x *txnCheck, c *segmentCheck, offset int64) {
	for ; m.at < len(x.file) && x.file[m.at].LastOffset < offset; m.at++ {
		t := x.file[m.at]
		m.add(x, c, TxnEntryWrong, t.LastOffset, "entry "+txnText(t)+": the log has no such abort marker", hidesRecords)
	}
}

func (m *markerCheck) add(x *txnCheck, c *segmentCheck, k Kind, offset int64, what, breaks string) {
	if len(m.found) < 100 {
		m.found = append(m.found, x.finding(c, m.at, k, offset, what, breaks))
	}
}

// finish tells what was found.
func (m *markerCheck) finish(x *txnCheck, c *segmentCheck) {
	end := c.report.next
	if !c.inUse || !c.last() {
		end = int64(1<<63 - 1)
	}
	m.passOver(x, c, end)
	for _, f := range m.found {
		c.finds.add(f)
	}
}
