package producerstate

// Origin says who appends, and so what is checked.
type Origin int

// Origins of an append.
const (
	Client      Origin = iota // a producer: epoch and sequence
	Coordinator               // markers, offset commits: epoch only
	Replication               // a follower's append, or the log itself being loaded: nothing
	RaftLeader                // the metadata log, which has no producers
)

// Batch is what producer state needs to know of one batch in the log.
type Batch struct {
	ProducerID    int64 // ≥ 0: batches of no producer are not passed here
	ProducerEpoch int16
	BaseSequence  int32
	LastSequence  int32
	BaseOffset    int64
	LastOffset    int64
	MaxTimestamp  int64 // ms
	Transactional bool
	Control       bool
	Marker        *Marker // of a control batch; nil when compaction took its record

	SegmentBase, Pos int64 // where the batch goes, for messages; -1: not known
}

// Marker is the end of a transaction.
type Marker struct {
	Abort              bool // else commit
	CoordinatorEpoch   int32
	Timestamp          int64 // of the record, ms
	TransactionVersion int16 // that a coordinator wrote it with; the log does not tell
}

// CompletedTxn is a transaction that a marker ended.
type CompletedTxn struct {
	ProducerID  int64
	FirstOffset int64 // of its first record
	LastOffset  int64 // of the marker
	Aborted     bool
}

// Update collects what the batches of one append change, without changing it yet:
// every batch is checked against the state after those before it. It is used
// once: [Manager.Begin], Add for each batch, write the log, [Manager.Apply].
type Update struct {
	m         *Manager
	origin    Origin
	pending   longMap[*pendingEntry]
	completed []CompletedTxn
}

// pendingEntry is a producer's state before and after the batches of an append;
// updated holds only the new batches.
type pendingEntry struct {
	current *Entry
	updated Entry
	started []ongoingTxn
}

// Begin starts an append.
func (m *Manager) Begin(origin Origin) *Update { return &Update{m: m, origin: origin} }

// Completed lists the transactions that markers among the batches end. After
// Apply, each goes into the transaction index if aborted, with
// [Manager.LastStableOffset], and then to [Manager.CompleteTxn], in order.
func (u *Update) Completed() []CompletedTxn { return u.completed }

// Add checks a batch and takes it in. After an error the Update is of no use.
// Errors: *OutOfOrderSequenceError (Client only), *InvalidProducerEpochError and
// *TransactionCoordinatorFencedError (not for Replication), *InvalidTxnStateError.
func (u *Update) Add(b Batch) error {
	p, ok := u.pending.get(b.ProducerID)
	if !ok {
		p = u.m.prepare(b.ProducerID)
		u.pending.put(b.ProducerID, p)
	}
	if !b.Control {
		return u.addData(p, b)
	}
	if b.Marker == nil {
		return nil
	}
	return u.addMarker(p, b)
}

// prepare copies a producer's state without its batches.
func (m *Manager) prepare(producerID int64) *pendingEntry {
	current, ok := m.producers.get(producerID)
	if !ok {
		e := emptyEntry(producerID)
		current = &e
	}
	p := &pendingEntry{current: current, updated: *current}
	p.updated.batches = nil
	return p
}

func (u *Update) place(b Batch) place {
	return place{Topic: u.m.o.Topic, Partition: u.m.o.Partition, ProducerID: b.ProducerID, Offset: b.BaseOffset}
}

