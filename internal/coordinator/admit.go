package coordinator

import (
	"errors"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/txn"
)

// Admission asks whether a producer may write to partitions in its transaction.
type Admission struct {
	ID         string // transactional id
	Producer   txn.Producer
	Partitions []checkpoint.TopicPartition
	// Adding adds the partitions to the transaction (transactions v2); otherwise they must be in it.
	Adding bool
}

// Admit is asked by the leader of partitions before the first records of a transaction are appended. While the
// transaction before is being completed, it waits for a moment: the next one begins that early.
//
// The errors are those of Add or of Verify, one for each partition.
//
// Kafka: AddPartitionsToTxnManager; the wait is add.partitions.to.txn.retry.backoff.max.ms.
func (t *Transactions) Admit(a Admission, done func(each []error)) {
	until := t.o.Clock().Add(t.o.AdmitRetryMax)
	t.admit(a, until, done)
}

func (t *Transactions) admit(a Admission, until time.Time, done func(each []error)) {
	answer := func(each []error, err error) {
		if errors.Is(err, txn.ErrConcurrent) && t.o.Clock().Before(until) {
			t.o.Timer(t.o.AdmitRetryAfter, func() { t.admit(a, until, done) })
			return
		}
		if each == nil || err != nil {
			each = repeated(err, len(a.Partitions))
		}
		done(each)
	}
	if a.Adding {
		t.Add(a.ID, a.Producer, a.Partitions, version2, func(err error) { answer(nil, err) })
		return
	}
	t.Verify(a.ID, a.Producer, a.Partitions, answer)
}

// version2 is the transaction version at which partitions are added by produce requests (KIP-890).
const version2 = 2

func repeated(err error, n int) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}
