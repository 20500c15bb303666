//go:build oracle

package differential

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/proc"
)

// TestGroups compares classic groups and their offsets, request by request.
func TestGroups(t *testing.T) {
	w := newGroupWorld(t)
	w.create(t, "t", 3)
	w.create(t, "u", 1)
	w.loaded(t)
	w.run(t, "nobody", w.testNobody)
	w.run(t, "simple offsets", w.testSimpleOffsets)
	w.run(t, "refused joins", w.testRefusedJoins)
	w.run(t, "one member", w.testOneMember)
	w.run(t, "two members", w.testTwoMembers)
	w.run(t, "static members", w.testStaticMembers)
	w.run(t, "deletions", w.testDeletions)
	w.run(t, "lists", w.testLists)
	w.stop(t)
}

// groupWorld adds what groups need: member ids differ between the sides, and each has a name.
type groupWorld struct {
	*world
	ids map[*side]map[string]string // name → member id
}

// newGroupWorld starts both sides and waits until each has coordinators of groups.
func newGroupWorld(t *testing.T, settings ...string) *groupWorld {
	t.Helper()
	w := &groupWorld{world: newWorld(t, settings...), ids: map[*side]map[string]string{}}
	for _, s := range w.sides {
		w.ids[s] = map[string]string{}
		s.waitFor(t, "coordinator found", func() bool {
			answer, ok := s.ask(t, findCoordinator(4, 0, "g")(s)).(*kmsg.FindCoordinatorResponse)
			return ok && answer.Coordinators[0].ErrorCode == 0
		})
	}
	return w
}

// stop stops both sides; Tidemark must end in good order.
func (w *groupWorld) stop(t *testing.T) {
	t.Helper()
	for _, s := range w.sides {
		if exit := s.Process.Stop(t); exit != 0 && s.Name == "Tidemark" {
			t.Errorf("%s ended with status %d; its log:\n%s", s.Name, exit, proc.Tail(s.Process.Log(), 20))
		}
	}
}

// loaded waits until every coordinator of the groups that are used has loaded its partition.
func (w *groupWorld) loaded(t *testing.T) {
	t.Helper()
	for _, s := range w.sides {
		for _, group := range []string{"g", "none", "", "simple", "one", "two", "static", "j0", "other", "refused",
			"ranges", "different", "patterns", "up", "down", "mixed", "more"} {
			s.waitFor(t, "group "+group+" loaded", func() bool {
				answer, ok := s.ask(t, fetchCommitted(7, group, "t")(s)).(*kmsg.OffsetFetchResponse)
				return ok && answer.ErrorCode == 0
			})
		}
	}
}

// names replaces member ids by their names, and random parts of those without.
func (w *groupWorld) names(s *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = w.names(s, value)
		}
	case []any:
		for i := range v {
			v[i] = w.names(s, v[i])
		}
	case string:
		for name, id := range w.ids[s] {
			if v == id {
				return "MEMBER " + name
			}
		}
		if i := len(v) - 36; i > 0 && strings.Count(v[i:], "-") == 4 {
			return v[:i] + "UUID"
		}
		if id, err := base64.RawURLEncoding.DecodeString(v); err == nil && len(id) == 16 {
			return "SHORT UUID"
		}
	}
	return tree
}

func (w *groupWorld) group(t *testing.T, name string, ask request) kmsg.Response {
	t.Helper()
	return w.same(t, name, ask, w.names, ordered)
}

// ordered sorts what Kafka tells in the order of its hash tables.
func ordered(s *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			ordered(s, value)
			if list, ok := value.([]any); ok {
				sortBy(list, map[string]string{"Groups": "Group", "Members": "MemberID", "Topics": "Topic",
					"Partitions": "Partition"}[key])
			}
		}
	case []any:
		for _, one := range v {
			ordered(s, one)
		}
	}
	return tree
}

// member is the id of a member on a side; a name that stands for none is an id itself.
func (w *groupWorld) member(s *side, name string) string {
	if id, ok := w.ids[s][name]; ok {
		return id
	}
	return name
}

// pending is a request on a connection of its own, which is answered later.
type pending struct {
	side   *side
	answer chan kmsg.Response
}