func (u *Update) addData(p *pendingEntry, b Batch) error {
	if err := u.checkEpoch(p, b, unknownTV); err != nil {
		return err
	}
	if u.origin == Client {
		if err := u.checkSequence(p, b); err != nil {
			return err
		}
	}
	e := &p.updated
	e.setEpoch(b.ProducerEpoch)
	e.addBatch(StoredBatch{
		LastSequence: b.LastSequence,
		LastOffset:   b.LastOffset,
		OffsetDelta:  int32(b.LastOffset - b.BaseOffset),
		Timestamp:    b.MaxTimestamp,
	})
	e.LastTimestamp = b.MaxTimestamp
	open := e.CurrentTxnFirstOffset != NoOffset
	switch {
	case open && !b.Transactional:
		return &InvalidTxnStateError{place: u.place(b), SegmentBase: b.SegmentBase, Pos: b.Pos}
	case !open && b.Transactional:
		e.CurrentTxnFirstOffset = b.BaseOffset
		p.started = append(p.started, ongoingTxn{producerID: b.ProducerID, firstOffset: b.BaseOffset})
	}
	return nil
}

// checkEpoch refuses an epoch smaller than the known one. A marker of transactions
// v2 must have a larger one, unless it repeats a marker that was written already.
//
// Kafka: ProducerAppendInfo.checkProducerEpoch, KIP-890.
func (u *Update) checkEpoch(p *pendingEntry, b Batch, version int16) error {
	known := p.updated.ProducerEpoch
	if version >= txnV2 {
		repeated := b.ProducerEpoch == known &&
			(p.updated.CurrentTxnFirstOffset == NoOffset || b.ProducerEpoch == maxEpoch)
		if b.ProducerEpoch > known || repeated {
			return nil
		}
	} else if b.ProducerEpoch >= known {
		return nil
	}
	err := &InvalidProducerEpochError{place: u.place(b), Epoch: b.ProducerEpoch, KnownEpoch: known,
		TransactionVersion: version}
	if u.origin == Replication {
		u.m.o.Logger.Warn("producer epoch in the log goes back", "error", err)
		return nil
	}
	return err
}

// checkSequence wants 0 for the first batch of a new epoch and the successor of
// the last number within an epoch. A producer that is not known may start anywhere.
func (u *Update) checkSequence(p *pendingEntry, b Batch) error {
	known := p.updated.ProducerEpoch
	last := NoSequence
	ok := false
	if b.ProducerEpoch != known {
		ok = b.BaseSequence == 0 || known == NoEpoch
	} else {
		if len(p.updated.batches) > 0 {
			last = p.updated.lastSequence()
		} else if b.ProducerEpoch == p.current.ProducerEpoch {
			last = p.current.lastSequence()
		}
		ok = p.current.ProducerEpoch == NoEpoch || follows(last, b.BaseSequence)
	}
	if ok {
		return nil
	}
	return &OutOfOrderSequenceError{place: u.place(b), Sequence: b.BaseSequence, LastSequence: last,
		Epoch: b.ProducerEpoch, KnownEpoch: known}
}

func follows(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == maxSequence
}

func (u *Update) addMarker(p *pendingEntry, b Batch) error {
	if err := u.checkEpoch(p, b, b.Marker.TransactionVersion); err != nil {
		return err
	}
	if err := u.checkCoordinator(p, b); err != nil {
		return err
	}
	e := &p.updated
	if first := e.CurrentTxnFirstOffset; first != NoOffset {
		// A marker that ends no transaction leaves no trace in the index.
		u.completed = append(u.completed, CompletedTxn{ProducerID: b.ProducerID, FirstOffset: first,
			LastOffset: b.BaseOffset, Aborted: b.Marker.Abort})
	}
	e.setEpoch(b.ProducerEpoch)
	e.CoordinatorEpoch = b.Marker.CoordinatorEpoch
	e.CurrentTxnFirstOffset = NoOffset
	e.LastTimestamp = b.Marker.Timestamp
	return nil
}

func (u *Update) checkCoordinator(p *pendingEntry, b Batch) error {
	known := p.updated.CoordinatorEpoch
	if b.Marker.CoordinatorEpoch >= known {
		return nil
	}
	err := &TransactionCoordinatorFencedError{place: u.place(b), Epoch: b.Marker.CoordinatorEpoch, KnownEpoch: known}
	if u.origin == Replication {
		u.m.o.Logger.Info("coordinator epoch in the log goes back", "error", err)
		return nil
	}
	return err
}
