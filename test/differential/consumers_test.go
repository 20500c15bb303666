//go:build oracle

package differential

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestConsumerGroups compares groups of the consumer protocol (KIP-848), request by request. Members of the new
// protocol name themselves, so that both sides have the same ids.
func TestConsumerGroups(t *testing.T) {
	w := newGroupWorld(t, "group.consumer.assignment.interval.ms", "0")
	w.create(t, "t", 4)
	w.create(t, "u", 3)
	w.create(t, "logs-a", 1)
	w.loaded(t)
	w.run(t, "refused", w.testRefusedConsumers)
	w.run(t, "one", w.testOneConsumer)
	w.run(t, "two", w.testTwoConsumers)
	w.run(t, "range", w.testRangeConsumers)
	w.run(t, "different", w.testDifferentConsumers)
	w.run(t, "static", w.testStaticConsumers)
	w.run(t, "patterns", w.testPatterns)
	w.run(t, "upgrade", w.testUpgrade)
	w.run(t, "downgrade", w.testDowngrade)
	w.run(t, "classic requests", w.testClassicRequests)
	w.run(t, "more partitions", w.testMorePartitions)
	w.run(t, "lists", w.testLists)
	w.stop(t)
}

// beatSpec is a ConsumerGroupHeartbeat request. Owned is "t:0,1 u:2", "" for nothing; "-" is not told.
type beatSpec struct {
	version  int16
	group    string
	member   string
	epoch    int32
	instance string
	rack     string
	timeout  int32
	topics   []string
	regex    string
	assignor string
	owned    string
}

// joins is the first heartbeat of a member.
func joins(group, member string, topics ...string) beatSpec {
	return beatSpec{version: 1, group: group, member: member, timeout: 60_000, topics: topics}
}

// beats is a heartbeat without news.
func beats(group, member string, epoch int32) beatSpec {
	return beatSpec{version: 1, group: group, member: member, epoch: epoch, timeout: -1, owned: "-"}
}

func (b beatSpec) with(f func(b *beatSpec)) beatSpec {
	f(&b)
	return b
}

func (b beatSpec) has(owned string) beatSpec {
	b.owned = owned
	return b
}

func (w *groupWorld) beatRequest(b beatSpec) request {
	filled := func(s string) *string {
		if s == "" {
			return nil
		}
		return kmsg.StringPtr(strings.TrimPrefix(s, "="))
	}
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.SetVersion(b.version)
		req.Group, req.MemberID, req.MemberEpoch = b.group, w.member(s, b.member), b.epoch
		req.InstanceID, req.RackID, req.ServerAssignor = filled(b.instance), filled(b.rack), filled(b.assignor)
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames = b.timeout, b.topics
		req.SubscribedTopicRegex = filled(b.regex)
		if b.owned != "-" {
			req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		}
		for _, word := range strings.Fields(strings.TrimPrefix(b.owned, "-")) {
			topic, list, _ := strings.Cut(word, ":")
			one := kmsg.NewConsumerGroupHeartbeatRequestTopic()
			one.TopicID = s.topicID(topic)
			for _, p := range strings.Split(list, ",") {
				one.Partitions = append(one.Partitions, int32(p[0]-'0'))
			}
			req.Topics = append(req.Topics, one)
		}
		return req
	}
}

func (w *groupWorld) beat(t *testing.T, name string, b beatSpec) kmsg.Response {
	t.Helper()
	return w.group(t, name, w.beatRequest(b))
}

func (w *groupWorld) describeConsumers(t *testing.T, name string, groups ...string) {
	t.Helper()
	for v := int16(0); v <= 1; v++ {
		w.same(t, name, func(*side) kmsg.Request {
			req := kmsg.NewPtrConsumerGroupDescribeRequest()
			req.SetVersion(v)
			req.Groups, req.IncludeAuthorizedOperations = groups, v == 1
			return req
		}, w.names, described)
	}
}

