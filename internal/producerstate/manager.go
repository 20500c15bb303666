package producerstate

import (
	"fmt"
	"log/slog"
	"slices"
	"sort"

	"tidemark/vfs"
)

// lateTxnBufferMs is granted to a transaction beyond the largest timeout before it
// counts as left hanging.
const lateTxnBufferMs = 5 * 60 * 1000

// Options describe the partition of a Manager.
type Options struct {
	FS              vfs.FS
	Dir             string // the partition's folder
	Topic           string
	Partition       int32
	ExpirationMs    int64        // producer.id.expiration.ms
	MaxTxnTimeoutMs int64        // transaction.max.timeout.ms
	Logger          *slog.Logger // nil: silent
}

// Manager is the state of all producers of one partition.
type Manager struct {
	o         Options
	producers longMap[*Entry]
	snapshots []int64 // offsets of the snapshot files, ascending

	ongoing      txnList // open
	unreplicated txnList // ended by a marker at or above the high watermark

	end     int64 // the state covers the records before this offset
	lastEnd int64 // end at the last snapshot
}

// New makes the state of an empty log. snapshots are the offsets of the snapshot
// files in the folder (see [ParseSnapshotName]); nothing is read until
// [Manager.TruncateAndReload].
func New(o Options, snapshots []int64) *Manager {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{o: o, snapshots: slices.Clone(snapshots)}
	slices.Sort(m.snapshots)
	m.snapshots = slices.Compact(m.snapshots)
	return m
}

// Duplicate finds the batch among the last BatchesKept of its producer that has
// the same epoch and sequence range: a client's retry of it. Contents are not
// compared.
func (m *Manager) Duplicate(b Batch) (StoredBatch, bool) {
	e, ok := m.producers.get(b.ProducerID)
	if !ok {
		return StoredBatch{}, false
	}
	return e.duplicate(b)
}

// Apply makes an Update part of the state, after its batches went to the log. The
// end offset and the completed transactions are the caller's next steps.
func (m *Manager) Apply(u *Update) {
	for producerID, p := range u.pending.all {
		if e, ok := m.producers.get(producerID); ok {
			e.merge(&p.updated)
		} else {
			e := p.updated
			m.producers.put(producerID, &e)
		}
		for _, t := range p.started {
			m.ongoing.put(t)
		}
	}
}

// Replay takes in one batch of the log, which is never refused for epoch or
// sequence, and moves the end offset behind it. When the batch ended a
// transaction, done tells which, and lastStable the offset that a transaction
// index entry of it needs. Errors: *InvalidTxnStateError, *UnknownTxnError.
func (m *Manager) Replay(b Batch) (done *CompletedTxn, lastStable int64, err error) {
	u := m.Begin(Replication)
	if err := u.Add(b); err != nil {
		return nil, 0, err
	}
	m.Apply(u)
	for _, c := range u.Completed() {
		lastStable = m.LastStableOffset(c)
		if err := m.CompleteTxn(c); err != nil {
			return nil, 0, err
		}
		done = &c
	}
	m.SetEndOffset(b.LastOffset + 1)
	return done, lastStable, nil
}

// SetEndOffset tells up to where the log was taken in, exclusive.
func (m *Manager) SetEndOffset(offset int64) { m.end = offset }

// EndOffset is the offset up to which the state covers the log, exclusive.
func (m *Manager) EndOffset() int64 { return m.end }

// Get is a copy of the state of one producer.
func (m *Manager) Get(producerID int64) (Entry, bool) {
	e, ok := m.producers.get(producerID)
	if !ok {
		return Entry{}, false
	}
	return e.clone(), true
}

// ActiveProducers is a copy of all states, in the order of a snapshot.
func (m *Manager) ActiveProducers() []Entry {
	out := make([]Entry, 0, m.producers.size)
	for _, e := range m.producers.all {
		out = append(out, e.clone())
	}
	return out
}

// Len is the number of producers.
func (m *Manager) Len() int { return m.producers.size }

// IsEmpty says that neither a producer nor an unreplicated transaction is known.
func (m *Manager) IsEmpty() bool { return m.producers.size == 0 && len(m.unreplicated) == 0 }

// expired: the producer is idle, and its last record old, by the clock given. Note
// that records may be old when they arrive.
func (m *Manager) expired(e *Entry, nowMs int64) bool {
	return e.CurrentTxnFirstOffset == NoOffset && nowMs-e.LastTimestamp >= m.o.ExpirationMs
}

