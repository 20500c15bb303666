package group

// SyncRequest asks for a member's assignment; the leader's brings the assignments of all.
type SyncRequest struct {
	Group        string
	MemberID     string
	InstanceID   *string
	Generation   int32
	ProtocolType *string // nil: not told
	Protocol     *string // nil: not told
	Assignments  []Assignment
}

// Assignment is what the leader assigned to a member.
type Assignment struct {
	MemberID string
	Bytes    []byte
}

// SyncResponse is the answer to a sync.
type SyncResponse struct {
	Err          error
	ProtocolType *string
	Protocol     *string
	Assignment   []byte
}

// Sync gives a member its assignment. It is answered when the leader's assignments are stored.
//
// Errors (in the answer): ErrUnknownMember, ErrFencedInstance, ErrIllegalGeneration, ErrInconsistentProtocol,
// ErrRebalance; and the error of a write.
func (m *Machine) Sync(r *SyncRequest, answer func(SyncResponse)) *Write {
	if g, ok := m.groups[r.Group].(*consumer); ok && !g.isEmpty() {
		return g.syncClassic(r, answer)
	}
	c := m.classicGroup(r.Group)
	if c == nil || c.isEmpty() {
		answer(SyncResponse{Err: ErrUnknownMember})
		return nil
	}
	if err := c.checkSync(r); err != nil {
		answer(SyncResponse{Err: err})
		return nil
	}
	one := c.byID[r.MemberID]
	switch c.state {
	case CompletingRebalance:
		if before := one.sync; before != nil {
			before(SyncResponse{Err: ErrRebalance})
		}
		one.sync = answer
		c.synced(one)
		if c.leader == one.id {
			return c.store(r.Assignments)
		}
	case Stable:
		c.synced(one)
		answer(c.assigned(one))
	default:
		answer(SyncResponse{Err: ErrRebalance})
	}
	return nil
}

func (c *classic) checkSync(r *SyncRequest) error {
	if err := c.checkMember(r.MemberID, r.InstanceID); err != nil {
		return err
	}
	switch {
	case r.Generation != c.generation:
		return ErrIllegalGeneration
	case differs(r.ProtocolType, textOrNil(c.protocolType)), differs(r.Protocol, c.protocol):
		return ErrInconsistentProtocol
	}
	return nil
}

// differs tells whether a name that was told is another than the group's.
func differs(told, actual *string) bool {
	return told != nil && actual != nil && *told != *actual
}

// synced notes that a member asked for its assignment.
func (c *classic) synced(one *member) {
	delete(c.pendingSync, one.id)
	if len(c.pendingSync) == 0 {
		c.m.host.StopTimer(timerKey(syncTimer, c.id, ""))
	}
}

func (c *classic) assigned(one *member) SyncResponse {
	return SyncResponse{ProtocolType: textOrNil(c.protocolType), Protocol: c.protocol, Assignment: one.assignment}
}

// store writes the assignments of a generation; members get theirs when that is done.
func (c *classic) store(all []Assignment) *Write {
	assignments := map[string][]byte{}
	for _, a := range all {
		assignments[a.MemberID] = a.Bytes
	}
	generation := c.generation
	return &Write{Records: []Record{c.record(assignments)}, stored: func(err error) {
		if c.state != CompletingRebalance || c.generation != generation {
			return // another rebalance has begun meanwhile
		}
		if err != nil {
			c.notStored(err)
			return
		}
		for _, one := range c.members {
			one.assignment = assignments[one.id]
			if one.answerSync(c.assigned(one)) {
				c.expectHeartbeat(one, one.sessionTimeoutMs)
			}
		}
		c.become(Stable)
	}}
}

// notStored begins another rebalance, since the assignments of this one could not be stored. It ends by its timer,
// if nobody is left at once.
func (c *classic) notStored(err error) {
	c.m.log.Warn("assignments cannot be stored", "group", c.id, "generation", c.generation, "error", err)
	c.resetAssignments(err)
	clear(c.pendingSync)
	c.m.host.StopTimer(timerKey(syncTimer, c.id, ""))
	c.become(PreparingRebalance)
	c.waitForJoins()
}
