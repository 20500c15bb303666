package producerstate

import (
	"fmt"
	"math"
)

// place says where an append was refused; messages show it.
type place struct {
	Topic      string
	Partition  int32
	ProducerID int64
	Offset     int64 // that the first record of the batch would have had
}

func (p place) partition() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// OutOfOrderSequenceError is a batch that does not follow the producer's last one.
type OutOfOrderSequenceError struct {
	place
	Sequence     int32 // of the first record
	LastSequence int32 // of the last batch known; NoSequence: none
	Epoch        int16
	KnownEpoch   int16
}

// Error is Kafka's text, with its missing blank.
func (e *OutOfOrderSequenceError) Error() string {
	if e.Epoch != e.KnownEpoch {
		return fmt.Sprintf("Invalid sequence number for new epoch of producer %dat offset %d in partition %s: "+
			"%d (request epoch), %d (seq. number), %d (current producer epoch)",
			e.ProducerID, e.Offset, e.partition(), e.Epoch, e.Sequence, e.KnownEpoch)
	}
	return fmt.Sprintf("Out of order sequence number for producer %d at offset %d in partition %s: "+
		"%d (incoming seq. number), %d (current end sequence number)",
		e.ProducerID, e.Offset, e.partition(), e.Sequence, e.LastSequence)
}

// InvalidProducerEpochError is a batch or marker of an epoch that is over.
type InvalidProducerEpochError struct {
	place
	Epoch              int16
	KnownEpoch         int16
	TransactionVersion int16 // of a marker; -1 for a batch of data
}

// Error is Kafka's text.
func (e *InvalidProducerEpochError) Error() string {
	sign := "<"
	if e.TransactionVersion >= txnV2 {
		sign = "<="
	}
	return fmt.Sprintf("Epoch of producer %d at offset %d in %s is %d, which is %s the last seen epoch %d (TV%d)",
		e.ProducerID, e.Offset, e.partition(), e.Epoch, sign, e.KnownEpoch, e.TransactionVersion)
}

// InvalidTxnStateError is a batch outside a transaction from a producer that has
// one open.
type InvalidTxnStateError struct {
	place
	SegmentBase, Pos int64 // where the batch would have gone; -1: not known
}

// Error is Kafka's text.
func (e *InvalidTxnStateError) Error() string {
	return fmt.Sprintf("Expected transactional write from producer %d at offset (offset=%d, segment=[%d:%d]) "+
		"in partition %s",
		e.ProducerID, e.Offset, e.SegmentBase, e.Pos, e.partition())
}

// TransactionCoordinatorFencedError is a marker of a coordinator that was replaced.
type TransactionCoordinatorFencedError struct {
	place
	Epoch      int32
	KnownEpoch int32
}

// Error is Kafka's text.
func (e *TransactionCoordinatorFencedError) Error() string {
	return fmt.Sprintf("Invalid coordinator epoch for producerId %d at offset %d in partition %s: "+
		"%d (zombie), %d (current)",
		e.ProducerID, e.Offset, e.partition(), e.Epoch, e.KnownEpoch)
}

// CorruptSnapshotError is a snapshot that cannot be used.
type CorruptSnapshotError struct {
	Name   string // path; "" when decoded from memory
	Reason string
}

func (e *CorruptSnapshotError) Error() string {
	if e.Name == "" {
		return "corrupt producer snapshot: " + e.Reason
	}
	return fmt.Sprintf("corrupt producer snapshot %s: %s", e.Name, e.Reason)
}

const (
	txnV2       = 2 // transaction version from which markers carry a bumped epoch
	unknownTV   = -1
	maxEpoch    = math.MaxInt16
	maxSequence = math.MaxInt32
)