func (w *groupWorld) begin(t *testing.T, ask request) [2]pending {
	t.Helper()
	var both [2]pending
	for i, s := range w.sides {
		own := &side{Server: s.Server, names: s.names, ids: s.ids}
		p := pending{own, make(chan kmsg.Response, 1)}
		c := own.dial(t)
		c.timeout = 30 * time.Second
		req := ask(s)
		go func() { p.answer <- own.ask(t, req) }()
		both[i] = p
	}
	return both
}

// end waits for the answers to what was begun and compares them.
func (w *groupWorld) end(t *testing.T, name string, ask request, both [2]pending) [2]kmsg.Response {
	t.Helper()
	var answers [2]kmsg.Response
	var trees [2]any
	for i, p := range both {
		answers[i] = <-p.answer
		s := w.sides[i]
		s.outcome = p.side.outcome
		trees[i] = ordered(s, w.names(s, s.tree(t, answers[i])))
	}
	if d := difference(trees[0], trees[1]); d != "" {
		req := ask(w.sides[0])
		w.report.add(name, kmsg.NameForKey(req.Key()), req.GetVersion(), d)
	}
	return answers
}

// joinSpec is a JoinGroup request.
type joinSpec struct {
	version   int16
	group     string
	member    string // name
	instance  string
	session   int32
	kind      string
	protocols []string
	metadata  string
}

func newJoin(version int16, group, member string) joinSpec {
	return joinSpec{version: version, group: group, member: member, session: 20_000, kind: "consumer",
		protocols: []string{"range"}, metadata: "\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"}
}

func (w *groupWorld) joinRequest(j joinSpec) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrJoinGroupRequest()
		req.SetVersion(j.version)
		req.Group, req.MemberID, req.ProtocolType = j.group, w.member(s, j.member), j.kind
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = j.session, 20_000
		if j.instance != "" {
			req.InstanceID = &j.instance
		}
		for _, name := range j.protocols {
			req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: []byte(j.metadata)})
		}
		return req
	}
}

// learn gives the member ids of a join's answers a name.
func (w *groupWorld) learn(answers [2]kmsg.Response, name string) {
	for i, s := range w.sides {
		if joined, ok := answers[i].(*kmsg.JoinGroupResponse); ok {
			w.ids[s][name] = joined.MemberID
		}
	}
}

// join joins, with the id that is given out when the version asks for it, and waits for the rebalance.
func (w *groupWorld) join(t *testing.T, j joinSpec, name string) {
	t.Helper()
	ask := w.joinRequest(j)
	if j.version >= 4 && j.member == "" && j.instance == "" {
		w.learn(w.end(t, "join for an id", ask, w.begin(t, ask)), name)
		j.member = name
		ask = w.joinRequest(j)
	}
	w.learn(w.end(t, "join", ask, w.begin(t, ask)), name)
}

func (w *groupWorld) syncRequest(version int16, group, member, instance string, generation int32,
	assign ...string) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrSyncGroupRequest()
		req.SetVersion(version)
		req.Group, req.MemberID, req.Generation = group, w.member(s, member), generation
		req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
		if instance != "" {
			req.InstanceID = &instance
		}
		for i := 0; i+1 < len(assign); i += 2 {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
				MemberID: w.member(s, assign[i]), MemberAssignment: []byte(assign[i+1])})
		}
		return req
	}
}

func (w *groupWorld) heartbeatRequest(version int16, group, member, instance string, generation int32) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrHeartbeatRequest()
		req.SetVersion(version)
		req.Group, req.MemberID, req.Generation = group, w.member(s, member), generation
		if instance != "" {
			req.InstanceID = &instance
		}
		return req
	}
}

func (w *groupWorld) leaveRequest(version int16, group string, members ...string) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.SetVersion(version)
		req.Group = group
		if version < 3 {
			req.MemberID = w.member(s, members[0])
			return req
		}
		for _, m := range members {
			one := kmsg.NewLeaveGroupRequestMember()
			if instance, ok := strings.CutPrefix(m, "instance "); ok {
				one.InstanceID = &instance
			} else {
				one.MemberID = w.member(s, m)
			}
			req.Members = append(req.Members, one)
		}
		return req
	}
}

