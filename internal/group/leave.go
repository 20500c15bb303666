package group

import "strings"

// Leaving names a member that is to leave: by its id, or a static one by its instance id alone.
type Leaving struct {
	MemberID   string
	InstanceID *string
	Reason     string // why, for the log
}

// Leave removes members from a group. There is one error for each, nil where it left.
//
// Errors: ErrUnknownMember when there is no such group. Of each: ErrUnknownMember, ErrFencedInstance.
func (m *Machine) Leave(groupID string, members []Leaving) (each []error, w *Write, err error) {
	if g, ok := m.groups[groupID].(*consumer); ok {
		each, w = g.leaveClassic(members)
		return each, w, nil
	}
	c := m.classicGroup(groupID)
	if c == nil {
		return nil, nil, ErrUnknownMember
	}
	each = make([]error, len(members))
	var left []string
	for i, l := range members {
		if each[i] = c.leave(l); each[i] == nil {
			left = append(left, l.MemberID)
		}
	}
	if len(left) == 0 {
		return each, nil, nil
	}
	switch c.state {
	case PreparingRebalance:
		w = c.completeIfJoined()
	case CompletingRebalance, Stable:
		w = c.prepareRebalance("members left: " + strings.Join(left, ", "))
	}
	return each, w, nil
}

func (c *classic) leave(l Leaving) error {
	id := l.MemberID
	switch {
	case id == "":
		if l.InstanceID == nil || c.static[*l.InstanceID] == "" {
			return ErrUnknownMember
		}
		id = c.static[*l.InstanceID]
	case c.pendingJoin[id]:
		c.remove(id)
		c.forgetHeartbeat(id)
		return nil
	default:
		if err := c.checkMember(id, l.InstanceID); err != nil {
			return err
		}
	}
	one := c.byID[id]
	c.m.log.Info("member leaves", "group", c.id, "member", id, "reason", l.Reason)
	c.forgetHeartbeat(id)
	c.answerJoin(one, JoinResponse{Err: ErrUnknownMember, Generation: NoGeneration})
	one.answerSync(SyncResponse{Err: ErrUnknownMember})
	c.remove(id)
	return nil
}
