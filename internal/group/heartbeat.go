package group

// Heartbeat is a member's sign of life.
//
// Errors: ErrUnknownMember, ErrFencedInstance, ErrIllegalGeneration, ErrRebalance.
func (m *Machine) Heartbeat(groupID, memberID string, instanceID *string, generation int32) error {
	if g, ok := m.groups[groupID].(*consumer); ok {
		return g.heartbeatClassic(memberID, instanceID, generation)
	}
	c := m.classicGroup(groupID)
	if c == nil {
		return ErrUnknownMember
	}
	if err := c.checkMember(memberID, instanceID); err != nil {
		return err
	}
	if generation != c.generation {
		return ErrIllegalGeneration
	}
	if c.state == Empty {
		return ErrUnknownMember
	}
	one := c.byID[memberID]
	c.expectHeartbeat(one, one.sessionTimeoutMs)
	if c.state == PreparingRebalance {
		return ErrRebalance
	}
	return nil
}