// commitSpec is an OffsetCommit request.
type commitSpec struct {
	version    int16
	group      string
	member     string
	instance   string
	generation int32
	topic      string
	partitions []int32
	metadata   *string
	retention  int64
}

func (w *groupWorld) commitRequest(c commitSpec) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.SetVersion(c.version)
		req.Group, req.MemberID, req.Generation = c.group, w.member(s, c.member), c.generation
		if c.retention != 0 {
			req.RetentionTimeMillis = c.retention
		}
		if c.instance != "" {
			req.InstanceID = &c.instance
		}
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = c.topic, s.topicID(c.topic)
		for _, p := range c.partitions {
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p, int64(10*p+7), 0, c.metadata
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
		return req
	}
}

// fetchCommitted asks for partitions 0 and 1 of topics; without topics for all.
func fetchCommitted(version int16, group string, topics ...string) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.SetVersion(version)
		if version < 8 {
			req.Group = group
			for _, topic := range topics {
				req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: []int32{0, 1}})
			}
			return req
		}
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group = group
		for _, topic := range topics {
			rt := kmsg.NewOffsetFetchRequestGroupTopic()
			rt.Topic, rt.TopicID, rt.Partitions = topic, s.topicID(topic), []int32{0, 1}
			rg.Topics = append(rg.Topics, rt)
		}
		req.Groups = append(req.Groups, rg)
		return req
	}
}

func describeGroups(version int16, groups ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.SetVersion(version)
		req.Groups = groups
		req.IncludeAuthorizedOperations = true
		return req
	}
}

func deleteGroups(version int16, groups ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.SetVersion(version)
		req.Groups = groups
		return req
	}
}

