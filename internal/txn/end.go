package txn

import (
	"slices"

	"tidemark/internal/checkpoint"
)

// End settles the outcome of the producer's transaction. version is the transaction version by which the client
// works; with 2 the answer holds the producer id and epoch of the next transaction, otherwise NoProducer. No Write
// and no error: the outcome was settled so before, by a request whose answer was lost.
//
// Errors: ErrInvalidRequest, ErrInvalidMapping, ErrFenced, ErrConcurrent, ErrInvalidState, those of
// Options.NewProducerID.
func (m *Machine) End(id string, p Producer, commit bool, version int16, nowMs int64) (Producer, *Write, error) {
	if id == "" {
		return NoProducer, nil, ErrInvalidRequest
	}
	t := m.byID[id]
	if t == nil {
		return NoProducer, nil, ErrInvalidMapping
	}
	if version < version2 {
		w, err := m.endClassic(id, t, p, commit, nowMs)
		return NoProducer, w, err
	}
	return m.endRaising(id, t, p, commit, nowMs)
}

// endClassic is the protocol of KIP-98: the epoch stays.
func (m *Machine) endClassic(id string, t *txn, p Producer, commit bool, nowMs int64) (*Write, error) {
	switch {
	case t.ID != p.ID:
		return nil, ErrInvalidMapping
	case t.Epoch != p.Epoch:
		return nil, ErrFenced
	case t.blocked():
		return nil, ErrConcurrent
	case t.State == completeState(commit):
		return nil, nil
	case t.State != Ongoing:
		return nil, ErrInvalidState
	}
	return m.write(id, t.Value, t.prepared(commit, nowMs)), nil
}

// prepared is the state with a settled outcome, the producer unchanged.
func (v Value) prepared(commit bool, nowMs int64) Value {
	v.State = PrepareAbort
	if commit {
		v.State = PrepareCommit
	}
	v.NextProducerID, v.LastUpdateMs, v.ClientVersion = NoProducerID, nowMs, version0
	return v
}

func completeState(commit bool) State {
	if commit {
		return CompleteCommit
	}
	return CompleteAbort
}

// endRaising is the protocol of KIP-890: the epoch is raised by each end, so that a request with the epoch before is
// a repeated one whose answer was lost; so is one with the last epoch, when a new producer id took over. An abort
// without a transaction is allowed: the producer may not know whether one was begun.
func (m *Machine) endRaising(id string, t *txn, p Producer, commit bool, nowMs int64) (Producer, *Write, error) {
	replaced := t.PreviousProducerID == p.ID && p.Epoch == maxEpoch-1 && t.Epoch == 0
	repeated := t.State.complete() && (replaced || t.ID == p.ID && t.Epoch == p.Epoch+1)
	switch {
	case t.blocked():
		return NoProducer, nil, ErrConcurrent
	case t.ID != p.ID && !replaced:
		return NoProducer, nil, ErrInvalidMapping
	case t.Epoch != p.Epoch && !repeated:
		return NoProducer, nil, ErrFenced
	case t.State == Ongoing:
		return m.raise(id, t.Value, t.StartMs, commit, nowMs)
	case repeated && t.State == completeState(commit):
		return t.Producer, nil, nil
	case repeated || commit:
		return NoProducer, nil, ErrInvalidState
	}
	return m.raise(id, t.Value, nowMs, false, nowMs)
}

// raise settles the outcome and raises the epoch. With the last epoch the transaction ends under it, and a new
// producer id takes over when it is complete; the answer tells of that one.
func (m *Machine) raise(id string, v Value, startMs int64, commit bool, nowMs int64) (Producer, *Write, error) {
	next := v.prepared(commit, nowMs)
	next.ClientVersion, next.StartMs = version2, startMs
	if exhausted(v.Epoch) {
		producerID, err := m.o.NewProducerID()
		if err != nil {
			return NoProducer, nil, err
		}
		next.NextProducerID = producerID
	}
	if v.Epoch < maxEpoch {
		next.Epoch = v.Epoch + 1
	}
	next.LastEpoch = v.Epoch
	return next.completed(nowMs).Producer, m.write(id, v, next), nil
}

// completed is the state after the last marker.
func (v Value) completed(nowMs int64) Value {
	v.State = completeState(v.State == PrepareCommit)
	if v.ClientVersion >= version2 && v.NextProducerID != NoProducerID {
		v.Producer = Producer{ID: v.NextProducerID}
	}
	v.NextProducerID, v.Partitions, v.LastUpdateMs = NoProducerID, nil, nowMs
	return v
}

// abortFenced aborts an open transaction and raises the epoch, so that its producer is fenced.
//
// Kafka: the version of the cluster decides the protocol here, since no client asked.
func (m *Machine) abortFenced(id string, v Value, nowMs int64) (*Write, error) {
	if m.o.Version() >= version2 {
		_, w, err := m.raise(id, v, v.StartMs, false, nowMs)
		return w, err
	}
	next := v.prepared(false, nowMs)
	if v.Epoch < maxEpoch {
		next.Epoch = v.Epoch + 1
	}
	next.LastEpoch = NoProducerEpoch
	return m.write(id, v, next), nil
}

// AbortTimedOut aborts the transaction of an id if it is open for longer than its time-out; otherwise there is
// nothing to write.
func (m *Machine) AbortTimedOut(id string, nowMs int64) (*Write, error) {
	t := m.byID[id]
	if t == nil || t.State != Ongoing || t.blocked() || t.StartMs+int64(t.TimeoutMs) >= nowMs {
		return nil, nil
	}
	return m.abortFenced(id, t.Value, nowMs)
}

// Marked notes that a partition has its marker. It tells whether all partitions have one: Complete is due then.
// A producer that is not the one of the settled transaction is ignored.
func (m *Machine) Marked(id string, p Producer, partition checkpoint.TopicPartition) (done bool) {
	t := m.byID[id]
	if t == nil || !t.State.preparing() || t.Producer != p {
		return false
	}
	t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), func(tp checkpoint.TopicPartition) bool {
		return tp == partition
	})
	return len(t.Partitions) == 0
}

// Complete makes the record that closes a settled transaction of which every partition has its marker. Nothing is
// written when there is none.
func (m *Machine) Complete(id string) *Write {
	t := m.byID[id]
	if t == nil || t.pending || !t.State.preparing() || len(t.Partitions) > 0 {
		return nil
	}
	return m.write(id, t.Value, t.completed(t.completedMs))
}