// SetExpiration is ExpirationMs from now on.
func (m *Manager) SetExpiration(ms int64) { m.o.ExpirationMs = ms }

// Expire forgets the producers without an open transaction whose last timestamp
// is ExpirationMs or more before nowMs.
func (m *Manager) Expire(nowMs int64) (removed int) {
	return m.producers.removeIf(func(e *Entry) bool { return m.expired(e, nowMs) })
}

// clear forgets all producers and transactions.
func (m *Manager) clear() {
	m.producers.clear()
	m.ongoing, m.unreplicated = nil, nil
}

// ongoingTxn is a transaction that has records in the log.
type ongoingTxn struct {
	producerID  int64
	firstOffset int64
	lastOffset  int64 // of the marker, when it has one
}

// txnList holds transactions by first offset, ascending.
type txnList []ongoingTxn

func (l txnList) find(firstOffset int64) (int, bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].firstOffset >= firstOffset })
	return i, i < len(l) && l[i].firstOffset == firstOffset
}

func (l *txnList) put(t ongoingTxn) {
	i, found := l.find(t.firstOffset)
	if found {
		(*l)[i] = t
		return
	}
	*l = slices.Insert(*l, i, t)
}

// UnknownTxnError is the end of a transaction that did not begin.
type UnknownTxnError struct {
	Txn       CompletedTxn
	Topic     string
	Partition int32
}

func (e *UnknownTxnError) Error() string {
	return fmt.Sprintf("transaction of producer %d from offset %d in partition %s-%d ends at %d but is not open",
		e.Txn.ProducerID, e.Txn.FirstOffset, e.Topic, e.Partition, e.Txn.LastOffset)
}

// LastStableOffset is what the transaction index keeps beside an aborted
// transaction: the first offset of the oldest open transaction of another
// producer, else the offset behind the marker. It is asked for before CompleteTxn.
func (m *Manager) LastStableOffset(c CompletedTxn) int64 {
	for _, t := range m.ongoing {
		if t.producerID != c.ProducerID {
			return t.firstOffset
		}
	}
	return c.LastOffset + 1
}

// CompleteTxn notes that a transaction has its marker in the log. It holds back
// the first unstable offset until the high watermark has passed the marker. A
// transaction that is not open is an *UnknownTxnError.
func (m *Manager) CompleteTxn(c CompletedTxn) error {
	i, found := m.ongoing.find(c.FirstOffset)
	if !found {
		return &UnknownTxnError{Txn: c, Topic: m.o.Topic, Partition: m.o.Partition}
	}
	t := m.ongoing[i]
	m.ongoing = slices.Delete(m.ongoing, i, i+1)
	t.lastOffset = c.LastOffset
	m.unreplicated.put(t)
	return nil
}

// FirstUnstableOffset is the first offset of the oldest transaction that is open,
// or whose marker lies at or above the high watermark.
func (m *Manager) FirstUnstableOffset() (int64, bool) {
	first, ok := m.FirstUndecidedOffset()
	if len(m.unreplicated) > 0 && (!ok || m.unreplicated[0].firstOffset < first) {
		return m.unreplicated[0].firstOffset, true
	}
	return first, ok
}

// FirstUndecidedOffset is the first offset of the oldest open transaction.
func (m *Manager) FirstUndecidedOffset() (int64, bool) {
	if len(m.ongoing) == 0 {
		return NoOffset, false
	}
	return m.ongoing[0].firstOffset, true
}

// UpdateHighWatermark lets go of the transactions whose markers lie below it.
func (m *Manager) UpdateHighWatermark(highWatermark int64) {
	m.unreplicated = slices.DeleteFunc(m.unreplicated, func(t ongoingTxn) bool {
		return t.lastOffset < highWatermark
	})
}

// HasLateTxn says that the oldest open transaction is past the largest timeout by
// more than five minutes: nobody will end it.
func (m *Manager) HasLateTxn(nowMs int64) bool {
	if len(m.ongoing) == 0 {
		return false
	}
	e, ok := m.producers.get(m.ongoing[0].producerID)
	return ok && e.LastTimestamp > 0 && nowMs-e.LastTimestamp > m.o.MaxTxnTimeoutMs+lateTxnBufferMs
}
