package group

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Values of all versions, made by another encoder of Kafka's formats, are understood.
func TestOldVersions(t *testing.T) {
	for version := int16(0); version <= 4; version++ {
		o := kmsg.NewOffsetCommitValue()
		o.Version, o.Offset, o.Metadata, o.CommitTimestamp, o.ExpireTimestamp, o.LeaderEpoch = version, 7, "m", 8, 9, 3
		want := Offset{Offset: 7, Metadata: "m", CommitMs: 8, ExpireMs: -1, LeaderEpoch: -1}
		if version == 1 {
			want.ExpireMs = 9
		}
		if version >= 3 {
			want.LeaderEpoch = 3
		}
		if version > 3 {
			continue // the encoder's version 4 is not of this release
		}
		if got, err := DecodeOffset(o.AppendTo(nil)); err != nil || got != want {
			t.Errorf("offset v%d: %+v, %v", version, got, err)
		}
	}
	for version := int16(0); version <= 3; version++ {
		g := kmsg.NewGroupMetadataValue()
		g.Version, g.ProtocolType, g.Generation, g.CurrentStateTimestamp = version, "consumer", 4, 5
		g.Protocol, g.Leader = kmsg.StringPtr("range"), kmsg.StringPtr("m1")
		m := kmsg.NewGroupMetadataValueMember()
		m.MemberID, m.InstanceID, m.ClientID, m.ClientHost = "m1", kmsg.StringPtr("i1"), "c", "/h"
		m.RebalanceTimeoutMillis, m.SessionTimeoutMillis = 6, 7
		m.Subscription, m.Assignment = []byte("s"), []byte("a")
		g.Members = append(g.Members, m)
		want := &classicValue{protocolType: "consumer", generation: 4, protocol: g.Protocol, leader: g.Leader,
			currentStateMs: 5, members: []classicMember{{id: "m1", instanceID: m.InstanceID, clientID: "c", clientHost: "/h",
				rebalanceTimeoutMs: 6, sessionTimeoutMs: 7, subscription: m.Subscription, assignment: m.Assignment}}}
		if version < 3 {
			want.members[0].instanceID = nil
		}
		if version < 2 {
			want.currentStateMs = -1
		}
		if version < 1 {
			want.members[0].rebalanceTimeoutMs = -1
		}
		if got, err := decodeClassic(g.AppendTo(nil)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("group v%d: %+v, %v", version, got, err)
		}
	}
}

// Any bytes give a value or an error, and what was decoded can be written and decoded again.
func FuzzReplay(f *testing.F) {
	seed := func(key, value string) {
		k, _ := hex.DecodeString(key)
		v, _ := hex.DecodeString(value)
		f.Add(k, v)
	}
	seed("00010001670001740000000000", "0004000000000000000700000000016d000000000000000800")
	seed("0002000167", "00030008636f6e73756d657200000001ffffffff000000000000000500000000")
	f.Add(offsetKey("g", "t", 0), Offset{Offset: 1, ExpireMs: 5, LeaderEpoch: -1}.AppendTo(nil))
	for _, r := range seedGroup().records() {
		f.Add(r.Key, r.Value)
	}
	pattern := Key{Kind: kindRegex, Group: "g", Regex: "a.*"}
	f.Add(pattern.AppendTo(nil), resolved{topics: []string{"a"}, version: 1, timestampMs: 2}.encode())
	f.Fuzz(func(t *testing.T, key, value []byte) {
		w := newWorld()
		w.quiet = true
		if w.m.Replay(Replayed{ProducerID: noProducer, Key: key, Value: value}) != nil {
			return
		}
		w.m.Loaded()
		for id, g := range w.m.groups {
			if _, err := w.m.Fetch(&FetchRequest{Group: id, MemberEpoch: -1, All: true}); err != nil {
				t.Fatal(err)
			}
			if c, ok := g.(*consumer); ok {
				checkConsumerAgain(t, c)
				continue
			}
			c := g.(*classic)
			if len(c.members) == 0 {
				continue
			}
			assignments := map[string][]byte{}
			for _, one := range c.members {
				assignments[one.id] = one.assignment
			}
			again := c.record(assignments)
			v, err := decodeClassic(again.Value)
			if err != nil || !bytes.Equal(v.appendTo(nil), again.Value) {
				t.Fatalf("%x: %v", again.Value, err)
			}
		}
	})
}

// seedGroup is a consumer group with a member of each protocol.
func seedGroup() *consumer {
	c := newConsumer(newWorld().m, "g")
	one := newConsumerMember("a")
	one.topics, one.epoch, one.assigned = []string{"t"}, 3, owned{topicID("t"): {0: 2, 1: 3}}
	c.put(one)
	two := newConsumerMember("b")
	two.classic = &classicMetadata{sessionTimeoutMs: 6000, protocols: []Protocol{{Name: "range", Metadata: []byte("m")}}}
	two.state, two.revoking = memberUnrevoked, owned{topicID("u"): {5: 1}}
	c.put(two)
	c.targets["a"] = target{topicID("t"): {0, 1, 2}}
	return c
}

// checkConsumerAgain tells whether a group's records lead to the same group.
func checkConsumerAgain(t *testing.T, c *consumer) {
	t.Helper()
	again := newWorld()
	again.quiet = true
	for _, r := range c.records() {
		if err := again.m.Replay(Replayed{ProducerID: noProducer, Key: r.Key, Value: r.Value}); err != nil {
			t.Fatalf("%x %x: %v", r.Key, r.Value, err)
		}
	}
	d := again.m.groups[c.id].(*consumer)
	for id, m := range c.members {
		n := d.members[id]
		if n == nil || !n.sameWishes(m) || !n.assigned.same(m.assigned) || !n.revoking.same(m.revoking) {
			t.Fatalf("member %+v became %+v", m, n)
		}
	}
}
