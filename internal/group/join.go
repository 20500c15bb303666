package group

// JoinRequest is a member's wish to be in the next generation.
type JoinRequest struct {
	Group                string
	MemberID             string // "" of a new member
	InstanceID           *string
	ClientID, ClientHost string
	SessionTimeoutMs     int32
	RebalanceTimeoutMs   int32
	ProtocolType         string
	Protocols            []Protocol // by preference
	Reason               string     // why, for the log
	// NeedsMemberID sends a new member away to come again with the id it is given (KIP-394, from v4 on).
	NeedsMemberID bool
	// CanSkipAssignment says that the leader understands SkipAssignment (KIP-814, from v9 on).
	CanSkipAssignment bool
}

// Check tells whether the request is in bounds.
//
// Errors: ErrInvalidGroupID, ErrInvalidSessionTimeout.
func (r *JoinRequest) Check(c Config) error {
	switch {
	case r.Group == "":
		return ErrInvalidGroupID
	case r.SessionTimeoutMs < c.MinSessionTimeoutMs || r.SessionTimeoutMs > c.MaxSessionTimeoutMs:
		return ErrInvalidSessionTimeout
	}
	return nil
}

// JoinResponse is the answer to a join.
type JoinResponse struct {
	Err            error
	Generation     int32
	ProtocolType   *string
	Protocol       *string
	Leader         string
	SkipAssignment bool
	MemberID       string
	Members        []JoinedMember // for the leader
}

// JoinedMember tells the leader of a member.
type JoinedMember struct {
	ID         string
	InstanceID *string
	Metadata   []byte
}

// Join takes a member into the group, or has it in the next generation. It is answered when the rebalance is done.
//
// Errors (in the answer): ErrUnknownMember, ErrMaxSize, ErrInconsistentProtocol, ErrMemberIDRequired,
// ErrFencedInstance, ErrRebalance, ErrUnexpected; and the error of a write.
func (m *Machine) Join(r *JoinRequest, answer func(JoinResponse)) *Write {
	reply := onceJoin(answer)
	refuse := func(id string, err error) { reply(JoinResponse{Err: err, MemberID: id, Generation: NoGeneration}) }
	var ends []Record // of an empty consumer group
	switch g := m.groups[r.Group].(type) {
	case *consumer:
		if !g.isEmpty() {
			return g.joinClassic(r, reply)
		}
		ends = g.tombstones()
		g.stopTimers()
		delete(m.groups, r.Group)
	}
	c := m.classicGroup(r.Group)
	known := c != nil
	if !known {
		if r.MemberID != "" {
			refuse(r.MemberID, ErrUnknownMember)
			return nil
		}
		c = newClassic(m, r.Group)
		m.groups[r.Group] = c
	}
	var w *Write
	switch {
	case !c.accepts(r.MemberID):
		c.remove(r.MemberID)
		refuse("", ErrMaxSize)
	case r.MemberID == "":
		w = c.joinNew(r, reply, refuse)
	default:
		w = c.joinKnown(r, reply, refuse)
	}
	if !known && w == nil {
		return c.writeNew(ends, reply)
	}
	return w
}

// onceJoin drops all answers but the first.
func onceJoin(answer func(JoinResponse)) func(JoinResponse) {
	return func(r JoinResponse) {
		if answer != nil {
			one := answer
			answer = nil
			one(r)
		}
	}
}

// writeNew writes the record of a new group, so that it is there after a restart; before it the end of another.
func (c *classic) writeNew(ends []Record, reply func(JoinResponse)) *Write {
	value := classicValue{currentStateMs: c.stateMs}
	return &Write{
		Records: append(ends, Record{Key: classicKey(c.id), Value: value.appendTo(nil)}),
		stored: func(err error) {
			if err != nil {
				c.m.log.Warn("record of a new group cannot be written", "group", c.id, "error", err)
				reply(JoinResponse{Err: err, Generation: NoGeneration})
			}
		},
	}
}

// accepts tells whether there is room for a member.
//
// Kafka: GroupMetadataManager.acceptJoiningMember.
func (c *classic) accepts(id string) bool {
	most := int(c.m.o.Config().MaxSize)
	one := c.byID[id]
	switch c.state {
	case PreparingRebalance:
		return one != nil && one.join != nil || c.waitingJoin < most
	case CompletingRebalance, Stable:
		return one != nil || len(c.members) < most
	default:
		return true
	}
}

