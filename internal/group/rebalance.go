package group

import "slices"

// rebalanceOrComplete begins a rebalance, or ends the one under way if nobody is missing.
func (c *classic) rebalanceOrComplete(why string) *Write {
	if c.state != PreparingRebalance {
		return c.prepareRebalance(why)
	}
	return c.completeIfJoined()
}

// prepareRebalance has all members join again.
func (c *classic) prepareRebalance(why string) *Write {
	if c.state == CompletingRebalance {
		c.resetAssignments(ErrRebalance)
	}
	clear(c.pendingSync)
	c.m.host.StopTimer(timerKey(syncTimer, c.id, ""))
	initial := c.state == Empty
	c.become(PreparingRebalance)
	c.m.log.Info("group rebalances", "group", c.id, "generation", c.generation, "why", why)
	if initial {
		delay := c.m.o.Config().InitialRebalanceDelayMs
		c.waitInitially(delay, max(c.rebalanceTimeoutMs()-delay, 0))
		return nil
	}
	if c.allJoined() {
		return c.completeJoin()
	}
	c.waitForJoins()
	return nil
}

// waitInitially waits a step for the first members of a group.
func (c *classic) waitInitially(delayMs, remainingMs int32) {
	c.initialDelay, c.newMemberAdded = true, false
	c.delayMs, c.remainingMs = delayMs, remainingMs
	c.m.host.SetTimer(timerKey(joinTimer, c.id, ""), c.m.host.NowMs()+int64(delayMs))
}

// waitForJoins waits for the members to join again.
func (c *classic) waitForJoins() {
	c.initialDelay = false
	c.m.host.SetTimer(timerKey(joinTimer, c.id, ""), c.m.host.NowMs()+int64(c.rebalanceTimeoutMs()))
}

// joinTimeIsUp ends the join phase, unless it is the initial one and members keep coming.
func (c *classic) joinTimeIsUp() *Write {
	if c.initialDelay && c.newMemberAdded && c.remainingMs != 0 {
		next := min(c.m.o.Config().InitialRebalanceDelayMs, c.remainingMs)
		c.waitInitially(next, max(c.remainingMs-c.delayMs, 0))
		return nil
	}
	return c.completeJoin()
}

// completeIfJoined ends the join phase when nobody is missing. The initial one ends by time alone.
func (c *classic) completeIfJoined() *Write {
	if c.state != PreparingRebalance || c.previous == Empty || !c.allJoined() {
		return nil
	}
	return c.completeJoin()
}

// completeJoin begins the next generation with those who joined. Dynamic members that did not are removed; static
// ones keep their place until their session ends.
func (c *classic) completeJoin() *Write {
	c.m.host.StopTimer(timerKey(joinTimer, c.id, ""))
	c.initialDelay = false
	for _, one := range slices.Clone(c.members) {
		if one.join == nil && one.instanceID == nil {
			c.m.log.Info("member did not join again and is removed", "group", c.id, "member", one.id)
			c.remove(one.id)
			c.forgetHeartbeat(one.id)
		}
	}
	if !c.electJoinedLeader() && len(c.members) > 0 {
		c.m.log.Warn("rebalance cannot end since no member joined", "group", c.id)
		c.waitForJoins()
		return nil
	}
	c.generation++
	clear(c.pendingSync)
	if len(c.members) == 0 {
		return c.becomeEmpty()
	}
	c.protocol = c.selectProtocol()
	c.noteSubscriptions()
	c.become(CompletingRebalance)
	c.m.log.Info("group has a new generation", "group", c.id, "generation", c.generation, "members", len(c.members))
	for _, one := range c.members {
		c.answerJoin(one, c.joined(one))
		c.expectHeartbeat(one, one.sessionTimeoutMs)
		one.isNew = false
		c.pendingSync[one.id] = true
	}
	c.m.host.SetTimer(timerKey(syncTimer, c.id, ""), c.m.host.NowMs()+int64(c.rebalanceTimeoutMs()))
	return nil
}

