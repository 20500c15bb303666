package txn

import (
	"slices"

	"tidemark/internal/checkpoint"
)

// Add adds partitions to the producer's transaction, which begins with the first. version is the transaction
// version by which the client works. No Write and no error: they were all part of it already.
//
// Errors: ErrInvalidRequest, ErrConcurrent, ErrInvalidMapping, ErrFenced.
func (m *Machine) Add(id string, p Producer, partitions []checkpoint.TopicPartition, version int16,
	nowMs int64) (*Write, error) {
	if id == "" {
		return nil, ErrInvalidRequest
	}
	t := m.byID[id]
	switch {
	case t == nil:
		return nil, ErrInvalidMapping
	case t.blocked():
		return nil, ErrConcurrent
	case t.ID != p.ID:
		return nil, ErrInvalidMapping
	case t.Epoch != p.Epoch:
		return nil, ErrFenced
	}
	next := t.Value
	next.Partitions = union(t.Partitions, partitions)
	if t.State == Ongoing && len(next.Partitions) == len(t.Partitions) {
		return nil, nil
	}
	if t.State.resting() {
		next.StartMs = nowMs
	}
	next.State, next.LastUpdateMs, next.ClientVersion = Ongoing, nowMs, version
	return m.write(id, t.Value, next), nil
}

// union is all of a and those of b that are not in a. a is not changed.
func union(a, b []checkpoint.TopicPartition) []checkpoint.TopicPartition {
	seen := make(map[checkpoint.TopicPartition]bool, len(a)+len(b))
	for _, tp := range a {
		seen[tp] = true
	}
	out := slices.Clip(a)
	for _, tp := range b {
		if !seen[tp] {
			seen[tp] = true
			out = append(out, tp)
		}
	}
	return out
}

// Verify tells for each partition whether it is part of the producer's transaction: nil, or ErrAbortable.
//
// Errors, for all of them at once: ErrInvalidRequest, ErrInvalidMapping, ErrFenced, ErrConcurrent when the outcome
// is already settled. An appended record that is not yet on all in-sync replicas counts.
func (m *Machine) Verify(id string, p Producer, partitions []checkpoint.TopicPartition) ([]error, error) {
	if id == "" {
		return nil, ErrInvalidRequest
	}
	t := m.byID[id]
	switch {
	case t == nil || t.ID != p.ID:
		return nil, ErrInvalidMapping
	case t.Epoch != p.Epoch:
		return nil, ErrFenced
	case t.State.preparing():
		return nil, ErrConcurrent
	}
	errs := make([]error, len(partitions))
	for i, tp := range partitions {
		if !slices.Contains(t.Partitions, tp) {
			errs[i] = ErrAbortable
		}
	}
	return errs, nil
}