// described sorts what Kafka tells in the order of its hash tables.
func described(s *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			described(s, value)
			if list, ok := value.([]any); ok {
				switch key {
				case "Groups":
					sortBy(list, "Group")
				case "Members":
					sortBy(list, "MemberID")
				case "TopicPartitions":
					sortBy(list, "Topic")
				case "SubscribedTopics", "Partitions":
					sortBy(list, "")
				}
			}
		}
	case []any:
		for _, one := range v {
			described(s, one)
		}
	}
	return tree
}

func (w *groupWorld) testRefusedConsumers(t *testing.T) {
	for v := int16(0); v <= 1; v++ {
		try := func(name string, f func(b *beatSpec)) {
			w.beat(t, name, joins("refused", "m", "t").with(func(b *beatSpec) { b.version = v }).with(f))
		}
		try("no group", func(b *beatSpec) { b.group = "" })
		try("blank group", func(b *beatSpec) { b.group = "  " })
		try("blank instance", func(b *beatSpec) { b.instance = "= " })
		try("blank rack", func(b *beatSpec) { b.rack = "=" })
		try("no timeout", func(b *beatSpec) { b.timeout = -1 })
		try("no topics told", func(b *beatSpec) { b.topics = nil })
		try("owned not told", func(b *beatSpec) { b.owned = "-" })
		try("owns something", func(b *beatSpec) { b.owned = "t:0" })
		try("unknown assignor", func(b *beatSpec) { b.assignor = "best" })
		try("no member id", func(b *beatSpec) { b.member, b.epoch = "", 3 })
		try("no member id to leave", func(b *beatSpec) { b.member, b.epoch = "", -1 })
		try("leaves for a while without instance", func(b *beatSpec) { b.epoch = -2 })
		try("epoch below all", func(b *beatSpec) { b.epoch = -3 })
		try("no such group", func(b *beatSpec) { b.epoch = 1 })
		try("leaves no such group", func(b *beatSpec) { b.epoch = -1 })
		try("static leaves no such group", func(b *beatSpec) { b.epoch, b.instance = -2, "i" })
	}
	w.beat(t, "joins without id", joins("refused", "", "t"))
	w.beat(t, "no regular expression", joins("refused", "m").with(func(b *beatSpec) { b.topics, b.regex = nil, "a(b" }))
	w.beat(t, "no such class", joins("refused", "m").with(func(b *beatSpec) { b.topics, b.regex = nil, "[z-a]" }))
	w.describeConsumers(t, "describe", "refused", "", "none")
	w.describeConsumers(t, "describe nothing")
}