func (c *classic) joinNew(r *JoinRequest, reply func(JoinResponse), refuse func(string, error)) *Write {
	if !c.supports(r.ProtocolType, r.Protocols) {
		refuse("", ErrInconsistentProtocol)
		return nil
	}
	if r.InstanceID != nil {
		id := *r.InstanceID + "-" + c.m.o.NewID()
		if old, ok := c.static[*r.InstanceID]; ok {
			return c.replaceStatic(r, old, id, reply)
		}
		return c.addMember(r, id, reply)
	}
	id := r.ClientID + "-" + c.m.o.NewID()
	if !r.NeedsMemberID {
		return c.addMember(r, id, reply)
	}
	c.pendingJoin[id] = true
	c.expectSign(id, r.SessionTimeoutMs)
	refuse(id, ErrMemberIDRequired)
	return nil
}

func (c *classic) joinKnown(r *JoinRequest, reply func(JoinResponse), refuse func(string, error)) *Write {
	if !c.supports(r.ProtocolType, r.Protocols) {
		refuse(r.MemberID, ErrInconsistentProtocol)
		return nil
	}
	if c.pendingJoin[r.MemberID] {
		if r.InstanceID != nil {
			refuse("", ErrUnexpected)
			return nil
		}
		return c.addMember(r, r.MemberID, reply)
	}
	if err := c.checkMember(r.MemberID, r.InstanceID); err != nil {
		refuse(r.MemberID, err)
		return nil
	}
	one := c.byID[r.MemberID]
	switch c.state {
	case PreparingRebalance:
		return c.updateMember(one, r, "member joins again", reply)
	case CompletingRebalance:
		if !one.offers(r.Protocols) {
			return c.updateMember(one, r, "member has new metadata", reply)
		}
		reply(c.joined(one))
	case Stable:
		switch {
		case c.leader == one.id:
			return c.updateMember(one, r, "leader joins again", reply)
		case !one.offers(r.Protocols):
			return c.updateMember(one, r, "member has new metadata", reply)
		}
		again := c.joined(one)
		again.Members = nil
		reply(again)
	default:
		refuse(r.MemberID, ErrUnknownMember)
	}
	return nil
}

// joined tells a member of the generation that it is in.
func (c *classic) joined(one *member) JoinResponse {
	r := JoinResponse{Generation: c.generation, ProtocolType: textOrNil(c.protocolType), Protocol: c.protocol,
		Leader: c.leader, MemberID: one.id}
	if c.leader == one.id {
		r.Members = c.joinedMembers()
	}
	return r
}

func (c *classic) joinedMembers() []JoinedMember {
	all := make([]JoinedMember, len(c.members))
	for i, one := range c.members {
		all[i] = JoinedMember{ID: one.id, InstanceID: one.instanceID, Metadata: one.metadata(c.protocol)}
	}
	return all
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (c *classic) addMember(r *JoinRequest, id string, reply func(JoinResponse)) *Write {
	one := &member{id: id, instanceID: r.InstanceID, clientID: r.ClientID, clientHost: r.ClientHost, isNew: true,
		rebalanceTimeoutMs: r.RebalanceTimeoutMs, sessionTimeoutMs: r.SessionTimeoutMs, protocols: r.Protocols}
	if c.state == PreparingRebalance && c.previous == Empty {
		c.newMemberAdded = true
	}
	c.add(one, r.ProtocolType, reply)
	c.expectHeartbeat(one, newMemberJoinTimeoutMs)
	return c.rebalanceOrComplete("new member " + id + reasonOf(r))
}

func (c *classic) updateMember(one *member, r *JoinRequest, why string, reply func(JoinResponse)) *Write {
	c.update(one, r.Protocols, r.RebalanceTimeoutMs, r.SessionTimeoutMs)
	c.awaitJoin(one, reply)
	return c.rebalanceOrComplete(why + ": " + one.id + reasonOf(r))
}

func (c *classic) update(one *member, protocols []Protocol, rebalanceTimeoutMs, sessionTimeoutMs int32) {
	c.count(one, -1)
	one.protocols = protocols
	c.count(one, 1)
	one.rebalanceTimeoutMs, one.sessionTimeoutMs = rebalanceTimeoutMs, sessionTimeoutMs
}

func reasonOf(r *JoinRequest) string {
	if r.Reason == "" {
		return ""
	}
	return ", client says: " + r.Reason
}
