package producerstate

import (
	"math"
	"slices"
)

// BatchesKept is how many batches of a producer are remembered.
const BatchesKept = 5

// Values that stand for "none".
const (
	NoProducerID  int64 = -1
	NoEpoch       int16 = -1
	NoSequence    int32 = -1
	NoTimestamp   int64 = -1
	NoOffset      int64 = -1
	noCoordinator int32 = -1
)

// StoredBatch is a batch that a producer wrote.
type StoredBatch struct {
	LastSequence int32
	LastOffset   int64
	OffsetDelta  int32 // last offset - base offset
	Timestamp    int64 // the batch's largest, ms
}

// BaseOffset is the offset of the first record.
func (b StoredBatch) BaseOffset() int64 { return b.LastOffset - int64(b.OffsetDelta) }

// FirstSequence is the sequence number of the first record; numbers wrap from
// 2147483647 to 0.
func (b StoredBatch) FirstSequence() int32 {
	if b.LastSequence < b.OffsetDelta {
		return math.MaxInt32 - (b.OffsetDelta - b.LastSequence) + 1
	}
	return b.LastSequence - b.OffsetDelta
}

// Entry is the state of one producer.
type Entry struct {
	ProducerID            int64
	ProducerEpoch         int16
	CoordinatorEpoch      int32 // of the last transaction marker; -1: none
	LastTimestamp         int64 // of the last batch or marker, ms
	CurrentTxnFirstOffset int64 // NoOffset: no open transaction

	batches []StoredBatch // oldest first, at most BatchesKept
}

// emptyEntry is the state of a producer that is not known.
func emptyEntry(producerID int64) Entry {
	return Entry{
		ProducerID:            producerID,
		ProducerEpoch:         NoEpoch,
		CoordinatorEpoch:      noCoordinator,
		LastTimestamp:         NoTimestamp,
		CurrentTxnFirstOffset: NoOffset,
	}
}

// Batches lists the batches remembered, oldest first. Only those of the present
// epoch are kept.
func (e *Entry) Batches() []StoredBatch { return slices.Clone(e.batches) }

// LastBatch is the newest batch. Without one ok is false and the batch is what a
// snapshot says then: sequence and offset -1, delta 0.
func (e *Entry) LastBatch() (b StoredBatch, ok bool) {
	if len(e.batches) == 0 {
		return StoredBatch{LastSequence: NoSequence, LastOffset: NoOffset, Timestamp: NoTimestamp}, false
	}
	return e.batches[len(e.batches)-1], true
}

func (e *Entry) lastSequence() int32 {
	b, _ := e.LastBatch()
	return b.LastSequence
}

func (e *Entry) clone() Entry {
	c := *e
	c.batches = slices.Clone(e.batches)
	return c
}

// duplicate finds the remembered batch with the same epoch and sequence range.
func (e *Entry) duplicate(b Batch) (StoredBatch, bool) {
	if b.ProducerEpoch != e.ProducerEpoch {
		return StoredBatch{}, false
	}
	for _, s := range e.batches {
		if s.FirstSequence() == b.BaseSequence && s.LastSequence == b.LastSequence {
			return s, true
		}
	}
	return StoredBatch{}, false
}

// setEpoch forgets the batches of another epoch.
func (e *Entry) setEpoch(epoch int16) {
	if e.ProducerEpoch != epoch {
		e.ProducerEpoch = epoch
		e.batches = e.batches[:0]
	}
}

func (e *Entry) addBatch(s StoredBatch) {
	if len(e.batches) == BatchesKept {
		copy(e.batches, e.batches[1:])
		e.batches = e.batches[:BatchesKept-1]
	}
	e.batches = append(e.batches, s)
}

// merge takes in the outcome of an append, whose batches follow those known.
func (e *Entry) merge(next *Entry) {
	e.setEpoch(next.ProducerEpoch)
	for _, s := range next.batches {
		e.addBatch(s)
	}
	e.CoordinatorEpoch = next.CoordinatorEpoch
	e.CurrentTxnFirstOffset = next.CurrentTxnFirstOffset
	e.LastTimestamp = next.LastTimestamp
}