func (w *groupWorld) testOneConsumer(t *testing.T) {
	w.beat(t, "joins", joins("one", "a", "t", "t", "nowhere"))
	w.describeConsumers(t, "describe", "one", "none")
	w.group(t, "describe as classic", describeGroups(6, "one"))
	w.group(t, "describe as classic", describeGroups(5, "one"))
	w.beat(t, "no news", beats("one", "a", 2))
	w.beat(t, "epoch before", beats("one", "a", 0).with(func(b *beatSpec) { b.epoch = 1 }))
	w.beat(t, "epoch after", beats("one", "a", 3))
	w.beat(t, "stranger", beats("one", "b", 2))
	w.beat(t, "stranger leaves", beats("one", "b", -1))
	w.beat(t, "static stranger", beats("one", "b", 2).with(func(b *beatSpec) { b.instance = "i" }))
	w.beat(t, "static stranger leaves", beats("one", "b", -2).with(func(b *beatSpec) { b.instance = "i" }))
	w.beat(t, "joins again", joins("one", "a", "t"))
	w.beat(t, "tells everything", joins("one", "a", "t").has("t:0,1,2,3").with(func(b *beatSpec) { b.epoch = 3 }))
	for v := int16(2); v <= 10; v++ {
		c := commitSpec{version: v, group: "one", member: "a", generation: 3, topic: "t", partitions: []int32{0, 1}}
		w.group(t, "commit", w.commitRequest(c))
		c.generation = 2
		w.group(t, "commit of an earlier epoch", w.commitRequest(c))
		c.generation = 1
		w.group(t, "commit of an epoch before", w.commitRequest(c))
		c.generation = 4
		w.group(t, "commit of a later epoch", w.commitRequest(c))
		c.member, c.generation = "b", 3
		w.group(t, "commit of a stranger", w.commitRequest(c))
		c.member, c.generation = "", -1
		w.group(t, "commit of nobody", w.commitRequest(c))
		c.group, c.generation = "none", 1
		w.group(t, "commit to no group", w.commitRequest(c))
	}
	for v := int16(1); v <= 10; v++ {
		w.group(t, "fetch", fetchCommitted(v, "one", "t"))
		for _, who := range []struct {
			member string
			epoch  int32
		}{{"a", 3}, {"a", 2}, {"a", -1}, {"b", 3}} {
			if v < 9 {
				continue
			}
			w.group(t, fmt.Sprint("fetch of ", who), func(s *side) kmsg.Request {
				req := fetchCommitted(v, "one", "t")(s).(*kmsg.OffsetFetchRequest)
				req.Groups[0].MemberID, req.Groups[0].MemberEpoch = &who.member, who.epoch
				return req
			})
		}
	}
	w.group(t, "delete", deleteGroups(2, "one"))
	w.group(t, "delete offsets", deleteOffsets("one", "t", "u", "nowhere"))
	w.beat(t, "wants other topics", beats("one", "a", 3).with(func(b *beatSpec) { b.topics = []string{"u"} }))
	w.describeConsumers(t, "describe", "one")
	w.beat(t, "gave up", beats("one", "a", 3).has(""))
	w.beat(t, "no news", beats("one", "a", 4))
	w.describeConsumers(t, "describe", "one")
	w.beat(t, "wants nothing", beats("one", "a", 4).with(func(b *beatSpec) { b.topics = []string{} }))
	w.beat(t, "gave up", beats("one", "a", 4).has(""))
	w.beat(t, "rack, timeout and assignor", beats("one", "a", 5).with(func(b *beatSpec) {
		b.rack, b.timeout, b.assignor = "r", 5000, "range"
	}))
	w.describeConsumers(t, "describe", "one")
	w.beat(t, "leaves", beats("one", "a", -1))
	w.describeConsumers(t, "describe an empty group", "one")
	w.beat(t, "beats after it left", beats("one", "a", 5))
	w.group(t, "commit to an empty group", w.commitRequest(commitSpec{version: 9, group: "one", generation: -1,
		topic: "t", partitions: []int32{0}}))
	w.group(t, "delete", deleteGroups(2, "one"))
	w.describeConsumers(t, "describe a deleted group", "one")
}

// testTwoConsumers has a second member get its share from the first.
func (w *groupWorld) testTwoConsumers(t *testing.T) {
	w.beat(t, "first joins", joins("two", "a", "t"))
	w.beat(t, "second joins", joins("two", "b", "t"))
	w.describeConsumers(t, "describe", "two")
	w.beat(t, "second waits", beats("two", "b", 3))
	w.beat(t, "first is to give up", beats("two", "a", 2))
	w.describeConsumers(t, "describe", "two")
	w.beat(t, "first has not given up", beats("two", "a", 2).has("t:0,1,2,3"))
	w.beat(t, "second waits still", beats("two", "b", 3))
	w.beat(t, "first has given up", beats("two", "a", 2).has("t:0,1"))
	w.beat(t, "second gets its share", beats("two", "b", 3))
	w.describeConsumers(t, "describe", "two")
	w.beat(t, "first with the epoch before", beats("two", "a", 2).has("t:0,1"))
	w.beat(t, "first with the epoch before and others", beats("two", "a", 2).has("t:2"))
	w.beat(t, "third joins", joins("two", "c", "t", "u"))
	w.describeConsumers(t, "describe", "two")
	w.beat(t, "second leaves", beats("two", "b", -1))
	w.describeConsumers(t, "describe", "two")
	w.beat(t, "first beats", beats("two", "a", 3))
	w.beat(t, "third beats", beats("two", "c", 4))
	w.describeConsumers(t, "describe", "two")
	w.beat(t, "first leaves", beats("two", "a", -1))
	w.beat(t, "third leaves", beats("two", "c", -1))
}