func deleteOffsets(group string, topics ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, topic := range topics {
			rt := kmsg.NewOffsetDeleteRequestTopic()
			rt.Topic = topic
			for _, p := range []int32{0, 1, 9} {
				rt.Partitions = append(rt.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
			}
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
}

// testNobody asks for a group that does not exist.
func (w *groupWorld) testNobody(t *testing.T) {
	for v := int16(0); v <= 4; v++ {
		w.group(t, "heartbeat", w.heartbeatRequest(v, "none", "m", "", 1))
		w.group(t, "heartbeat without group", w.heartbeatRequest(v, "", "m", "", 1))
	}
	for v := int16(0); v <= 5; v++ {
		w.group(t, "sync", w.syncRequest(v, "none", "m", "", 1))
		w.group(t, "sync without group", w.syncRequest(v, "", "m", "", 1))
		w.group(t, "leave", w.leaveRequest(v, "none", "m"))
		w.group(t, "leave without group", w.leaveRequest(v, "", "m"))
	}
	w.group(t, "nobody leaves", w.leaveRequest(3, "none"))
	w.group(t, "sync without protocol", func(s *side) kmsg.Request {
		req := w.syncRequest(5, "none", "m", "", 1)(s).(*kmsg.SyncGroupRequest)
		req.Protocol = nil
		return req
	})
	for v := int16(0); v <= 6; v++ {
		w.group(t, "describe", describeGroups(v, "none"))
		w.group(t, "describe without group", describeGroups(v, ""))
		w.group(t, "describe nothing", describeGroups(v))
	}
	for v := int16(1); v <= 10; v++ {
		w.group(t, "fetch", fetchCommitted(v, "none", "t"))
		w.group(t, "fetch without group", fetchCommitted(v, "", "t"))
		w.group(t, "fetch of an unknown topic", fetchCommitted(v, "none", "nowhere"))
		if v > 1 {
			w.group(t, "fetch all", fetchCommitted(v, "none"))
		}
	}
	for v := int16(0); v <= 2; v++ {
		w.group(t, "delete", deleteGroups(v, "none", "", "none"))
		w.group(t, "delete nothing", deleteGroups(v))
	}
	w.group(t, "delete offsets", deleteOffsets("none", "t"))
	w.group(t, "delete offsets without group", deleteOffsets("", "t"))
	for v := int16(2); v <= 10; v++ {
		w.group(t, "commit of a member", w.commitRequest(commitSpec{version: v, group: "none", member: "m", generation: 5,
			topic: "t", partitions: []int32{0}}))
	}
}

// testSimpleOffsets commits without membership.
func (w *groupWorld) testSimpleOffsets(t *testing.T) {
	note, long, longest := "note", strings.Repeat("x", 4097), strings.Repeat("é", 4096)
	for v := int16(2); v <= 10; v++ {
		commit := commitSpec{version: v, group: "simple", generation: -1, topic: "t", partitions: []int32{0, 1},
			metadata: &note}
		change := func(f func(c *commitSpec)) request {
			c := commit
			f(&c)
			return w.commitRequest(c)
		}
		w.group(t, "commit", w.commitRequest(commit))
		w.group(t, "without group", change(func(c *commitSpec) { c.group = "" }))
		w.group(t, "null metadata", change(func(c *commitSpec) { c.metadata, c.partitions = nil, []int32{2} }))
		w.group(t, "long metadata", change(func(c *commitSpec) { c.metadata = &long }))
		w.group(t, "longest metadata", change(func(c *commitSpec) { c.metadata, c.partitions = &longest, []int32{2} }))
		w.group(t, "unknown partitions", change(func(c *commitSpec) { c.partitions = []int32{-1, 0, 3} }))
		w.group(t, "unknown topic", change(func(c *commitSpec) { c.topic = "nowhere" }))
		w.group(t, "nothing", change(func(c *commitSpec) { c.partitions = nil }))
		w.group(t, "a member", change(func(c *commitSpec) { c.member = "m" }))
		w.group(t, "a generation", change(func(c *commitSpec) { c.generation = 0 }))
		if v >= 7 {
			w.group(t, "an instance", change(func(c *commitSpec) { c.instance = "i" }))
		}
		if v < 5 {
			w.group(t, "retention", change(func(c *commitSpec) { c.retention = 86_400_000 }))
		}
	}
	for v := int16(1); v <= 10; v++ {
		w.group(t, "fetch", fetchCommitted(v, "simple", "t", "u"))
		if v > 1 {
			w.group(t, "fetch all", fetchCommitted(v, "simple"))
		}
	}
	w.group(t, "describe", describeGroups(6, "simple"))
}

func (w *groupWorld) testRefusedJoins(t *testing.T) {
	for v := int16(0); v <= 9; v++ {
		refused := newJoin(v, "j0", "")
		change := func(f func(j *joinSpec)) request {
			j := refused
			f(&j)
			return w.joinRequest(j)
		}
		w.group(t, "short session", change(func(j *joinSpec) { j.session = 5999 }))
		w.group(t, "long session", change(func(j *joinSpec) { j.session = 1_800_001 }))
		w.group(t, "no group", change(func(j *joinSpec) { j.group = "" }))
		w.group(t, "unknown member", change(func(j *joinSpec) { j.member = "m" }))
		w.group(t, "unknown member of no group", change(func(j *joinSpec) { j.member, j.group = "m", "none" }))
		w.group(t, "no protocols", change(func(j *joinSpec) { j.protocols = nil }))
		w.group(t, "no protocol type", change(func(j *joinSpec) { j.kind = "" }))
		if v >= 5 {
			w.group(t, "unknown static member", change(func(j *joinSpec) { j.member, j.instance = "m", "i" }))
		}
		if v >= 4 {
			w.group(t, "id required", w.joinRequest(refused))
		}
	}
	w.group(t, "describe", describeGroups(6, "j0"))
}

// testOneMember follows a member through its life, with every version.
func (w *groupWorld) testOneMember(t *testing.T) {
	w.join(t, newJoin(9, "one", ""), "a")
	for v := int16(0); v <= 5; v++ {
		w.group(t, "sync of another generation", w.syncRequest(v, "one", "a", "", 2))
		w.group(t, "sync of a stranger", w.syncRequest(v, "one", "b", "", 1))
	}
	w.group(t, "describe while it syncs", describeGroups(6, "one"))
	w.group(t, "heartbeat while it syncs", w.heartbeatRequest(4, "one", "a", "", 1))
	w.group(t, "commit while it syncs", w.commitRequest(commitSpec{version: 8, group: "one", member: "a", generation: 1,
		topic: "t", partitions: []int32{0}}))
	w.group(t, "join again while it syncs", w.joinRequest(newJoin(9, "one", "a")))
	w.group(t, "sync", w.syncRequest(5, "one", "a", "", 1, "a", "A", "z", "Z"))
	for v := int16(0); v <= 5; v++ {
		w.group(t, "sync again", w.syncRequest(v, "one", "a", "", 1))
	}
	for v := int16(0); v <= 4; v++ {
		w.group(t, "heartbeat", w.heartbeatRequest(v, "one", "a", "", 1))
		w.group(t, "heartbeat of another generation", w.heartbeatRequest(v, "one", "a", "", 0))
		w.group(t, "heartbeat of a stranger", w.heartbeatRequest(v, "one", "b", "", 1))
	}
	for v := int16(0); v <= 6; v++ {
		w.group(t, "describe", describeGroups(v, "one", "none"))
	}
	for v := int16(2); v <= 10; v++ {
		commit := commitSpec{version: v, group: "one", member: "a", generation: 1, topic: "t", partitions: []int32{0, 1}}
		w.group(t, "commit", w.commitRequest(commit))
		commit.generation = 0
		w.group(t, "commit of another generation", w.commitRequest(commit))
		commit.member, commit.generation = "b", 1
		w.group(t, "commit of a stranger", w.commitRequest(commit))
		commit.member, commit.generation = "", -1
		w.group(t, "commit of nobody", w.commitRequest(commit))
	}
	w.group(t, "delete", deleteGroups(2, "one"))
	w.group(t, "delete offsets", deleteOffsets("one", "t", "u", "nowhere"))
	for v := int16(4); v <= 9; v++ {
		j := newJoin(v, "one", "")
		j.protocols = []string{"other"}
		w.group(t, "another protocol", w.joinRequest(j))
		j.protocols, j.kind = []string{"range"}, "connect"
		w.group(t, "another protocol type", w.joinRequest(j))
	}
	w.group(t, "leader joins again", w.joinRequest(newJoin(9, "one", "a")))
	w.group(t, "sync of the next generation", w.syncRequest(5, "one", "a", "", 2, "a", "AA"))
	w.group(t, "leave", w.leaveRequest(5, "one", "b", "a", "a", "instance i"))
	w.group(t, "describe an empty group", describeGroups(6, "one"))
	w.group(t, "heartbeat of who left", w.heartbeatRequest(4, "one", "a", "", 2))
	w.group(t, "join of who left", w.joinRequest(newJoin(9, "one", "a")))
	w.group(t, "sync of who left", w.syncRequest(5, "one", "a", "", 2))
	w.group(t, "commit of who left", w.commitRequest(commitSpec{version: 8, group: "one", member: "a", generation: 2,
		topic: "t", partitions: []int32{0}}))
}

// testTwoMembers has a second member come and go.
func (w *groupWorld) testTwoMembers(t *testing.T) {
	w.join(t, newJoin(3, "two", ""), "c")
	w.group(t, "sync", w.syncRequest(3, "two", "c", "", 1, "c", "C"))
	second := w.joinRequest(newJoin(2, "two", ""))
	joining := w.begin(t, second)
	for _, s := range w.sides {
		s.waitFor(t, "rebalance", func() bool {
			answer, ok := s.ask(t, w.heartbeatRequest(0, "two", "c", "", 1)(s)).(*kmsg.HeartbeatResponse)
			return ok && answer.ErrorCode == 27
		})
	}
	w.group(t, "describe during the rebalance", describeGroups(6, "two"))
	w.group(t, "commit during the rebalance", w.commitRequest(commitSpec{version: 8, group: "two", member: "c",
		generation: 1, topic: "t", partitions: []int32{0}}))
	w.group(t, "sync during the rebalance", w.syncRequest(3, "two", "c", "", 1))
	first := w.joinRequest(newJoin(4, "two", "c"))
	w.end(t, "join of the first", first, w.begin(t, first))
	w.learn(w.end(t, "join of the second", second, joining), "d")
	w.group(t, "heartbeat", w.heartbeatRequest(0, "two", "d", "", 2))
	waits := w.syncRequest(1, "two", "d", "", 2)
	syncing := w.begin(t, waits)
	time.Sleep(200 * time.Millisecond)
	w.group(t, "sync of the leader", w.syncRequest(3, "two", "c", "", 2, "c", "C", "d", "D"))
	w.end(t, "sync of the second", waits, syncing)
	w.group(t, "describe", describeGroups(6, "two"))
	w.group(t, "follower joins again", w.joinRequest(newJoin(5, "two", "d")))
	w.group(t, "leader leaves", w.leaveRequest(1, "two", "c"))
	w.group(t, "heartbeat of the second", w.heartbeatRequest(0, "two", "d", "", 2))
	w.group(t, "join of the second alone", w.joinRequest(newJoin(5, "two", "d")))
	w.group(t, "its sync is not sent: it leaves", w.leaveRequest(0, "two", "d"))
	w.group(t, "describe an empty group", describeGroups(6, "two"))
}

// testStaticMembers has static members come back.
func (w *groupWorld) testStaticMembers(t *testing.T) {
	static := newJoin(9, "static", "")
	static.instance = "i1"
	w.join(t, static, "s1")
	w.group(t, "sync", w.syncRequest(5, "static", "s1", "i1", 1, "s1", "S"))
	w.group(t, "heartbeat", w.heartbeatRequest(4, "static", "s1", "i1", 1))
	w.group(t, "heartbeat as another instance", w.heartbeatRequest(4, "static", "s1", "i2", 1))
	w.group(t, "heartbeat without instance", w.heartbeatRequest(4, "static", "s1", "", 1))
	w.group(t, "heartbeat of another", w.heartbeatRequest(4, "static", "x", "i1", 1))
	for v := int16(5); v <= 9; v++ {
		static.version = v
		w.join(t, static, fmt.Sprintf("s%d", v))
		w.group(t, "heartbeat of the old id", w.heartbeatRequest(4, "static", "s1", "i1", 1))
		w.group(t, "heartbeat of the new id", w.heartbeatRequest(4, "static", fmt.Sprintf("s%d", v), "i1", 1))
	}
	w.group(t, "sync", w.syncRequest(5, "static", "s9", "i1", 1))
	w.group(t, "sync of the old id", w.syncRequest(5, "static", "s1", "i1", 1))
	w.group(t, "commit of the old id", w.commitRequest(commitSpec{version: 8, group: "static", member: "s1",
		instance: "i1", generation: 1, topic: "t", partitions: []int32{0}}))
	w.group(t, "leave with the old id", func(s *side) kmsg.Request {
		req := w.leaveRequest(5, "static", "s1")(s).(*kmsg.LeaveGroupRequest)
		req.Members[0].InstanceID = kmsg.StringPtr("i1")
		return req
	})
	w.group(t, "describe", describeGroups(6, "static"))
	w.group(t, "leave by instance", w.leaveRequest(5, "static", "instance i1", "instance i2"))
	w.group(t, "describe an empty group", describeGroups(6, "static"))
}

func (w *groupWorld) testDeletions(t *testing.T) {
	w.group(t, "offsets", deleteOffsets("simple", "t", "u", "nowhere"))
	w.group(t, "offsets twice", deleteOffsets("simple", "t"))
	w.group(t, "fetch all", fetchCommitted(8, "simple"))
	for v := int16(0); v <= 2; v++ {
		w.group(t, "groups", deleteGroups(v, "simple", "one", "none"))
	}
	w.group(t, "fetch all of a deleted group", fetchCommitted(8, "simple"))
	w.group(t, "describe", describeGroups(6, "simple"))
}

func (w *groupWorld) testLists(t *testing.T) {
	for v := int16(0); v <= 5; v++ {
		for _, filter := range [][2][]string{{}, {{"Empty"}}, {{"empty", "x"}}, {{"Stable"}}, {nil, {"classic"}},
			{nil, {"Consumer"}}, {nil, {"no such"}}} {
			if len(filter[0]) > 0 && v < 4 || len(filter[1]) > 0 && v < 5 {
				continue
			}
			w.same(t, "list", func(*side) kmsg.Request {
				req := kmsg.NewPtrListGroupsRequest()
				req.SetVersion(v)
				req.StatesFilter, req.TypesFilter = filter[0], filter[1]
				return req
			}, ordered)
		}
	}
}

func sortBy(list []any, field string) {
	key := func(v any) string {
		m, _ := v.(map[string]any)
		return fmt.Sprint(m[field], m["TopicID"])
	}
	for i := range list {
		for j := i; j > 0 && key(list[j]) < key(list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}
