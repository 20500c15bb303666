package group

import (
	"maps"
	"slices"
)

// Expire removes what is kept for nobody: offsets whose retention is over, and empty groups without offsets, in
// writes of about batchBytes.
//
// Kafka: offsets of an empty group are kept for the retention from when it lost its last member; those of one that
// never had members from their commit; while it has members, those of topics that nobody subscribes to from their
// commit; others, and those of other applications than consumers, for as long as there are members.
func (m *Machine) Expire(batchBytes int) []*Write {
	var b batches
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		if m.expireOffsets(id, g, &b, batchBytes) && g.isEmpty() {
			for _, r := range g.tombstones() {
				b.add(r, batchBytes)
			}
		}
	}
	return m.eraseAll(b)
}

// expireOffsets tells whether no offset of the group is left.
func (m *Machine) expireOffsets(id string, g group, b *batches, batchBytes int) (none bool) {
	topics, ok := m.offsets[id]
	none = len(m.pending.open[id]) == 0
	if !ok {
		return none
	}
	from, expires := g.retention()
	if !expires {
		return false
	}
	now, retention := m.host.NowMs(), m.o.Config().RetentionMs
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		if g.subscribes(topic) {
			none = false
			continue
		}
		for _, partition := range slices.Sorted(maps.Keys(topics[topic])) {
			o := topics[topic][partition]
			if !o.expired(now, retention, from) || m.pending.has(id, topic, partition) {
				none = false
				continue
			}
			b.add(Record{Key: offsetKey(id, topic, partition)}, batchBytes)
		}
	}
	return none
}

func (o Offset) expired(nowMs, retentionMs int64, from func(Offset) int64) bool {
	if o.ExpireMs != noExpiry {
		return nowMs >= o.ExpireMs
	}
	return nowMs-from(o) >= retentionMs
}

func committedAt(o Offset) int64 { return o.CommitMs }

func (c *classic) retention() (from func(o Offset) int64, ok bool) {
	switch {
	case c.protocolType == "":
		return committedAt, true
	case c.state == Empty:
		return func(o Offset) int64 {
			if c.stateMs < 0 {
				return o.CommitMs
			}
			return c.stateMs
		}, true
	case c.protocolType == ConsumerProtocolType && c.subscribedKnown && c.state == Stable:
		return committedAt, true
	}
	return nil, false
}