func (w *groupWorld) testRangeConsumers(t *testing.T) {
	by := func(member, instance string, topics ...string) beatSpec {
		return joins("ranges", member, topics...).with(func(b *beatSpec) { b.assignor, b.instance = "range", instance })
	}
	w.beat(t, "first", by("a", "", "t", "u"))
	w.beat(t, "second", by("b", "", "t", "u"))
	w.describeConsumers(t, "describe", "ranges")
	w.beat(t, "static", by("c", "i", "u"))
	w.describeConsumers(t, "describe", "ranges")
	w.beat(t, "another votes for uniform", joins("ranges", "d", "t").with(func(b *beatSpec) { b.assignor = "uniform" }))
	w.describeConsumers(t, "describe", "ranges")
	w.beat(t, "static of lower instance id", by("e", "h", "u", "t"))
	w.describeConsumers(t, "describe", "ranges")
}

// testDifferentConsumers has members with different topics share them.
func (w *groupWorld) testDifferentConsumers(t *testing.T) {
	w.create(t, "v", 6)
	w.beat(t, "first", joins("different", "a", "t", "u"))
	w.beat(t, "second", joins("different", "b", "u", "v"))
	w.describeConsumers(t, "describe", "different")
}

func (w *groupWorld) testStaticConsumers(t *testing.T) {
	static := func(b beatSpec) beatSpec {
		b.instance = "i"
		return b
	}
	w.beat(t, "joins", static(joins("static", "a", "t")))
	w.beat(t, "another with its instance id", static(joins("static", "b", "t")))
	w.beat(t, "beats as another", static(beats("static", "b", 2)))
	w.beat(t, "leaves as another", static(beats("static", "b", -2)))
	w.beat(t, "no news", static(beats("static", "a", 2)))
	w.beat(t, "without instance", beats("static", "a", 2))
	w.beat(t, "leaves for a while", static(beats("static", "a", -2)))
	w.describeConsumers(t, "describe", "static")
	w.beat(t, "beats while away", static(beats("static", "a", 2)))
	w.beat(t, "comes back as another", static(joins("static", "b", "t")))
	w.describeConsumers(t, "describe", "static")
	w.beat(t, "the old one", static(beats("static", "a", 2)))
	w.beat(t, "leaves for a while", static(beats("static", "b", -2)))
	w.beat(t, "comes back with another wish", static(joins("static", "c", "u")))
	w.beat(t, "gives up", static(beats("static", "c", 2)).has(""))
	w.describeConsumers(t, "describe", "static")
	w.group(t, "leaves by a classic request", w.leaveRequest(5, "static", "instance i", "instance j", "c"))
	w.describeConsumers(t, "describe", "static")
}

func (w *groupWorld) testPatterns(t *testing.T) {
	w.beat(t, "joins", joins("patterns", "a").with(func(b *beatSpec) { b.topics, b.regex = nil, "logs-.*" }))
	w.settle(t, "patterns", 2)
	w.beat(t, "gets it", beats("patterns", "a", 1))
	w.describeConsumers(t, "describe", "patterns")
	w.beat(t, "another of the same", joins("patterns", "b", "t").with(func(b *beatSpec) { b.regex = "logs-.*" }))
	w.describeConsumers(t, "describe", "patterns")
	w.beat(t, "wants no pattern", beats("patterns", "a", 2).with(func(b *beatSpec) {
		b.regex, b.topics = "=", []string{"u"}
	}))
	w.describeConsumers(t, "describe", "patterns")
	w.group(t, "delete offsets", deleteOffsets("patterns", "logs-a", "t", "u"))
	w.beat(t, "leaves", beats("patterns", "b", -1))
	w.describeConsumers(t, "describe", "patterns")
	w.group(t, "delete offsets", deleteOffsets("patterns", "logs-a", "t", "u"))
	w.beat(t, "both topics and pattern", joins("patterns", "c", "u").with(func(b *beatSpec) { b.regex = "t|u" }))
	w.settle(t, "patterns", 6)
	w.describeConsumers(t, "describe", "patterns")
}

