package damage

import (
	"fmt"
	"testing"

	"tidemark/test/golden"
	"tidemark/test/ledger"
)

// verdict is one row's part of one server. An empty string is a yes.
type verdict struct {
	starts, readable, lookups, committed string
}

// cells are the verdict's columns.
func (v verdict) cells() []string {
	out := []string{v.starts, v.readable, v.lookups, v.committed}
	for i := range out {
		if out[i] == "" {
			out[i] = "yes"
		}
	}
	return out
}

// yes tells whether every column says yes.
func (v verdict) yes() bool { return v == verdict{} }

// refused is the verdict on a server that did not start.
var refused = verdict{"no", "no", "no", "no"}

// lookupVersion is the version of ListOffsets in which most of the cases' questions were asked.
const lookupVersion = 11

// kafkaVerdict judges Kafka's answers, which the case holds.
func kafkaVerdict(t *testing.T, c golden.Case, tr *truth) verdict {
	t.Helper()
	if c.Refused() {
		return refused
	}
	records, _ := c.Records(t)
	var v verdict
	v.readable = missing(tr.book.Read(false), offsets(records))
	committed, _ := c.CommittedRecords(t)
	v.committed = judgeCommitted(tr, offsets(committed))
	wrong, asked := 0, 0
	for _, q := range c.ListOffsets(t) {
		if q.Query < 0 && q.Query != -3 || q.Version != lookupVersion {
			continue // ends of the log, what is no look-up, and answers without all fields
		}
		asked++
		got := ledger.Found{Offset: q.Offset, Timestamp: q.Timestamp, Epoch: q.LeaderEpoch}
		if q.Error != "NONE" || !tr.answers(q.Query, q.Isolation, got) {
			wrong++
		}
	}
	v.lookups = share("wrong", wrong, asked)
	return v
}

func offsets(records []golden.Record) map[int64]bool {
	out := make(map[int64]bool)
	for _, r := range records {
		out[r.Offset] = true
	}
	return out
}

// share says how many of how many, nothing for none.
func share(what string, n, of int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d %s", n, of, what)
}

func missing(want []ledger.Record, got map[int64]bool) string {
	n := 0
	for _, r := range want {
		if !got[r.Offset] {
			n++
		}
	}
	return share("lost", n, len(want))
}

// judgeCommitted judges what a read_committed consumer got: no record of an aborted or an open transaction, and, below
// the last stable offset, all that were committed.
func judgeCommitted(tr *truth, got map[int64]bool) string {
	aborted, undecided, lost := 0, 0, 0
	for offset := range got {
		if tr.aborted[offset] {
			aborted++
		} else if offset >= max(tr.stable, tr.recalled) && offset < tr.book.End { // else it was appended later
			undecided++
		}
	}
	for offset := range tr.committed {
		if !got[offset] && offset < tr.recalled {
			lost++
		}
	}
	return join(share("aborted", aborted, len(got)), share("undecided", undecided, len(got)),
		share("lost", lost, len(tr.committed)))
}

// answers tells whether a look-up by time, at an isolation level, is true: 0 looks up to the log end, 1 up to the last
// stable offset.
func (tr *truth) answers(ts int64, isolation int8, got ledger.Found) bool {
	found := tr.book.ForTime(ts)
	if ts == -3 {
		found = tr.book.Latest()
	}
	if isolation == 0 {
		return got == found
	}
	nothing := ledger.Found{Offset: -1, Timestamp: -1, Epoch: -1}
	return got == found && found.Offset < max(tr.stable, tr.recalled) ||
		got == nothing && found.Offset >= min(tr.stable, tr.recalled)
}
