package replica

import (
	"errors"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/internal/producerstate"
	"tidemark/record"
)

func transactional(t *testing.T, id int64, epoch int16, sequence int32) []byte {
	t.Helper()
	o := record.DefaultBuilderOptions()
	o.Transactional, o.ProducerID, o.ProducerEpoch, o.BaseSequence = true, id, epoch, sequence
	return batch(t, o, baseTime)
}

func marker(t *testing.T, id int64, epoch int16) []byte {
	t.Helper()
	o := record.DefaultBuilderOptions()
	o.ProducerID, o.ProducerEpoch = id, epoch
	b, err := record.EndTxnMarker(o, baseTime, record.EndTxn{Commit: true})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// verifying is a partition that wants transactions verified, led by this broker.
func verifying(t *testing.T) *Partition {
	p := testPartition(t, commitlog.DefaultConfig())
	lead(t, p, 0, self)
	return p
}

func begin(t *testing.T, p *Partition, id int64, epoch int16, sequence int32, raising bool) *Verification {
	t.Helper()
	v, err := p.BeginVerification(id, epoch, sequence, raising)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func appendVerified(p *Partition, batch []byte, v *Verification) error {
	_, err := p.Append(batch, AppendOptions{LeaderEpoch: NoEpoch, Verification: v})
	return err
}

func appendMarker(t *testing.T, p *Partition, id int64, epoch int16) {
	t.Helper()
	if _, err := p.Append(marker(t, id, epoch), AppendOptions{Origin: commitlog.OriginCoordinator,
		LeaderEpoch: NoEpoch}); err != nil {
		t.Fatal(err)
	}
}

func TestATransactionBeginsOnlyWhenVerified(t *testing.T) {
	p := verifying(t)
	if err := appendVerified(p, transactional(t, 7, 0, 0), nil); !errors.Is(err, commitlog.ErrInvalidTxnState) {
		t.Fatalf("not verified: %v", err)
	}
	v := begin(t, p, 7, 0, 0, false)
	if v == nil {
		t.Fatal("nothing to verify before the first batch")
	}
	if err := appendVerified(p, transactional(t, 7, 0, 0), v); err != nil {
		t.Fatal(err)
	}
	if v := begin(t, p, 7, 0, 1, false); v != nil {
		t.Error("an open transaction is verified again")
	}
	if err := appendVerified(p, transactional(t, 7, 0, 1), nil); err != nil {
		t.Errorf("the transaction is open: %v", err)
	}
	appendMarker(t, p, 7, 0)
	if v := begin(t, p, 7, 0, 2, false); v == nil {
		t.Error("the next transaction is not verified")
	}
}

func TestAnAnswerThatIsOutOfDateOpensNoTransaction(t *testing.T) {
	p := verifying(t)
	v := begin(t, p, 7, 0, 0, false)
	appendMarker(t, p, 7, 0) // of a transaction that was ended meanwhile
	if err := appendVerified(p, transactional(t, 7, 0, 0), v); !errors.Is(err, commitlog.ErrInvalidTxnState) {
		t.Errorf("%v, want the append refused", err)
	}
	again := begin(t, p, 7, 0, 0, false)
	if err := appendVerified(p, transactional(t, 7, 0, 0), v); !errors.Is(err, commitlog.ErrInvalidTxnState) {
		t.Errorf("the old answer with a new question: %v", err)
	}
	if err := appendVerified(p, transactional(t, 7, 0, 0), again); err != nil {
		t.Error(err)
	}
}

// The end of a transaction is answered before its markers are written: the marker may come while the next transaction
// is being verified. Under transactions v2 it has the next one's epoch.
func TestTheMarkerBeforeDoesNotEndAVerificationUnderTransactionsV2(t *testing.T) {
	p := verifying(t)
	if err := appendVerified(p, transactional(t, 7, 0, 0), begin(t, p, 7, 0, 0, true)); err != nil {
		t.Fatal(err)
	}
	v := begin(t, p, 7, 1, 0, true)
	if v == nil {
		t.Fatal("the next transaction is not verified")
	}
	appendMarker(t, p, 7, 1)
	if err := appendVerified(p, transactional(t, 7, 1, 0), v); err != nil {
		t.Fatal(err)
	}
	appendMarker(t, p, 7, 2)
	if err := appendVerified(p, transactional(t, 7, 2, 0), v); !errors.Is(err, commitlog.ErrInvalidTxnState) {
		t.Errorf("the answer about the transaction before: %v, want the append refused", err)
	}
	late := begin(t, p, 7, 2, 0, true)
	appendMarker(t, p, 7, 3) // the transaction was ended meanwhile
	if err := appendVerified(p, transactional(t, 7, 3, 0), late); !errors.Is(err, commitlog.ErrInvalidTxnState) {
		t.Errorf("%v, want the append refused", err)
	}
}

func TestABatchDoesNotOvertakeOneThatIsVerified(t *testing.T) {
	p := verifying(t)
	begin(t, p, 7, 0, 0, false)
	v := begin(t, p, 7, 0, 3, false)
	var outOfOrder *producerstate.OutOfOrderSequenceError
	if err := appendVerified(p, transactional(t, 7, 0, 3), v); !errors.As(err, &outOfOrder) {
		t.Errorf("%v, want out of order", err)
	}
	if err := appendVerified(p, transactional(t, 7, 0, 0), v); err != nil {
		t.Error(err)
	}
}

func TestUnderTransactionsV2TheFirstBatchHasSequence0(t *testing.T) {
	p := verifying(t)
	v := begin(t, p, 7, 0, 5, true)
	var outOfOrder *producerstate.OutOfOrderSequenceError
	if err := appendVerified(p, transactional(t, 7, 0, 5), v); !errors.As(err, &outOfOrder) {
		t.Errorf("%v, want out of order", err)
	}
	classic := begin(t, p, 8, 0, 5, false)
	if err := appendVerified(p, transactional(t, 8, 0, 5), classic); err != nil {
		t.Errorf("an unknown classic producer may begin anywhere: %v", err)
	}
}

func TestAnEpochThatIsOverIsNotVerified(t *testing.T) {
	p := verifying(t)
	if err := appendVerified(p, transactional(t, 7, 2, 0), begin(t, p, 7, 2, 0, true)); err != nil {
		t.Fatal(err)
	}
	var over *producerstate.InvalidProducerEpochError
	if _, err := p.BeginVerification(7, 1, 0, true); !errors.As(err, &over) {
		t.Errorf("%v, want an invalid epoch", err)
	}
	if v := begin(t, p, 7, 3, 0, true); v == nil {
		t.Error("a later epoch begins another transaction")
	}
}

func TestALaterLeaderEpochForgetsVerifications(t *testing.T) {
	p := verifying(t)
	v := begin(t, p, 7, 0, 0, false)
	lead(t, p, 1, self)
	if err := appendVerified(p, transactional(t, 7, 0, 0), v); !errors.Is(err, commitlog.ErrInvalidTxnState) {
		t.Errorf("%v, want the append refused", err)
	}
}

func TestAMarkerUnderTransactionsV2HasALaterEpoch(t *testing.T) {
	p := verifying(t)
	if err := appendVerified(p, transactional(t, 7, 0, 0), begin(t, p, 7, 0, 0, true)); err != nil {
		t.Fatal(err)
	}
	o := AppendOptions{Origin: commitlog.OriginCoordinator, LeaderEpoch: NoEpoch, TransactionVersion: 2}
	var over *producerstate.InvalidProducerEpochError
	if _, err := p.Append(marker(t, 7, 0), o); !errors.As(err, &over) {
		t.Errorf("%v, want an invalid epoch", err)
	}
	if _, err := p.Append(marker(t, 7, 1), o); err != nil {
		t.Error(err)
	}
}
