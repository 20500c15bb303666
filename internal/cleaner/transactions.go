package cleaner

import (
	"container/heap"

	"tidemark/internal/index"
	"tidemark/record"
)

// transactions follows the transactions of a log while its batches go by, and tells what of them may go.
type transactions struct {
	ahead     abortedHeap // aborted transactions that have not begun yet
	aborted   map[int64]*abortedTxn
	committed map[int64]bool // producers whose open transaction has data here, not aborted
	// keep is told of an aborted transaction of which data was met before its marker: a reader must know of it as long as
	// the data is there. nil: nobody is.
	keep func(index.AbortedTxn) error
}

// abortedTxn is an aborted transaction that has begun.
type abortedTxn struct {
	index.AbortedTxn
	seen bool // a batch of it was met
}

func newTransactions() *transactions {
	return &transactions{aborted: make(map[int64]*abortedTxn), committed: make(map[int64]bool)}
}

// add makes more aborted transactions known; some may be known already.
func (t *transactions) add(txns []index.AbortedTxn) {
	for _, one := range txns {
		heap.Push(&t.ahead, one)
	}
}

// begin moves on to an offset. Of several transactions of one producer the first one counts until its marker.
func (t *transactions) begin(offset int64) {
	for len(t.ahead) > 0 && t.ahead[0].FirstOffset <= offset {
		one := heap.Pop(&t.ahead).(index.AbortedTxn)
		if t.aborted[one.ProducerID] == nil {
			t.aborted[one.ProducerID] = &abortedTxn{AbortedTxn: one}
		}
	}
}

// data takes in a batch that is no control batch, and reports whether it was aborted.
func (t *transactions) data(h record.Header) bool {
	t.begin(h.LastOffset)
	if !h.IsTransactional() {
		return false
	}
	if one := t.aborted[h.ProducerID]; one != nil {
		one.seen = true
		return true
	}
	t.committed[h.ProducerID] = true
	return false
}

// control takes in a control batch, and reports whether no data of its transaction was met: then it is of no use any
// more. Control records that end no transaction stay.
func (t *transactions) control(h record.Header, entry []byte, it *record.Iterator) (useless bool, err error) {
	t.begin(h.LastOffset)
	if err := it.Reset(entry, record.IterOptions{}); err != nil {
		return false, err
	}
	defer it.Close()
	if !it.Next() {
		return true, it.Err() // it was emptied before
	}
	kind, err := record.ParseControlKey(it.Record().Key)
	if err != nil {
		return false, err
	}
	switch kind {
	case record.ControlAbort:
		one := t.aborted[h.ProducerID]
		delete(t.aborted, h.ProducerID)
		if one == nil || !one.seen {
			return true, nil
		}
		if t.keep != nil {
			err = t.keep(one.AbortedTxn)
		}
		return false, err
	case record.ControlCommit:
		met := t.committed[h.ProducerID]
		delete(t.committed, h.ProducerID)
		return !met, nil
	default:
		return false, nil
	}
}

// abortedHeap is a heap by first offset.
type abortedHeap []index.AbortedTxn

func (h abortedHeap) Len() int           { return len(h) }
func (h abortedHeap) Less(i, j int) bool { return h[i].FirstOffset < h[j].FirstOffset }
func (h abortedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is of heap.Interface.
func (h *abortedHeap) Push(x any) { *h = append(*h, x.(index.AbortedTxn)) }

// Pop is of heap.Interface.
func (h *abortedHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