// settle waits until a group has reached an epoch, on both sides.
func (w *groupWorld) settle(t *testing.T, group string, epoch int32) {
	t.Helper()
	for _, s := range w.sides {
		s.waitFor(t, fmt.Sprintf("group %s at epoch %d", group, epoch), func() bool {
			req := kmsg.NewPtrConsumerGroupDescribeRequest()
			req.Groups = []string{group}
			answer, ok := s.ask(t, req).(*kmsg.ConsumerGroupDescribeResponse)
			return ok && answer.Groups[0].Epoch >= epoch
		})
	}
}

// shares are the bytes of a classic assignment: partitions of t.
func shares(partitions ...byte) string {
	b := "\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00" + string([]byte{byte(len(partitions))})
	for _, p := range partitions {
		b += "\x00\x00\x00" + string([]byte{p})
	}
	return b + "\xff\xff\xff\xff"
}

// owning is the subscription of a member that has partitions of t.
func owning(partitions ...byte) string {
	b := "\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x01\x00\x01t\x00\x00\x00" +
		string([]byte{byte(len(partitions))})
	for _, p := range partitions {
		b += "\x00\x00\x00" + string([]byte{p})
	}
	return b
}

// testUpgrade has a member of the consumer protocol join a classic group, and the last one leave again.
func (w *groupWorld) testUpgrade(t *testing.T) {
	w.join(t, newJoin(3, "up", ""), "p")
	w.group(t, "sync", w.syncRequest(3, "up", "p", "", 1, "p", shares(0, 1, 2, 3)))
	w.beat(t, "consumer joins", joins("up", "b", "t"))
	w.group(t, "describe as classic", describeGroups(6, "up"))
	w.describeConsumers(t, "describe", "up")
	w.group(t, "heartbeat", w.heartbeatRequest(4, "up", "p", "", 1))
	w.group(t, "sync", w.syncRequest(5, "up", "p", "", 1))
	w.group(t, "commit", w.commitRequest(commitSpec{version: 8, group: "up", member: "p", generation: 1, topic: "t",
		partitions: []int32{0}}))
	j := newJoin(9, "up", "p")
	j.metadata = owning(0, 1, 2, 3)
	w.group(t, "join to give up", w.joinRequest(j))
	w.group(t, "heartbeat before it syncs", w.heartbeatRequest(4, "up", "p", "", 1))
	w.group(t, "sync", w.syncRequest(5, "up", "p", "", 1))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "up", "p", "", 1))
	j.metadata = owning(0, 1)
	w.group(t, "join having given up", w.joinRequest(j))
	w.group(t, "sync of an earlier generation", w.syncRequest(5, "up", "p", "", 1))
	w.group(t, "sync", w.syncRequest(5, "up", "p", "", 2))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "up", "p", "", 2))
	w.beat(t, "consumer gets its share", beats("up", "b", 2))
	w.describeConsumers(t, "describe", "up")
	w.group(t, "consumer leaves by a classic request", w.leaveRequest(5, "up", "b"))
	w.group(t, "describe a classic group again", describeGroups(6, "up"))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "up", "p", "", 3))
	w.group(t, "join", w.joinRequest(newJoin(9, "up", "p")))
	w.group(t, "sync", w.syncRequest(5, "up", "p", "", 4, "p", shares(0, 1, 2, 3)))
	w.group(t, "describe", describeGroups(6, "up"))
}

