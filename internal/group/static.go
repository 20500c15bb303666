package group

import "slices"

// replaceStatic puts a static member that came back, under a new id, in its own old place.
func (c *classic) replaceStatic(r *JoinRequest, oldID, newID string, reply func(JoinResponse)) *Write {
	leader := c.leader
	one := c.rename(*r.InstanceID, oldID, newID)
	c.expectHeartbeat(one, one.sessionTimeoutMs)
	before := *one
	c.update(one, r.Protocols, r.RebalanceTimeoutMs, r.SessionTimeoutMs)
	c.awaitJoin(one, reply)
	switch c.state {
	case Stable:
		if next := c.selectProtocol(); next == nil || c.protocol == nil || *next != *c.protocol {
			return c.rebalanceOrComplete("protocol changes with static member " + newID + reasonOf(r))
		}
		return c.writeReplaced(r, one, before, oldID, leader, reply)
	case CompletingRebalance:
		return c.prepareRebalance("static member " + newID + " came back" + reasonOf(r))
	case PreparingRebalance:
		return c.completeIfJoined()
	default:
		c.awaitJoin(one, nil)
		reply(JoinResponse{Err: ErrUnexpected, Generation: NoGeneration})
		return nil
	}
}

// rename gives a static member a new id. Who waits under the old one is fenced.
func (c *classic) rename(instanceID, oldID, newID string) *member {
	old := c.byID[oldID]
	c.answerJoin(old, JoinResponse{Err: ErrFencedInstance, MemberID: oldID, Generation: NoGeneration})
	old.answerSync(SyncResponse{Err: ErrFencedInstance})
	c.forgetHeartbeat(oldID)
	one := &member{id: newID, instanceID: old.instanceID, clientID: old.clientID, clientHost: old.clientHost,
		rebalanceTimeoutMs: old.rebalanceTimeoutMs, sessionTimeoutMs: old.sessionTimeoutMs, protocols: old.protocols,
		assignment: old.assignment}
	delete(c.byID, oldID)
	c.byID[newID] = one
	c.members[slices.Index(c.members, old)] = one
	if c.pendingSync[oldID] {
		delete(c.pendingSync, oldID)
		c.pendingSync[newID] = true
	}
	if c.leader == oldID {
		c.leader = newID
	}
	c.static[instanceID] = newID
	return one
}

// writeReplaced stores the new id of a static member that does not change what the group does: no rebalance, and
// everybody keeps the assignment.
func (c *classic) writeReplaced(r *JoinRequest, one *member, before member, oldID, leader string,
	reply func(JoinResponse)) *Write {
	assignments := map[string][]byte{}
	for _, m := range c.members {
		assignments[m.id] = m.assignment
	}
	return &Write{
		Records: []Record{c.record(assignments)},
		stored: func(err error) {
			if err != nil {
				c.restoreStatic(one, before, oldID, leader, reply, err)
				return
			}
			answer := c.joined(one)
			if r.CanSkipAssignment {
				answer.SkipAssignment = c.leader == one.id
			} else {
				// Kafka: a leader that cannot be told to keep the assignment is told its old id, lest it assigns.
				answer.Members, answer.Leader = nil, leader
			}
			c.answerJoin(one, answer)
		},
	}
}

// restoreStatic gives a static member its old id back, since the new one could not be stored.
func (c *classic) restoreStatic(one *member, before member, oldID, leader string, reply func(JoinResponse), err error) {
	c.m.log.Warn("new id of a static member cannot be stored", "group", c.id, "member", one.id, "error", err)
	if c.byID[one.id] == one {
		c.update(one, before.protocols, before.rebalanceTimeoutMs, before.sessionTimeoutMs)
		c.awaitJoin(one, nil)
		old := c.rename(*one.instanceID, one.id, oldID)
		c.expectHeartbeat(old, old.sessionTimeoutMs)
	}
	reply(JoinResponse{Err: err, Generation: c.generation, ProtocolType: textOrNil(c.protocolType),
		Protocol: c.protocol, Leader: leader})
}
