package group

// replayClassic takes in the record of a classic group; a nil value: the group is gone.
func (m *Machine) replayClassic(id string, value []byte) error {
	if value == nil {
		if g := m.groups[id]; g != nil {
			g.stopTimers()
		}
		delete(m.groups, id)
		return nil
	}
	v, err := decodeClassic(value)
	if err != nil {
		return err
	}
	c := newClassic(m, id)
	c.stateMs, c.generation, c.protocol = v.currentStateMs, v.generation, v.protocol
	c.protocolType = v.protocolType
	if v.leader != nil {
		c.leader = *v.leader
	}
	for _, one := range v.members {
		if err := c.replayMember(v, one); err != nil {
			return err
		}
	}
	if len(v.members) > 0 {
		c.state = Stable
	}
	c.noteSubscriptions()
	m.groups[id] = c
	return nil
}

func (c *classic) replayMember(v *classicValue, one classicMember) error {
	if c.byID[one.id] != nil {
		return ErrUnexpected
	}
	protocol := ""
	if v.protocol != nil {
		protocol = *v.protocol
	}
	if one.rebalanceTimeoutMs < 0 {
		one.rebalanceTimeoutMs = one.sessionTimeoutMs
	}
	c.add(&member{id: one.id, instanceID: one.instanceID, clientID: one.clientID, clientHost: one.clientHost,
		rebalanceTimeoutMs: one.rebalanceTimeoutMs, sessionTimeoutMs: one.sessionTimeoutMs,
		protocols:  []Protocol{{Name: protocol, Metadata: one.subscription}},
		assignment: one.assignment}, v.protocolType, nil)
	return nil
}
