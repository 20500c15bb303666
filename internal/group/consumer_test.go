package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/wire"
)

func init() {
	commands["consume"] = consumeCommand
	commands["topic"] = func(w *world, a *args) { w.setTopic(a.who(), int32(a.int("partitions", 1))) }
	commands["consumers"] = func(w *world, a *args) { w.describeConsumers(a.text("group", "g")) }
}

// consume WHO epoch=N [member=ID] [topics=(A,B)] [regex=R] [owned=(A:0+1)] [instance=ID] [rack=R] [rebalance=MS]
// [assignor=A] [hides=TOPIC]
//
// A member that joins, at epoch 0, has nothing and tells its rebalance timeout.
func consumeCommand(w *world, a *args) {
	r := &ConsumerHeartbeat{Group: a.text("group", "g"), MemberID: a.text("member", a.who()),
		Epoch: int32(a.int("epoch", 0)), InstanceID: a.optional("instance"), RackID: a.optional("rack"),
		ClientID: a.who(), ClientHost: "/10.0.0.1", RebalanceTimeoutMs: -1, Topics: a.list("topics"),
		Regex: a.optional("regex"), Assignor: a.optional("assignor"), NeedsMemberID: a.int("v", 1) >= 1}
	if a.d.HasArg("topics") && r.Topics == nil {
		r.Topics = []string{}
	}
	if a.d.HasArg("owned") {
		r.Owned = []OwnedPartitions{}
	}
	for _, pair := range a.pairs("owned") {
		one := OwnedPartitions{TopicID: topicID(pair[0])}
		for _, p := range strings.Split(pair[1], "+") {
			n, _ := strconv.Atoi(p)
			one.Partitions = append(one.Partitions, int32(n))
		}
		r.Owned = append(r.Owned, one)
	}
	if r.Epoch == 0 {
		r.RebalanceTimeoutMs = 60_000
		if r.Owned == nil {
			r.Owned = []OwnedPartitions{}
		}
	}
	r.RebalanceTimeoutMs = int32(a.int("rebalance", int64(r.RebalanceTimeoutMs)))
	if hidden := a.optional("hides"); hidden != nil {
		r.Visible = func(topic string) bool { return topic != *hidden }
	}
	if err := r.Check(w.config.ConsumerAssignors); err != nil {
		w.printf("%s: %v", a.who(), err)
		return
	}
	answer, one, err := w.m.ConsumerHeartbeat(r)
	if err != nil {
		w.printf("%s: %v", a.who(), err)
		return
	}
	_ = w.write(one) // a lost one is printed
	s := fmt.Sprintf("%s: member %s at epoch %d", a.who(), answer.MemberID, answer.Epoch)
	if answer.Assigned {
		s += ", has"
		for _, t := range answer.Partitions {
			s += fmt.Sprintf(" %s%v", nameOf(t.TopicID), t.Partitions)
		}
	}
	w.printf("%s", s)
}

func nameOf(id wire.UUID) string { return strings.TrimRight(string(id[:]), "\x00") }

func showTarget(t target) string {
	s := ""
	for _, id := range sortedIDs(t) {
		s += fmt.Sprintf(" %s%v", nameOf(id), t[id])
	}
	return s
}

func showOwned(o owned) string {
	s := ""
	for _, id := range sortedIDs(o) {
		s += " " + nameOf(id)
		for _, p := range slices.Sorted(maps.Keys(o[id])) {
			s += fmt.Sprintf(" %d@%d", p, o[id][p])
		}
	}
	return s
}

// showConsumerRecord is a record without its group. Hashes and times are left out.
func showConsumerRecord(key Key, value []byte) string {
	name := map[int16]string{kindEpoch: " epoch", kindPartitionMetadata: " old metadata", kindMember: " member",
		kindTargetEpoch: " target epoch", kindTarget: " target", kindCurrent: " current", kindRegex: " pattern"}[key.Kind]
	name += strings.TrimRight(" "+key.Member+key.Regex, " ")
	if value == nil {
		return name + " tombstone"
	}
	m := newConsumerMember(key.Member)
	switch key.Kind {
	case kindEpoch, kindTargetEpoch:
		epoch, _, err := decodeEpoch(value)
		return name + fmt.Sprintf(" %d", epoch) + showError(err)
	case kindMember:
		err := m.decodeWishes(value)
		s := fmt.Sprintf("%s%s %v rebalance=%d", name, showInstance(m.instanceID), m.topics, m.rebalanceTimeoutMs)
		if m.pattern() != "" {
			s += " pattern=" + m.pattern()
		}
		if m.assignor != nil {
			s += " assignor=" + *m.assignor
		}
		if m.classic != nil {
			s += fmt.Sprintf(" classic %v session=%d", protocolNames(m.classic.protocols), m.classic.sessionTimeoutMs)
		}
		return s + showError(err)
	case kindTarget:
		t, err := decodeTarget(value)
		return name + showTarget(t) + showError(err)
	case kindCurrent:
		err := m.decodeCurrent(value)
		state := map[int8]string{memberStable: "stable", memberUnrevoked: "unrevoked", memberUnreleased: "unreleased"}
		s := fmt.Sprintf("%s epoch=%d from=%d %s%s", name, m.epoch, m.previousEpoch, state[m.state], showOwned(m.assigned))
		if len(m.revoking) > 0 {
			s += " gives up" + showOwned(m.revoking)
		}
		return s + showError(err)
	case kindRegex:
		r, err := decodeResolved(value)
		return name + fmt.Sprintf(" %v", r.topics) + showError(err)
	}
	return name
}

func (w *world) describeConsumers(id string) {
	d, err := w.m.DescribeConsumers(id)
	if err != nil {
		w.printf("%v", err)
		return
	}
	w.printf("%s epoch=%d target=%d %s", d.State, d.Epoch, d.AssignmentEpoch, d.Assignor)
	for _, m := range d.Members {
		s := fmt.Sprintf("  %s%s epoch=%d %v", m.ID, showInstance(m.InstanceID), m.Epoch, m.Topics)
		if m.Classic {
			s += " classic"
		}
		w.printf("%s has%s of%s", s, showDescribed(m.Assigned), showDescribed(m.Target))
	}
}

func showDescribed(all []DescribedPartitions) string {
	s := ""
	for _, t := range all {
		s += fmt.Sprintf(" %s%v", t.Topic, t.Partitions)
	}
	return s
}
