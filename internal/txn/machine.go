package txn

import (
	"fmt"

	"tidemark/internal/checkpoint"
)

// Transaction versions (KIP-890): at v2 each end of a transaction raises the epoch.
const (
	version0 = 0
	version1 = 1
	version2 = 2
)

// maxEpoch is the largest producer epoch. A client never gets it nor the one before, so that there is always one
// left to fence the producer with.
const maxEpoch = 1<<15 - 1

// exhausted tells whether an epoch cannot be raised for a client any more.
func exhausted(epoch int16) bool { return epoch >= maxEpoch-1 }

// Options are what a machine needs to know. All are required.
type Options struct {
	MaxTimeoutMs int32 // transaction.max.timeout.ms
	ExpirationMs int64 // transactional.id.expiration.ms
	// Version is the finalized transaction.version as it is now.
	Version func() int16
	// NewProducerID gives a producer id that nobody has had; it must not block for long.
	NewProducerID func() (int64, error)
}

// Machine holds the transactional ids of one partition of __transaction_state.
type Machine struct {
	o    Options
	byID map[string]*txn
}

// txn is one transactional id.
type txn struct {
	Value
	// pending: a record of the id is appended and not yet on all in-sync replicas.
	pending bool
	// completedMs is the time at which the outcome was settled; it becomes the closing record's.
	completedMs int64
}

// blocked tells whether commands for the id must wait.
//
// Kafka: pendingState is set while an append is under way, and from the Prepare record to the Complete record.
func (t *txn) blocked() bool { return t.pending || t.State.preparing() }

// Record is a key and value for the log; a nil Value is a tombstone.
type Record struct {
	Key, Value []byte
}

// Write is what a command wants appended as one batch. The caller appends it and then calls Apply; when it is on
// all in-sync replicas, Committed. A Write that could not be appended is dropped: nothing has changed.
type Write struct {
	Records []Record
	changes []change
}

// change is the new state of an id; removed: it is forgotten.
type change struct {
	id      string
	value   Value
	removed bool
}

// IDs are the transactional ids that a write changes.
func (w *Write) IDs() []string {
	ids := make([]string, len(w.changes))
	for i, c := range w.changes {
		ids[i] = c.id
	}
	return ids
}

// Markers are the control records that a transaction with a settled outcome still lacks.
type Markers struct {
	ID         string // transactional id
	Producer   Producer
	Commit     bool
	Version    int16 // of the transaction: 2 asks partitions for the strict check of the epoch
	Partitions []checkpoint.TopicPartition
}

// New makes a machine without ids.
func New(o Options) *Machine {
	return &Machine{o: o, byID: map[string]*txn{}}
}

// Len is the number of transactional ids.
func (m *Machine) Len() int { return len(m.byID) }

// Replay takes in one record of the log while it is loaded; a nil value is a tombstone.
//
// Errors: ErrUnknownKey and those of a malformed record; the machine has not changed then, and the caller may go on.
func (m *Machine) Replay(key, value []byte) error {
	id, err := DecodeKey(key)
	if err != nil {
		return err
	}
	if value == nil {
		delete(m.byID, id)
		return nil
	}
	v, err := DecodeValue(value)
	if err != nil {
		return fmt.Errorf("transactional id %q: %w", id, err)
	}
	m.byID[id] = &txn{Value: v}
	return nil
}

// Loaded ends the loading: it returns the markers of every transaction whose outcome is settled.
func (m *Machine) Loaded(nowMs int64) []Markers {
	var all []Markers
	for id, t := range m.byID {
		if t.State.preparing() {
			t.completedMs = nowMs
			all = append(all, t.markers(id))
		}
	}
	return all
}

// write makes the record for a transition of one id.
//
// Kafka: each transition notes the producer id before it as the previous one.
func (m *Machine) write(id string, before, next Value) *Write {
	next.PreviousProducerID = before.ID
	return &Write{
		Records: []Record{{Key: EncodeKey(id), Value: next.AppendTo(nil, m.valueVersion())}},
		changes: []change{{id: id, value: next}},
	}
}

// valueVersion is the version of the log's values: transaction.version 1 brought the flexible one.
func (m *Machine) valueVersion() int16 {
	if m.o.Version() >= version1 {
		return flexibleVersion
	}
	return classicVersion
}

// Apply takes on what was appended. The ids are pending until Committed.
func (m *Machine) Apply(w *Write) {
	for _, c := range w.changes {
		t := m.byID[c.id]
		if t == nil {
			t = &txn{Value: newValue()}
			m.byID[c.id] = t
		}
		t.pending = true
		if !c.removed {
			t.Value = c.value
		}
	}
}

// Committed ends the wait of the ids of a write that is on all in-sync replicas. It returns the markers of
// transactions whose outcome is settled by it.
func (m *Machine) Committed(w *Write, nowMs int64) []Markers {
	var all []Markers
	for _, c := range w.changes {
		t := m.byID[c.id]
		if t == nil {
			continue
		}
		t.pending = false
		switch {
		case c.removed:
			delete(m.byID, c.id)
		case t.State.preparing():
			t.completedMs = nowMs
			all = append(all, t.markers(c.id))
		}
	}
	return all
}

func (t *txn) markers(id string) Markers {
	return Markers{ID: id, Producer: t.Producer, Commit: t.State == PrepareCommit, Version: t.ClientVersion,
		Partitions: append([]checkpoint.TopicPartition(nil), t.Partitions...)}
}

// Unmarked returns the markers that the settled transaction of an id still lacks, to try again; not ok when there is
// no settled transaction, or its closing record is under way. Without partitions, Complete is due.
func (m *Machine) Unmarked(id string) (markers Markers, ok bool) {
	t := m.byID[id]
	if t == nil || t.pending || !t.State.preparing() {
		return Markers{}, false
	}
	return t.markers(id), true
}

// Deadline is the time after which an open transaction is aborted, in ms.
func (m *Machine) Deadline(id string) (ms int64, open bool) {
	t := m.byID[id]
	if t == nil || t.State != Ongoing {
		return 0, false
	}
	return t.StartMs + int64(t.TimeoutMs), true
}

// Ongoing lists the ids with an open transaction.
func (m *Machine) Ongoing() []string {
	var ids []string
	for id, t := range m.byID {
		if t.State == Ongoing {
			ids = append(ids, id)
		}
	}
	return ids
}
