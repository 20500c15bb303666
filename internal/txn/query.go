package txn

import (
	"regexp"
	"slices"

	"tidemark/internal/checkpoint"
)

// Description is what DescribeTransactions tells of an id.
type Description struct {
	Producer
	State     State
	TimeoutMs int32
	StartMs   int64
	// Partitions are those of the transaction, in Kafka's order; while markers are written, those without one.
	Partitions []checkpoint.TopicPartition
}

// Describe tells of one id.
//
// Errors: ErrInvalidRequest, ErrNotFound.
func (m *Machine) Describe(id string) (Description, error) {
	t := m.byID[id]
	switch {
	case id == "":
		return Description{}, ErrInvalidRequest
	case t == nil:
		return Description{}, ErrNotFound
	}
	return Description{Producer: t.Producer, State: t.State, TimeoutMs: t.TimeoutMs, StartMs: t.StartMs,
		Partitions: slices.Clone(inHashOrder(t.Partitions, hashCode))}, nil
}

// Filter picks ids for List; the zero value with MinDurationMs -1 picks all.
type Filter struct {
	States []State
	// OnlyStates: States counts even when it is empty, since all the names that were asked for are unknown.
	OnlyStates    bool
	ProducerIDs   []int64
	MinDurationMs int64          // picks transactions that began longer ago; -1: all
	Pattern       *regexp.Regexp // must match; nil: any; see CompilePattern
}

// Listed is one line of ListTransactions.
type Listed struct {
	ID         string
	ProducerID int64
	State      State
}

// List tells of the ids that a filter picks, in no order.
//
// Kafka: an id without a transaction has begun at -1, so it counts as having lasted very long.
func (m *Machine) List(f Filter, nowMs int64) []Listed {
	var out []Listed
	for id, t := range m.byID {
		if f.picks(id, t, nowMs) {
			out = append(out, Listed{ID: id, ProducerID: t.ID, State: t.State})
		}
	}
	return out
}

func (f Filter) picks(id string, t *txn, nowMs int64) bool {
	switch {
	case len(f.ProducerIDs) > 0 && !slices.Contains(f.ProducerIDs, t.ID):
		return false
	case (f.OnlyStates || len(f.States) > 0) && !slices.Contains(f.States, t.State):
		return false
	case f.MinDurationMs >= 0 && nowMs-t.StartMs <= f.MinDurationMs:
		return false
	case f.Pattern != nil:
		return f.Pattern.MatchString(id)
	}
	return true
}

// CompilePattern compiles a pattern that must match the whole of an id. The error is that of the pattern alone.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// Expire makes tombstones for the ids that no transaction has used for the time of expiration, in writes of about
// maxBytes at most. Ids that are blocked stay.
func (m *Machine) Expire(nowMs int64, maxBytes int) []*Write {
	var ids []string
	for id, t := range m.byID {
		if !t.blocked() && t.State.resting() && t.LastUpdateMs <= nowMs-m.o.ExpirationMs {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var all []*Write
	size := maxBytes
	for _, id := range ids {
		if size += len(id) + tombstoneOverhead; size > maxBytes {
			all, size = append(all, &Write{}), len(id)+tombstoneOverhead
		}
		w := all[len(all)-1]
		w.Records = append(w.Records, Record{Key: EncodeKey(id)})
		w.changes = append(w.changes, change{id: id, removed: true})
	}
	return all
}

// tombstoneOverhead bounds what a tombstone takes beside its transactional id.
const tombstoneOverhead = 40
