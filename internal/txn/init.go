package txn

// Init gives a producer its id and epoch, and fences the one before it. expected is what the producer believes to
// have, or NoProducer.
//
// If a transaction is open, the Write aborts it under a raised epoch, and the answer after it is ErrConcurrent: the
// producer asks again when the abort is complete.
//
// Errors: ErrInvalidRequest, ErrInvalidTimeout, ErrConcurrent, ErrFenced, ErrExhausted, those of
// Options.NewProducerID. A Write that comes with an error is appended all the same.
func (m *Machine) Init(id string, timeoutMs int32, expected Producer, nowMs int64) (Producer, *Write, error) {
	switch {
	case id == "":
		return NoProducer, nil, ErrInvalidRequest
	case timeoutMs <= 0 || timeoutMs > m.o.MaxTimeoutMs:
		return NoProducer, nil, ErrInvalidTimeout
	}
	before, err := m.valueForInit(id)
	if err != nil {
		return NoProducer, nil, err
	}
	if t := m.byID[id]; t != nil && t.blocked() {
		return NoProducer, nil, ErrConcurrent
	}
	if expected != NoProducer && !mayBe(before, expected) {
		return NoProducer, nil, ErrFenced
	}
	if before.State == Ongoing {
		w, err := m.abortFenced(id, before, nowMs)
		if err == nil {
			err = ErrConcurrent
		}
		return NoProducer, w, err
	}
	next, err := m.nextProducer(before, expected)
	if err != nil {
		return NoProducer, nil, err
	}
	next.State, next.Partitions, next.StartMs = Empty, nil, -1
	next.TimeoutMs, next.LastUpdateMs = timeoutMs, nowMs
	return next.Producer, m.write(id, before, next), nil
}

// valueForInit is the state of an id, or that of a new one, which has a producer id and no epoch yet.
func (m *Machine) valueForInit(id string) (Value, error) {
	if t := m.byID[id]; t != nil {
		return t.Value, nil
	}
	v := newValue()
	producerID, err := m.o.NewProducerID()
	v.ID = producerID
	return v, err
}

// mayBe tells whether a producer that believes to be expected may go on: the id is new, the producer id fits (the
// epoch is checked when it is raised), or the answer that told of a new producer id was lost.
func mayBe(v Value, expected Producer) bool {
	return v.Epoch == NoProducerEpoch || expected.ID == v.ID ||
		expected.ID == v.PreviousProducerID && exhausted(expected.Epoch)
}

// nextProducer raises the epoch, or takes a new producer id when the epochs are used up.
func (m *Machine) nextProducer(v Value, expected Producer) (Value, error) {
	known := expected != NoProducer
	if exhausted(v.Epoch) {
		if known && expected.Epoch != v.Epoch {
			return v, ErrExhausted
		}
		producerID, err := m.o.NewProducerID()
		last := int16(NoProducerEpoch)
		if known {
			last = v.Epoch
		}
		v.Producer, v.LastEpoch = Producer{ID: producerID}, last
		return v, err
	}
	switch {
	case !known:
		v.Epoch, v.LastEpoch = v.Epoch+1, NoProducerEpoch
	case v.Epoch == NoProducerEpoch || expected.Epoch == v.Epoch:
		v.Epoch, v.LastEpoch = v.Epoch+1, v.Epoch
	case expected.Epoch == v.LastEpoch:
		// A repeated request, whose first answer was lost.
	default:
		return v, ErrFenced
	}
	return v, nil
}
