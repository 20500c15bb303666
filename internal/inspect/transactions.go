package inspect

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"

	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// Transaction is one transaction's part in a partition.
type Transaction struct {
	Type          string `json:"type"` // "transaction"
	Topic         string `json:"topic"`
	Partition     int32  `json:"partition"`
	ProducerID    int64  `json:"producerId"`
	ProducerEpoch int16  `json:"producerEpoch"`
	State         string `json:"state"`          // "committed", "aborted" or "open"
	FirstOffset   int64  `json:"firstOffset"`    // of its first record
	MarkerOffset  int64  `json:"markerOffset"`   // -1: open
	FirstTime     int64  `json:"firstTimestamp"` // ms; -1: not seen, it began in deleted segments
	EndTime       int64  `json:"endTimestamp"`   // of the marker; for an open one of its last batch
	Batches       int64  `json:"batches"`        // those that are still in the log
	Records       int64  `json:"records"`
	Bytes         int64  `json:"bytes"`
}

// TransactionSummary is what readers of committed records see.
type TransactionSummary struct {
	Type             string `json:"type"` // "transactions"
	Topic            string `json:"topic"`
	Partition        int32  `json:"partition"`
	Committed        int64  `json:"committed"`
	Aborted          int64  `json:"aborted"`
	Open             int64  `json:"open"`
	EndOffset        int64  `json:"endOffset"`
	LastStableOffset int64  `json:"lastStableOffset"` // readers of committed records get no further
}

// Transactions calls a function for each transaction, in the order of their ends, the open ones last. In memory are the
// open transactions and an entry for each producer id in the log, none for transactions that have ended. progress,
// which may be nil, is called with numbers of bytes passed. Errors are the disk's and the function's; damaged parts are
// left out.
func Transactions(fsys vfs.FS, t Target, progress func(bytes int64),
	each func(Transaction) error) (*TransactionSummary, error) {
	f, err := readFolder(fsys, t.Dir)
	if err != nil {
		return nil, err
	}
	s := &TransactionSummary{Type: "transactions", Topic: t.Topic, Partition: t.Partition}
	first := slices.IndexFunc(f.logs, t.wants)
	if first < 0 {
		return s, nil
	}
	s.EndOffset = f.logs[first]
	_, snapshotErr := readSnapshot(fsys, t.Dir, f.logs[first])
	state, err := newReplay(fsys, t, f.logs[first], snapshotErr == nil)
	if err != nil {
		return nil, err
	}
	w := &txnWalk{target: t, state: state, open: make(map[int64]*Transaction), summary: s, each: each, passed: progress}
	w.known()
	for i, base := range f.logs {
		if !t.wants(base) {
			continue
		}
		if err := w.segment(fsys, base, f.nextBase(i)); err != nil {
			return nil, err
		}
	}
	return s, w.finish()
}

// segment goes over the batches of a segment. Behind bytes that are no batch it goes on with the next good one.
func (w *txnWalk) segment(fsys vfs.FS, base, next int64) error {
	name := filepath.Join(w.target.Dir, segment.Name(base, segment.LogSuffix))
	f, err := fsys.Open(name)
	if isAbsent(err) {
		return nil // a broker deleted it meanwhile
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	most := base + math.MaxInt32
	if next >= 0 {
		most = min(most, next-1)
	}
	sc := record.NewScanner(f, 0, info.Size())
	sc.MaxBatchBytes = maxDecoded
	for {
		for sc.Next() {
			if err := w.batch(sc.Header(), sc.Batch); err != nil {
				return err
			}
		}
		if err := sc.Err(); err == nil || !isDamage(err) {
			return err
		}
		from, ok := resync(f, sc.Pos()+1, info.Size(), info.Size(), max(base, w.summary.EndOffset), most)
		if !ok {
			return nil
		}
		sc.Reset(f, from, info.Size())
	}
}

type txnWalk struct {
	target  Target
	state   *replay
	open    map[int64]*Transaction // by producer
	summary *TransactionSummary
	each    func(Transaction) error
	passed  func(bytes int64) // may be nil
}

// known begins with the transactions that were open before the first segment.
func (w *txnWalk) known() {
	for _, e := range w.state.m.ActiveProducers() {
		if e.CurrentTxnFirstOffset >= 0 {
			w.open[e.ProducerID] = w.begin(e.ProducerID, e.ProducerEpoch, e.CurrentTxnFirstOffset, -1)
		}
	}
}

func (w *txnWalk) begin(id int64, epoch int16, first, at int64) *Transaction {
	return &Transaction{
		Type: "transaction", Topic: w.target.Topic, Partition: w.target.Partition, ProducerID: id, ProducerEpoch: epoch,
		State: "open", FirstOffset: first, MarkerOffset: -1, FirstTime: at, EndTime: at,
	}
}

func (w *txnWalk) batch(h record.Header, entry func() ([]byte, error)) error {
	w.summary.EndOffset = h.NextOffset()
	if w.passed != nil {
		w.passed(int64(h.SizeBytes))
	}
	if h.Magic < 2 || !h.HasProducerID() {
		return nil
	}
	var data []byte
	if h.IsControl() {
		var err error
		if data, err = entry(); err != nil {
			return nil // damaged: told by verify
		}
	}
	done, _, err := w.state.batch(h, data)
	if err != nil {
		return nil
	}
	if done != nil {
		return w.end(h, done)
	}
	if !h.IsTransactional() || h.IsControl() {
		return nil
	}
	t := w.open[h.ProducerID]
	if t == nil {
		t = w.begin(h.ProducerID, h.ProducerEpoch, h.BaseOffset, firstTimestamp(h))
		w.open[h.ProducerID] = t
	}
	t.Batches++
	t.Records += int64(h.Count)
	t.Bytes += int64(h.SizeBytes)
	t.EndTime = h.MaxTimestamp
	return nil
}

func (w *txnWalk) end(h record.Header, done *producerstate.CompletedTxn) error {
	t := w.open[h.ProducerID]
	if t == nil {
		t = w.begin(h.ProducerID, h.ProducerEpoch, done.FirstOffset, -1)
	}
	delete(w.open, h.ProducerID)
	t.State, t.MarkerOffset, t.EndTime = "committed", done.LastOffset, h.MaxTimestamp
	if done.Aborted {
		t.State = "aborted"
		w.summary.Aborted++
	} else {
		w.summary.Committed++
	}
	return w.each(*t)
}

func (w *txnWalk) finish() error {
	s := w.summary
	s.LastStableOffset = s.EndOffset
	var open []*Transaction
	for _, t := range w.open {
		open = append(open, t)
	}
	slices.SortFunc(open, func(a, b *Transaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	for _, t := range open {
		s.Open++
		s.LastStableOffset = min(s.LastStableOffset, t.FirstOffset)
		if err := w.each(*t); err != nil {
			return err
		}
	}
	return nil
}
