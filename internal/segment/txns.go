package segment

import (
	"errors"
	"slices"
	"syscall"

	"tidemark/internal/index"
	"tidemark/record"
)

// rebuildTxns makes the transaction index anew, with the state of producers as it was at the start of the segment.
// Entries that it has stay, unless the log speaks against them. The caller holds checkMu.
func (s *Segment) rebuildTxns(reason string) error {
	if s.env.Aborted == nil {
		return nil
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	size, err := s.Size()
	if err != nil {
		return err
	}
	if s.growing.Load() {
		size = s.indexedTo
	}
	txns := s.files().txns
	have, err := txns.All()
	damaged := err != nil
	if err != nil && !isDamaged(err) {
		return err
	}
	if !damaged {
		if err := txns.Check(); err != nil && !isDamaged(err) {
			return err
		} else if err != nil {
			damaged = s.has(HasTxn)
		}
	}
	k := keeper{rest: s.sensible(have)}
	want, err := s.env.Aborted(s, func(each Each) error {
		return s.eachBatch(size, func(h record.Header, entry func() ([]byte, error)) error {
			if err := k.batch(h, entry); err != nil {
				return err
			}
			return each(h, entry)
		})
	})
	if err != nil {
		return err
	}
	want = merge(append(k.kept, k.rest...), want)
	if !damaged && slices.Equal(have, want) {
		return nil
	}
	return s.writeTxns(want, reason)
}

func (s *Segment) writeTxns(want []index.AbortedTxn, reason string) error {
	s.env.Metrics.TxnIndexesRebuilt.Add(1)
	s.env.Logger.Warn("rebuild the transaction index of a segment", "segment", s.LogName(), "reason", reason)
	s.dirty.Store(true)
	txns := s.files().txns
	if err := txns.Reset(); err != nil {
		return err
	}
	for _, t := range want {
		s.found(HasTxn)
		if err := txns.Append(t); err != nil {
			return err
		}
	}
	return nil
}

// sensible are the entries that can be true of the segment, up to the first that breaks the order.
func (s *Segment) sensible(txns []index.AbortedTxn) []index.AbortedTxn {
	var out []index.AbortedTxn
	last := s.base - 1
	for _, t := range txns {
		if t.LastOffset <= last {
			break
		}
		if t.FirstOffset < 0 || t.FirstOffset > t.LastOffset || t.LastStableOffset > t.LastOffset+1 || t.ProducerID < 0 {
			continue
		}
		out, last = append(out, t), t.LastOffset
	}
	return out
}

// keeper drops the entries at whose offset the log has a batch that is no abort of the producer.
type keeper struct{ kept, rest []index.AbortedTxn }

func (k *keeper) batch(h record.Header, entry func() ([]byte, error)) error {
	for len(k.rest) > 0 && k.rest[0].LastOffset <= h.LastOffset {
		t := k.rest[0]
		k.rest = k.rest[1:]
		if t.LastOffset >= h.BaseOffset {
			aborts, err := abortsOne(h, entry)
			if err != nil {
				return err
			}
			if !aborts || t.ProducerID != h.ProducerID {
				continue
			}
		}
		k.kept = append(k.kept, t)
	}
	return nil
}

// merge joins two lists by their last offsets; of the same one the second list's entry counts.
func merge(a, b []index.AbortedTxn) []index.AbortedTxn {
	var out []index.AbortedTxn
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].LastOffset < b[0].LastOffset {
			out, a = append(out, a[0]), a[1:]
			continue
		}
		if len(a) > 0 && a[0].LastOffset == b[0].LastOffset {
			a = a[1:]
		}
		out, b = append(out, b[0]), b[1:]
	}
	return out
}

// AppendAborted notes an aborted transaction whose marker lies in this segment. One that a rebuild of the index has
// found in the log by itself is passed over. When the disk is full the entry is kept in memory and written later, for
// the marker is in the log already.
func (s *Segment) AppendAborted(t index.AbortedTxn) error {
	s.found(HasTxn)
	s.lateMu.Lock()
	defer s.lateMu.Unlock()
	s.late = append(s.late, t)
	err := s.writeLateLocked()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return err
}

// writeLateTxns writes the entries that a full disk had no room for.
func (s *Segment) writeLateTxns() error {
	s.lateMu.Lock()
	defer s.lateMu.Unlock()
	return s.writeLateLocked()
}

func (s *Segment) writeLateLocked() error {
	for len(s.late) > 0 {
		err := s.files().txns.Append(s.late[0])
		var order *index.OrderError
		if err != nil && !(errors.As(err, &order) && order.Got == order.Last) {
			return err
		}
		s.late = s.late[1:]
	}
	return nil
}

// collectLate adds the entries that are not in the index yet, as Collect finds them there.
func (s *Segment) collectLate(txns []index.AbortedTxn, from, to int64) (all []index.AbortedTxn, done bool) {
	s.lateMu.Lock()
	defer s.lateMu.Unlock()
	for _, t := range s.late {
		if t.LastOffset >= from && t.FirstOffset < to {
			txns = append(txns, t)
		}
		if t.LastStableOffset >= to {
			return txns, true
		}
	}
	return txns, false
}
