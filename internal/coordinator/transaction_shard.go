package coordinator

import (
	"errors"
	"strings"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/producerstate"
	"tidemark/internal/txn"
)

// transactionShard is one partition of __transaction_state. It implements [Shard].
type transactionShard struct {
	t       *Transactions
	env     *Env
	machine *txn.Machine
}

// The keys of timers: one for the shard, the others are followed by a transactional id.
const (
	expiryTimer   = "expire"
	deadlineTimer = "deadline " // of an open transaction
	retryTimer    = "retry "    // of markers, or of the closing record
)

// tombstoneBatchBytes is how large a batch of tombstones may become.
//
// Kafka: TransactionStateManager, 16 KiB.
const tombstoneBatchBytes = 16 << 10

func (s *transactionShard) nowMs() int64 { return s.env.Now().UnixMilli() }

func (s *transactionShard) Replay(r Replayed) error {
	err := s.machine.Replay(r.Key, r.Value)
	if errors.Is(err, txn.ErrUnknownKey) {
		s.t.o.Logger.Warn("record of a transactional id has an unknown key", "partition", s.env.Partition(),
			"offset", r.Offset, "error", err)
		return nil
	}
	return err
}

// ReplayMarker: there are no transactions in __transaction_state.
func (s *transactionShard) ReplayMarker(int64, int16, bool) {}

func (s *transactionShard) Loaded() {
	for _, m := range s.machine.Loaded(s.nowMs()) {
		s.writeMarkers(m)
	}
	for _, id := range s.machine.Ongoing() {
		s.watchDeadline(id)
	}
	s.env.SetTimer(expiryTimer, s.env.Now().Add(s.t.o.ExpireEvery))
}

func (s *transactionShard) Unloaded() {}

func (s *transactionShard) Timeout(key string) {
	if key == expiryTimer {
		s.expire()
		return
	}
	if id, ok := strings.CutPrefix(key, deadlineTimer); ok {
		s.abortTimedOut(id)
		return
	}
	if id, ok := strings.CutPrefix(key, retryTimer); ok {
		if m, ok := s.machine.Unmarked(id); ok {
			s.writeMarkers(m)
		}
	}
}

// write is the runtime's form of what the machine wants written.
func (s *transactionShard) write(w *txn.Write) *Write {
	if w == nil {
		return nil
	}
	records := make([]Record, len(w.Records))
	for i, r := range w.Records {
		records[i] = Record(r)
	}
	return &Write{Records: records, Apply: func(int64) { s.machine.Apply(w) }, Committed: func() { s.committed(w) }}
}

func (s *transactionShard) committed(w *txn.Write) {
	for _, m := range s.machine.Committed(w, s.nowMs()) {
		s.writeMarkers(m)
	}
	for _, id := range w.IDs() {
		s.watchDeadline(id)
	}
}

// watchDeadline minds the time of an open transaction.
//
// Kafka looks every transaction.abort.timed.out.transaction.cleanup.interval.ms, so it may abort up to 10 s later.
func (s *transactionShard) watchDeadline(id string) {
	ms, open := s.machine.Deadline(id)
	if !open {
		s.env.StopTimer(deadlineTimer + id)
		return
	}
	s.env.SetTimer(deadlineTimer+id, time.UnixMilli(ms+1))
}

func (s *transactionShard) abortTimedOut(id string) {
	var refused error
	s.env.Run(func() *Write {
		var w *txn.Write
		w, refused = s.machine.AbortTimedOut(id, s.nowMs())
		return s.write(w)
	}, func(err error) {
		if err = first(err, refused); err != nil {
			s.t.o.Logger.Warn("transaction that timed out cannot be aborted", "transactional id", id, "error", err)
			s.env.SetTimer(deadlineTimer+id, s.env.Now().Add(s.t.o.RetryAfter))
		}
	})
	if ms, open := s.machine.Deadline(id); open && ms >= s.nowMs() {
		s.watchDeadline(id) // the clock woke us too early
	}
}

func (s *transactionShard) expire() {
	s.env.SetTimer(expiryTimer, s.env.Now().Add(s.t.o.ExpireEvery))
	for _, w := range s.machine.Expire(s.nowMs(), tombstoneBatchBytes) {
		s.env.Run(func() *Write { return s.write(w) }, func(err error) {
			if err != nil {
				s.t.o.Logger.Warn("transactional ids cannot be expired", "partition", s.env.Partition(), "error", err)
			}
		})
	}
}

// writeMarkers writes the markers that a settled transaction lacks, and then closes it.
func (s *transactionShard) writeMarkers(m txn.Markers) {
	s.env.StopTimer(retryTimer + m.ID)
	var there []checkpoint.TopicPartition
	for _, tp := range m.Partitions {
		if s.exists(tp) {
			there = append(there, tp)
			continue
		}
		s.t.o.Logger.Info("partition of a transaction is gone: no marker", "transactional id", m.ID, "partition", tp)
		s.machine.Marked(m.ID, m.Producer, tp)
	}
	if len(there) == 0 {
		s.complete(m.ID)
		return
	}
	marker := Marker{Producer: m.Producer, Commit: m.Commit, CoordinatorEpoch: s.env.LeaderEpoch(), Version: m.Version}
	s.t.o.Markers.Write(marker, there, func(errs []error) {
		s.env.Do(m.ID, func() *Write { return s.marked(m, there, errs) }, func(err error) { s.retryUnless(m.ID, err) })
	})
}

// exists tells whether a partition is still there.
func (s *transactionShard) exists(tp checkpoint.TopicPartition) bool {
	topic := s.t.o.Image().Topic(tp.Topic)
	return topic != nil && topic.Partition(tp.Partition) != nil
}

// marked takes note of the markers that were written; when all are, it closes the transaction.
//
// A partition that knows a later epoch of the producer has had this transaction ended already. Kafka gives such a
// transaction up and leaves its id blocked until the next load.
func (s *transactionShard) marked(m txn.Markers, partitions []checkpoint.TopicPartition, errs []error) *Write {
	var fenced *producerstate.TransactionCoordinatorFencedError
	var later *producerstate.InvalidProducerEpochError
	done, again := false, false
	for i, tp := range partitions {
		switch err := errs[i]; {
		case err == nil:
			done = s.machine.Marked(m.ID, m.Producer, tp) || done
		case errors.As(err, &later):
			s.t.o.Logger.Warn("partition knows a later epoch than the marker's", "transactional id", m.ID,
				"partition", tp, "error", err)
			done = s.machine.Marked(m.ID, m.Producer, tp) || done
		case errors.As(err, &fenced):
			s.t.o.Logger.Warn("partition knows a later coordinator: no more markers", "transactional id", m.ID,
				"partition", tp, "error", err)
			return nil
		default:
			s.t.o.Logger.Info("marker is tried again", "transactional id", m.ID, "partition", tp, "error", err)
			again = true
		}
	}
	if again {
		s.retry(m.ID)
	}
	if !done {
		return nil
	}
	return s.write(s.machine.Complete(m.ID))
}

// complete closes a transaction of which every partition has its marker.
func (s *transactionShard) complete(id string) {
	s.env.Do(id, func() *Write { return s.write(s.machine.Complete(id)) }, func(err error) { s.retryUnless(id, err) })
}

// retryUnless tries to close a transaction again when its record could not be written.
func (s *transactionShard) retryUnless(id string, err error) {
	if err != nil && !errors.Is(err, ErrNotCoordinator) {
		s.retry(id)
	}
}

func (s *transactionShard) retry(id string) {
	s.env.SetTimer(retryTimer+id, s.env.Now().Add(s.t.o.RetryAfter))
}
