package group

import (
	"slices"

	"tidemark/internal/wire"
)

// replayConsumer takes in a record of a consumer group.
//
// Kafka: GroupMetadataManager.replay. A group that others records are of another kind is replaced by what the record
// begins; so it is when groups change their protocol.
func (m *Machine) replayConsumer(key Key, value []byte) error {
	c, ok := m.groups[key.Group].(*consumer)
	if !ok {
		if value == nil {
			return nil
		}
		c = newConsumer(m, key.Group)
	}
	if err := c.replay(key, value); err != nil {
		return err
	}
	if !ok {
		if g := m.groups[key.Group]; g != nil {
			g.stopTimers()
		}
		m.groups[key.Group] = c
	}
	return nil
}

func (c *consumer) replay(key Key, value []byte) (err error) {
	switch key.Kind {
	case kindEpoch:
		if value == nil {
			c.stopTimers()
			delete(c.m.groups, c.id)
			return nil
		}
		c.epoch, c.metadataHash, err = decodeEpoch(value)
	case kindPartitionMetadata:
		c.oldMetadata = value != nil
	case kindMember:
		return c.replayWishes(key.Member, value)
	case kindTargetEpoch:
		c.assignmentEpoch, c.assignmentMs = -1, 0
		if value != nil {
			c.assignmentEpoch, c.assignmentMs, err = decodeTargetEpoch(value)
		}
	case kindTarget:
		return c.replayTarget(key.Member, value)
	case kindCurrent:
		return c.replayCurrent(key.Member, value)
	case kindRegex:
		return c.replayRegex(key.Regex, value)
	}
	return err
}

func (c *consumer) replayWishes(id string, value []byte) error {
	if value == nil {
		c.remove(id)
		return nil
	}
	next := c.copyOf(id)
	if err := next.decodeWishes(value); err != nil {
		return err
	}
	c.put(next)
	return nil
}

func (c *consumer) replayTarget(id string, value []byte) error {
	if value == nil {
		delete(c.targets, id)
		return nil
	}
	t, err := decodeTarget(value)
	if err == nil {
		c.targets[id] = t
	}
	return err
}

func (c *consumer) replayCurrent(id string, value []byte) error {
	if value == nil && c.members[id] == nil {
		return nil
	}
	next := c.copyOf(id)
	if value == nil {
		next.epoch, next.previousEpoch = leavingEpoch, leavingEpoch
		next.assigned, next.revoking = owned{}, owned{}
	} else if err := next.decodeCurrent(value); err != nil {
		return err
	}
	c.put(next)
	return nil
}

func (c *consumer) replayRegex(regex string, value []byte) error {
	if value == nil {
		delete(c.regexes, regex)
		return nil
	}
	r, err := decodeResolved(value)
	if err == nil {
		c.regexes[regex] = r
	}
	return err
}

// copyOf is a member to change, a new one when there is none of the id.
func (c *consumer) copyOf(id string) *consumerMember {
	m := c.members[id]
	if m == nil {
		return newConsumerMember(id)
	}
	next := *m
	return &next
}

// put sets a member.
func (c *consumer) put(m *consumerMember) {
	if old := c.members[m.id]; old != nil {
		c.release(old)
	}
	c.members[m.id] = m
	if m.instanceID != nil {
		c.static[*m.instanceID] = m.id
	}
	for _, held := range []owned{m.assigned, m.revoking} {
		for id, partitions := range held {
			if c.owners[id] == nil {
				c.owners[id] = map[int32]int32{}
			}
			for p := range partitions {
				c.owners[id][p] = m.epoch
			}
		}
	}
}

func (c *consumer) remove(id string) {
	m := c.members[id]
	if m == nil {
		return
	}
	c.release(m)
	c.forgetMember(id)
	delete(c.members, id)
	if m.instanceID != nil && c.static[*m.instanceID] == id {
		delete(c.static, *m.instanceID)
	}
}

// release forgets that a member holds its partitions, those apart that another has taken since.
func (c *consumer) release(m *consumerMember) {
	for _, held := range []owned{m.assigned, m.revoking} {
		for id, partitions := range held {
			for p := range partitions {
				if c.owners[id][p] == m.epoch {
					delete(c.owners[id], p)
				}
			}
			if len(c.owners[id]) == 0 {
				delete(c.owners, id)
			}
		}
	}
}

// isHeld tells whether some member holds a partition.
func (c *consumer) isHeld(id wire.UUID, partition int32) bool {
	_, ok := c.owners[id][partition]
	return ok
}

// loaded gives all members the time of a session.
func (c *consumer) loaded() {
	for _, m := range c.members {
		c.expectSession(m)
		if m.classic == nil {
			c.mindRevocation(m)
		}
	}
}

// replayed is a write that is replayed into the machine as it is appended.
func (m *Machine) replayed(records []Record) *Write {
	if len(records) == 0 {
		return nil
	}
	records = slices.Clone(records)
	return &Write{Records: records, apply: func(base int64) {
		for i, r := range records {
			one := Replayed{Offset: base + int64(i), ProducerID: noProducer, Key: r.Key, Value: r.Value}
			if err := m.Replay(one); err != nil {
				m.log.Error("own record cannot be replayed", "error", err)
			}
		}
	}}
}