// testDowngrade has a consumer group be left by all but a member of the classic protocol.
func (w *groupWorld) testDowngrade(t *testing.T) {
	w.beat(t, "consumer joins", joins("down", "a", "t"))
	w.join(t, newJoin(9, "down", ""), "q")
	w.describeConsumers(t, "describe", "down")
	w.group(t, "sync", w.syncRequest(5, "down", "q", "", 3))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "down", "q", "", 3))
	w.beat(t, "consumer leaves", beats("down", "a", -1))
	w.group(t, "describe", describeGroups(6, "down"))
	w.beat(t, "consumer beats", beats("down", "a", 2))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "down", "q", "", 4))
	w.group(t, "join", w.joinRequest(newJoin(9, "down", "q")))
	w.group(t, "sync", w.syncRequest(5, "down", "q", "", 5, "q", shares(0, 1, 2, 3)))
	w.group(t, "leave", w.leaveRequest(5, "down", "q"))
	w.beat(t, "consumer joins the empty group", joins("down", "a", "t"))
	w.beat(t, "consumer leaves it", beats("down", "a", -1))
	w.describeConsumers(t, "describe", "down")
}

// testClassicRequests sends requests of the classic protocol to a group of the other.
func (w *groupWorld) testClassicRequests(t *testing.T) {
	w.beat(t, "consumer joins", joins("mixed", "a", "t"))
	for v := int16(0); v <= 4; v++ {
		w.group(t, "heartbeat", w.heartbeatRequest(v, "mixed", "a", "", 2))
		w.group(t, "heartbeat of a stranger", w.heartbeatRequest(v, "mixed", "x", "", 2))
	}
	for v := int16(0); v <= 5; v++ {
		w.group(t, "sync", w.syncRequest(v, "mixed", "a", "", 2))
		w.group(t, "leave of a stranger", w.leaveRequest(v, "mixed", "x"))
	}
	for v := int16(0); v <= 9; v++ {
		j := newJoin(v, "mixed", "a")
		j.kind = "connect"
		w.group(t, "another kind", w.joinRequest(j))
		j.kind, j.protocols = "consumer", nil
		w.group(t, "no protocols", w.joinRequest(j))
		j.protocols, j.metadata = []string{"range"}, "?"
		w.group(t, "no subscription", w.joinRequest(j))
	}
	j := newJoin(9, "mixed", "x")
	w.group(t, "join of a stranger", w.joinRequest(j))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "mixed", "x", "", 3))
	j.protocols, j.member = []string{"other"}, "y"
	w.group(t, "another protocol", w.joinRequest(j))
	j.protocols = []string{"other", "range"}
	w.group(t, "another protocol too", w.joinRequest(j))
	w.describeConsumers(t, "describe", "mixed")
	w.beat(t, "leaves as a consumer", beats("mixed", "y", -1))
	w.group(t, "leave", w.leaveRequest(5, "mixed", "a", "x", "y"))
	w.describeConsumers(t, "describe", "mixed")
}

// testMorePartitions gives a topic more partitions, and has one disappear.
func (w *groupWorld) testMorePartitions(t *testing.T) {
	w.create(t, "w", 1)
	w.beat(t, "joins", joins("more", "a", "w", "x"))
	w.same(t, "more partitions", func(*side) kmsg.Request {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.SetVersion(3)
		req.TimeoutMillis = 10_000
		req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "w", Count: 3}}
		return req
	})
	w.beatUntil(t, "gets them", beats("more", "a", 2), 3)
	w.create(t, "x", 1)
	w.beatUntil(t, "gets the new topic", beats("more", "a", 3), 4)
	w.describeConsumers(t, "describe", "more")
}

// beatUntil is beat, again and again until the answer has an epoch: the coordinators hear of a change of topics after
// those who asked for it.
func (w *groupWorld) beatUntil(t *testing.T, name string, b beatSpec, epoch int32) {
	t.Helper()
	ask := w.beatRequest(b)
	var trees [2]any
	for i, s := range w.sides {
		s.waitFor(t, fmt.Sprintf("%s: epoch %d", name, epoch), func() bool {
			answer, ok := s.ask(t, ask(s)).(*kmsg.ConsumerGroupHeartbeatResponse)
			trees[i] = ordered(s, w.names(s, s.tree(t, answer)))
			return ok && answer.MemberEpoch == epoch
		})
	}
	if d := difference(trees[0], trees[1]); d != "" {
		w.report.add(name, "ConsumerGroupHeartbeat", b.version, d)
	}
}