// becomeEmpty stores that the group has no members any more.
func (c *classic) becomeEmpty() *Write {
	c.protocol = nil
	c.noteSubscriptions()
	c.become(Empty)
	c.m.log.Info("group is empty", "group", c.id, "generation", c.generation)
	return &Write{Records: []Record{c.record(nil)}, stored: func(err error) {
		if err != nil {
			c.m.log.Warn("record of an empty group cannot be written", "group", c.id, "error", err)
		}
	}}
}

// electJoinedLeader makes sure that the leader is one who joined; false when nobody did.
func (c *classic) electJoinedLeader() bool {
	if c.leader == "" {
		return false
	}
	if one := c.byID[c.leader]; one != nil && one.join != nil {
		return true
	}
	for _, one := range c.members {
		if one.join != nil {
			c.leader = one.id
			return true
		}
	}
	return false
}

// resetAssignments takes all assignments back and answers syncs that wait with an error.
func (c *classic) resetAssignments(err error) {
	for _, one := range c.members {
		one.assignment = nil
		if one.answerSync(SyncResponse{Err: err}) {
			c.expectHeartbeat(one, one.sessionTimeoutMs)
		}
	}
}

// heartbeatMissed removes a member that gave no sign of life, unless it is we who let it wait.
func (c *classic) heartbeatMissed(id string) *Write {
	one := c.byID[id]
	switch {
	case c.pendingJoin[id]:
		c.m.log.Info("member that was given an id did not come again", "group", c.id, "member", id)
		c.remove(id)
		return c.completeIfAllJoined()
	case one == nil:
		return nil
	case !one.isNew && (one.join != nil || one.sync != nil):
		return nil
	}
	c.m.log.Info("member gave no sign of life and is removed", "group", c.id, "member", id)
	return c.dropMember(one, "heartbeat of "+id+" is missing")
}

// dropMember removes a member and lets the others go on.
func (c *classic) dropMember(one *member, why string) *Write {
	c.answerJoin(one, JoinResponse{Err: ErrUnknownMember, Generation: NoGeneration})
	one.answerSync(SyncResponse{Err: ErrUnknownMember})
	c.remove(one.id)
	switch c.state {
	case Stable, CompletingRebalance:
		return c.prepareRebalance(why)
	default:
		return c.completeIfAllJoined()
	}
}

// completeIfAllJoined ends the join phase, an initial one too, when nobody is missing.
func (c *classic) completeIfAllJoined() *Write {
	if c.state == PreparingRebalance && c.allJoined() {
		return c.completeJoin()
	}
	return nil
}

// syncTimeIsUp removes the members that did not ask for their assignment.
func (c *classic) syncTimeIsUp() *Write {
	if c.state != CompletingRebalance && c.state != Stable || len(c.pendingSync) == 0 {
		return nil
	}
	for id := range c.pendingSync {
		c.m.log.Info("member did not ask for its assignment and is removed", "group", c.id, "member", id)
		c.remove(id)
		c.forgetHeartbeat(id)
	}
	return c.prepareRebalance("assignments were not asked for")
}

// record is the group's record, with the assignment of each member.
func (c *classic) record(assignments map[string][]byte) Record {
	v := classicValue{protocolType: c.protocolType, generation: c.generation, protocol: c.protocol,
		leader: textOrNil(c.leader), currentStateMs: c.stateMs}
	for _, one := range c.members {
		v.members = append(v.members, classicMember{id: one.id, clientID: one.clientID, clientHost: one.clientHost,
			instanceID: one.instanceID, rebalanceTimeoutMs: one.rebalanceTimeoutMs,
			sessionTimeoutMs: one.sessionTimeoutMs, subscription: one.metadata(c.protocol),
			assignment: assignments[one.id]})
	}
	return Record{Key: classicKey(c.id), Value: v.appendTo(nil)}
}
