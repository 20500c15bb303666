package commitlog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/record"
	"tidemark/test/golden"
)

// TestGoldenCommitted reads each case as a read_committed consumer does: up to the last stable offset, without the
// transactions that a read names as aborted. Small reads, so that transactions begin and end in different ones.
func TestGoldenCommitted(t *testing.T) {
	transactions := 0
	for _, c := range golden.Cases(t, goldenCases...) {
		want, stopped := c.CommittedRecords(t)
		if stopped != "" {
			t.Fatalf("%s: the consumer stopped: %s", c.Name, stopped)
		}
		t.Run(c.Name, func(t *testing.T) {
			o := goldenOptions(t, c, golden.Final)
			o.StartOffset = startOf(t, c)
			l := openGolden(t, o)
			for _, maxBytes := range []int{1, 500, 1 << 20} {
				got, aborted := readCommitted(t, l, maxBytes)
				transactions += aborted
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("reads of %d bytes (-kafka +tidemark):\n%s", maxBytes, diff)
				}
			}
		})
	}
	if transactions == 0 {
		t.Error("no read named an aborted transaction")
	}
}

// readCommitted reads a log to its last stable offset; aborted counts the transactions that reads named.
func readCommitted(t *testing.T, l *Log, maxBytes int) (all []golden.Record, aborted int) {
	t.Helper()
	end := l.LastStableOffset(l.EndOffset())
	for offset := l.StartOffset(); offset < end; {
		s, err := l.Read(offset, ReadOptions{MaxBytes: maxBytes, MinOneBatch: true, UpTo: end, Isolation: ReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		data, err := s.Bytes()
		s.Release()
		if err != nil || len(data) == 0 {
			t.Fatalf("read at %d: %d bytes, %v", offset, len(data), err)
		}
		first := map[int64][]int64{} // of the aborted transactions of each producer, ascending
		for _, a := range s.AbortedTxns {
			first[a.ProducerID] = append(first[a.ProducerID], a.FirstOffset)
			aborted++
		}
		kept, next := withoutAborted(t, data, first)
		records, _ := decodeRecords(t, kept, offset)
		all, offset = append(all, records...), next
	}
	return all, aborted
}

// withoutAborted drops the batches of aborted transactions, as a consumer does: one is open from its first offset to
// the producer's next marker. It returns the offset behind the batches as well.
func withoutAborted(t *testing.T, data []byte, first map[int64][]int64) (kept []byte, next int64) {
	t.Helper()
	open := map[int64]bool{}
	for {
		h, entry, rest, err := record.NextEntry(data)
		if err != nil {
			return kept, next
		}
		data, next = rest, h.NextOffset()
		id := h.ProducerID
		if waiting := first[id]; len(waiting) > 0 && waiting[0] <= h.LastOffset {
			first[id] = waiting[1:]
			open[id] = true
		}
		switch {
		case h.IsControl():
			delete(open, id)
		case !h.IsTransactional() || !open[id]:
			kept = append(kept, entry...)
		}
	}
}
