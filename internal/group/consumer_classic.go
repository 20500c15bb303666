package group

import "slices"

// joinClassic takes a member of the classic protocol into a consumer group. It is answered at once, as a follower: the
// coordinator assigns.
func (c *consumer) joinClassic(r *JoinRequest, reply func(JoinResponse)) *Write {
	s := &step{c: c, image: c.m.o.Image()}
	next, downgrade, err := s.joinClassic(r)
	if err != nil {
		id := ""
		if next != nil {
			id = next.id
		}
		reply(JoinResponse{Err: err, MemberID: id, Generation: NoGeneration})
		return nil
	}
	var w *Write
	if downgrade {
		w = c.downgrade(nil, next, c.assignmentEpoch < s.epoch, s.records...)
	} else if w = s.write(); w == nil {
		w = &Write{}
	}
	protocol, kind := r.Protocols[0].Name, ConsumerProtocolType
	w.stored = func(err error) {
		if err != nil {
			reply(JoinResponse{Err: err, Generation: NoGeneration})
			return
		}
		if g, ok := c.m.groups[c.id].(*consumer); ok && !downgrade {
			g.stopJoinTimer(next.id)
			g.mind(sessionTimer, next.id, r.SessionTimeoutMs)
			g.mind(classicSyncTimer, next.id, r.RebalanceTimeoutMs)
		}
		reply(JoinResponse{Generation: next.epoch, ProtocolType: &kind, Protocol: &protocol, MemberID: next.id})
	}
	if len(w.Records) == 0 {
		w.stored(nil)
		return nil
	}
	return w
}

func (s *step) joinClassic(r *JoinRequest) (next *consumerMember, downgrade bool, err error) {
	c, config := s.c, s.c.m.o.Config()
	id := r.MemberID
	if id == "" {
		id = c.m.o.NewShortID()
	}
	switch {
	case config.ConsumerMigration == MigrateNever:
		return nil, false, ErrInconsistentProtocol
	case len(c.members) >= int(config.ConsumerMaxSize) && c.members[id] == nil:
		return nil, false, ErrMaxSize
	case !c.supportsClassic(r):
		return nil, false, ErrInconsistentProtocol
	case r.NeedsMemberID && r.MemberID == "" && r.InstanceID == nil:
		return newConsumerMember(id), false, ErrMemberIDRequired
	}
	wanted, ok := readSubscription(r.Protocols[0].Metadata, false)
	if !ok {
		return nil, false, ErrUnexpected
	}
	old, replaced, err := s.classicMemberFor(r, id)
	if err != nil {
		return nil, false, err
	}
	downgrade = replaced != nil && c.canDowngrade(nil, replaced)
	next = r.wishes(old, wanted)
	changed, bump, err := s.takeWishes(old, next)
	if err != nil {
		return nil, false, err
	}
	s.advance(next, bump || changed)
	to, toEpoch := c.lastTarget(next), c.assignmentEpoch
	if !downgrade {
		to, toEpoch = s.aim(next)
	}
	if !downgrade || c.assignmentEpoch >= s.epoch {
		next, err = s.reconcile(next, to, toEpoch, changed, ownedByID(s.image, wanted.has))
	}
	return next, downgrade, err
}

// wishes is a member with what it tells by the classic protocol.
func (r *JoinRequest) wishes(old *consumerMember, wanted subscription) *consumerMember {
	next, none := *old, ""
	if r.InstanceID != nil {
		next.instanceID = r.InstanceID
	}
	if rack := filled(wanted.rack); rack != nil {
		next.rackID = rack
	}
	if r.RebalanceTimeoutMs != -1 {
		next.rebalanceTimeoutMs = r.RebalanceTimeoutMs
	}
	next.topics, next.regex = sortedTopics(wanted.topics), &none
	next.clientID, next.clientHost = r.ClientID, r.ClientHost
	next.classic = &classicMetadata{sessionTimeoutMs: r.SessionTimeoutMs, protocols: r.Protocols}
	return &next
}

// supportsClassic tells whether all members of the classic protocol have one of the protocols.
func (c *consumer) supportsClassic(r *JoinRequest) bool {
	if r.ProtocolType != ConsumerProtocolType || len(r.Protocols) == 0 {
		return false
	}
	return slices.ContainsFunc(protocolNames(r.Protocols), func(name string) bool {
		for _, m := range c.members {
			if m.classic != nil && !slices.Contains(protocolNames(m.classic.protocols), name) {
				return false
			}
		}
		return true
	})
}

