package group

import (
	"strings"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

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

// Describe tells of a classic group. The protocol and what members told with it are only known while it is Stable.
//
// Errors: ErrNotFound, with a message.
func (m *Machine) Describe(id string) (Description, error) {
	g := m.groups[id]
	c, ok := g.(*classic)
	switch {
	case g == nil:
		return Description{State: Dead}, notFound(id)
	case !ok:
		return Description{State: Dead}, refuse(ErrNotFound, "Group %s is not a classic group.", id)
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

// ConsumerDescription is a consumer group with its members.
type ConsumerDescription struct {
	State           string
	Epoch           int32
	AssignmentEpoch int32
	Assignor        string
	Members         []DescribedConsumer // by id
}

// DescribedConsumer is a member of a consumer group.
type DescribedConsumer struct {
	ID                   string
	InstanceID, RackID   *string
	ClientID, ClientHost string
	Epoch                int32
	Topics               []string
	Regex                *string
	Assigned, Target     []DescribedPartitions
	Classic              bool // speaks the classic protocol
}

// DescribedPartitions are partitions of a topic.
type DescribedPartitions struct {
	Topic      string
	TopicID    wire.UUID
	Partitions []int32
}

// DescribeConsumers tells of a consumer group. Partitions of topics that are gone are left out.
//
// Errors: ErrNotFound, with a message.
func (m *Machine) DescribeConsumers(id string) (ConsumerDescription, error) {
	c, ok := m.groups[id].(*consumer)
	switch {
	case m.groups[id] == nil:
		return ConsumerDescription{}, notFound(id)
	case !ok:
		return ConsumerDescription{}, refuse(ErrNotFound, "Group %s is not a consumer group.", id)
	}
	d := ConsumerDescription{State: c.stateName(), Epoch: c.epoch, AssignmentEpoch: c.assignmentEpoch,
		Assignor: c.assignorFor(c.without(nil))}
	image := m.o.Image()
	for _, id := range c.memberIDs() {
		one := c.members[id]
		has := one.assigned.target()
		for topic, partitions := range one.revoking.target() {
			has[topic] = append(has[topic], partitions...)
		}
		d.Members = append(d.Members, DescribedConsumer{ID: id, InstanceID: one.instanceID, RackID: one.rackID,
			ClientID: one.clientID, ClientHost: one.clientHost, Epoch: one.epoch, Topics: one.topics, Regex: one.regex,
			Assigned: has.described(image), Target: c.targets[id].described(image), Classic: one.classic != nil})
	}
	return d, nil
}

func (t target) described(image *metadata.Image) []DescribedPartitions {
	var all []DescribedPartitions
	for _, id := range sortedIDs(t) {
		if topic := image.TopicByID(id); topic != nil {
			all = append(all, DescribedPartitions{Topic: topic.Name, TopicID: id, Partitions: t[id]})
		}
	}
	return all
}
