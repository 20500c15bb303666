package replica

import (
	"tidemark/internal/commitlog"
	"tidemark/internal/producerstate"
	"tidemark/record"
)

// Verification stands for the question to the transaction coordinator whether a producer may begin a transaction in
// a partition. It is void as soon as any transactional batch or marker of the producer is appended, so that an
// answer that is out of date cannot open a transaction that nobody ends. Under transactions v2 a marker raises the
// epoch: one that raises it to the epoch of the question ended the transaction before, and the question stands.
//
// Kafka: VerificationGuard and VerificationStateEntry, KIP-890, KAFKA-18575.
type Verification struct {
	producerID int64
	epoch      int16
	lowest     int32 // the lowest sequence number that asked
	raising    bool  // transactions v2: the first batch has sequence number 0
}

// maxVerifications bounds the verifications of a partition.
const maxVerifications = 10_000

// BeginVerification is called before a transactional batch of a client is appended. nil: the transaction is open in
// this partition, there is nothing to verify. raising tells that the client works by transactions v2.
//
// Errors: ErrNotLeader, *logdir.OfflineError, *producerstate.InvalidProducerEpochError.
func (p *Partition) BeginVerification(producerID int64, epoch int16, sequence int32, raising bool) (*Verification,
	error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(NoEpoch)
	if err != nil {
		return nil, err
	}
	p.verifyMu.Lock()
	defer p.verifyMu.Unlock()
	if e, ok := log.Producer(producerID); ok {
		switch {
		case epoch < e.ProducerEpoch:
			return nil, &producerstate.InvalidProducerEpochError{Epoch: epoch, KnownEpoch: e.ProducerEpoch,
				TransactionVersion: -1}
		case epoch == e.ProducerEpoch && e.CurrentTxnFirstOffset != producerstate.NoOffset:
			return nil, nil
		}
	}
	return p.verification(producerID, epoch, sequence, raising), nil
}

func (p *Partition) verification(producerID int64, epoch int16, sequence int32, raising bool) *Verification {
	v := p.verifications[producerID]
	switch {
	case v == nil:
		if len(p.verifications) >= maxVerifications {
			clear(p.verifications)
		}
		if p.verifications == nil {
			p.verifications = map[int64]*Verification{}
		}
		v = &Verification{producerID: producerID, epoch: epoch, lowest: sequence, raising: raising}
		p.verifications[producerID] = v
	case epoch == v.epoch:
		v.lowest = min(v.lowest, sequence)
	case epoch > v.epoch:
		v.epoch, v.lowest = epoch, sequence
	}
	return v
}

// appendTransactional appends a transactional batch or a marker, which ends the verifications of its producer.
func (p *Partition) appendTransactional(log *commitlog.Log, batch record.Batch, o AppendOptions,
	c commitlog.AppendOptions) (commitlog.AppendInfo, error) {
	id := batch.ProducerID()
	p.verifyMu.Lock()
	defer p.verifyMu.Unlock()
	current := p.verifications[id]
	if current != nil && o.Origin == commitlog.OriginClient {
		if err := checkFirst(log, current, batch); err != nil {
			return commitlog.AppendInfo{BaseOffset: -1, LastOffset: -1, LogAppendTime: -1,
				LogStartOffset: log.StartOffset()}, err
		}
	}
	c.VerifiedTransaction = current != nil && current == o.Verification
	info, err := log.AppendAsLeader(batch, c)
	if err == nil && !info.Duplicate && !current.survives(batch) {
		delete(p.verifications, id)
	}
	return info, err
}

// survives tells whether a batch that was appended is the marker of the transaction before. v may be nil.
func (v *Verification) survives(batch record.Batch) bool {
	return v != nil && v.raising && batch.IsControl() && batch.ProducerEpoch() == v.epoch
}

// checkFirst refuses a batch that overtook one that is still being verified, or that is not a producer's first.
func checkFirst(log *commitlog.Log, v *Verification, batch record.Batch) error {
	sequence := batch.BaseSequence()
	e, known := log.Producer(v.producerID)
	first := !known || len(e.Batches()) == 0
	if sequence <= v.lowest && (sequence == 0 || !v.raising || !first) {
		return nil
	}
	return &producerstate.OutOfOrderSequenceError{Sequence: sequence, LastSequence: v.lowest,
		Epoch: batch.ProducerEpoch(), KnownEpoch: v.epoch}
}

func (p *Partition) dropVerifications() {
	p.verifyMu.Lock()
	defer p.verifyMu.Unlock()
	clear(p.verifications)
}

// Producers lists the producers that the partition knows, in no order. This broker must lead it.
//
// Errors: ErrNotLeader, *logdir.OfflineError.
func (p *Partition) Producers() ([]producerstate.Entry, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(NoEpoch)
	if err != nil {
		return nil, err
	}
	return log.ActiveProducers(), nil
}