// classicMemberFor finds the member that joins, or makes it; replaced is the static one in whose place it comes.
func (s *step) classicMemberFor(r *JoinRequest, id string) (m, replaced *consumerMember, err error) {
	if r.InstanceID == nil {
		if m = s.c.members[id]; m == nil {
			m = newConsumerMember(id)
		}
		return m, nil, nil
	}
	m = s.c.members[s.c.static[*r.InstanceID]]
	if r.MemberID != "" {
		return m, m, s.c.checkInstance(m, *r.InstanceID, id)
	}
	if m == nil {
		return newConsumerMember(id), nil, nil
	}
	return s.replace(m, id), m, nil
}

// classicMember finds a member of the classic protocol.
func (c *consumer) classicMember(id string, instanceID *string) (*consumerMember, error) {
	m := c.members[id]
	if instanceID != nil {
		m = c.members[c.static[*instanceID]]
		if m != nil && m.id != id {
			return nil, ErrFencedInstance
		}
	}
	if m == nil || m.classic == nil {
		return nil, ErrUnknownMember
	}
	return m, nil
}

// syncClassic gives a member of the classic protocol its assignment.
func (c *consumer) syncClassic(r *SyncRequest, answer func(SyncResponse)) *Write {
	m, err := c.classicMember(r.MemberID, r.InstanceID)
	if err == nil {
		err = c.checkClassicSync(r, m)
	}
	if err != nil {
		answer(SyncResponse{Err: err})
		return nil
	}
	c.m.host.StopTimer(timerKey(classicSyncTimer, c.id, m.id))
	c.expectSession(m)
	first := m.classic.protocols[0]
	assigned := m.assigned.target().byName(c.m.o.Image())
	answer(SyncResponse{ProtocolType: r.ProtocolType, Protocol: r.Protocol,
		Assignment: writeAssignment(assigned, first.Metadata)})
	return nil
}

func (c *consumer) checkClassicSync(r *SyncRequest, m *consumerMember) error {
	kind := ConsumerProtocolType
	switch {
	case r.Generation != m.epoch:
		return ErrIllegalGeneration
	case len(m.classic.protocols) == 0, differs(r.ProtocolType, &kind), differs(r.Protocol, &m.classic.protocols[0].Name):
		return ErrInconsistentProtocol
	case c.assignmentEpoch > m.epoch && m.state != memberUnrevoked:
		c.startJoinTimer(m)
		return ErrRebalance
	}
	return nil
}

// heartbeatClassic is a sign of life of a member of the classic protocol. It learns that it has to join again when
// there is something for it to give up or to get.
func (c *consumer) heartbeatClassic(id string, instanceID *string, generation int32) error {
	m, err := c.classicMember(id, instanceID)
	if err != nil {
		return err
	}
	if m.epoch != generation {
		return ErrIllegalGeneration
	}
	c.expectSession(m)
	if m.epoch < c.assignmentEpoch || m.state == memberUnrevoked || m.state == memberUnreleased && !c.waits(m) {
		c.startJoinTimer(m)
		return ErrRebalance
	}
	return nil
}

// leaveClassic removes members that leave by the classic protocol; it may be of the others too.
func (c *consumer) leaveClassic(members []Leaving) (each []error, w *Write) {
	var gone []*consumerMember
	each = make([]error, len(members))
	for i, l := range members {
		m := c.members[l.MemberID]
		if l.InstanceID != nil {
			m = c.members[c.static[*l.InstanceID]]
			if m != nil && l.MemberID != "" && m.id != l.MemberID {
				each[i] = ErrFencedInstance
				continue
			}
		}
		if m == nil {
			each[i] = ErrUnknownMember
		} else if !slices.Contains(gone, m) {
			gone = append(gone, m)
		}
	}
	return each, c.fence(gone)
}

// startJoinTimer gives a member of the classic protocol its rebalance timeout to join again, unless it has it already.
func (c *consumer) startJoinTimer(m *consumerMember) {
	if !c.joinTimers[m.id] {
		c.joinTimers[m.id] = true
		c.mind(classicJoinTimer, m.id, m.rebalanceTimeoutMs)
	}
}

func (c *consumer) stopJoinTimer(id string) {
	delete(c.joinTimers, id)
	c.m.host.StopTimer(timerKey(classicJoinTimer, c.id, id))
}
