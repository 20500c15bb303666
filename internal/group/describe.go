package group

import "strings"

// Listed is a group in a list.
type Listed struct {
	ID           string
	ProtocolType string
	State        string
	Kind         string // classic, consumer
}

// Filter chooses groups to list. Empty lists choose all; letters of states and kinds may be upper or lower case.
type Filter struct {
	States, Kinds []string
}

func (f Filter) chooses(l Listed) bool {
	return anyFold(f.States, l.State) && anyFold(f.Kinds, l.Kind)
}

func anyFold(all []string, one string) bool {
	for _, s := range all {
		if strings.EqualFold(strings.TrimSpace(s), one) {
			return true
		}
	}
	return len(all) == 0
}

// List tells of the groups, in no order.
func (m *Machine) List(f Filter) []Listed {
	var out []Listed
	for id, g := range m.groups {
		l := Listed{ID: id, ProtocolType: g.protocolTypeName(), State: g.stateName(), Kind: g.kind()}
		if f.chooses(l) {
			out = append(out, l)
		}
	}
	return out
}

// Description is a classic group with its members.
type Description struct {
	State        State
	ProtocolType string
	Protocol     string
	Members      []DescribedMember
}

// DescribedMember is a member of a classic group.
type DescribedMember struct {
	ID                   string
	InstanceID           *string
	ClientID, ClientHost string
	Metadata, Assignment []byte
}

// NotFoundError says that there is no group of the wanted protocol; it is ErrNotFound.
type NotFoundError struct {
	Message string // as it goes to clients
}

// Error is the message.
func (e *NotFoundError) Error() string { return e.Message }

// Is tells that the error is ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Describe tells of a classic group. The protocol and what members told with it are only known while it is Stable.
//
// Errors: *NotFoundError.
func (m *Machine) Describe(id string) (Description, error) {
	g := m.groups[id]
	c, ok := g.(*classic)
	switch {
	case g == nil:
		return Description{State: Dead}, &NotFoundError{Message: "Group " + id + " not found."}
	case !ok:
		return Description{State: Dead}, &NotFoundError{Message: "Group " + id + " is not a classic group."}
	}
	d := Description{State: c.state, ProtocolType: c.protocolType}
	if c.state == Stable && c.protocol != nil {
		d.Protocol = *c.protocol
	}
	for _, one := range c.members {
		described := DescribedMember{ID: one.id, InstanceID: one.instanceID, ClientID: one.clientID,
			ClientHost: one.clientHost, Assignment: one.assignment}
		if c.state == Stable {
			described.Metadata = one.metadata(c.protocol)
		}
		d.Members = append(d.Members, described)
	}
	return d, nil
}
