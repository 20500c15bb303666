package group

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tidemark/internal/wire"
)

// The transcripts in testdata tell what members ask, what they are answered and what is written. A request that
// waits is answered under the name of the one who asked.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.out.Reset()
			command, ok := commands[d.Cmd]
			if !ok {
				d.Fatalf(t, "unknown command")
			}
			command(w, &args{t, d})
			return w.out.String()
		})
	})
}

type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a *args) text(name, otherwise string) string {
	if v := a.optional(name); v != nil {
		return *v
	}
	return otherwise
}

func (a *args) optional(name string) *string {
	for _, arg := range a.d.CmdArgs {
		if arg.Key == name {
			v := strings.Join(arg.Vals, ",")
			return &v
		}
	}
	return nil
}

func (a *args) int(name string, otherwise int64) int64 {
	v := a.optional(name)
	if v == nil {
		return otherwise
	}
	n, err := strconv.ParseInt(*v, 10, 64)
	if err != nil {
		a.d.Fatalf(a.t, "%s: %v", name, err)
	}
	return n
}

// who is the first word: the client that asks.
func (a *args) who() string { return a.d.CmdArgs[0].Key }

func (a *args) list(name string) []string {
	v := a.text(name, "")
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// pairs splits "a:x,b:y".
func (a *args) pairs(name string) [][2]string {
	var out [][2]string
	for _, one := range a.list(name) {
		k, v, _ := strings.Cut(one, ":")
		out = append(out, [2]string{k, v})
	}
	return out
}

// topics reads "t-0:5,t-1:6": partitions with offsets.
func (a *args) topics() []CommitTopic {
	var out []CommitTopic
	for _, pair := range a.pairs("offsets") {
		name, partition := splitPartition(pair[0])
		offset, _ := strconv.ParseInt(pair[1], 10, 64)
		p := CommitPartition{Partition: partition, Offset: offset, LeaderEpoch: int32(a.int("epoch", -1)),
			Metadata: a.optional("metadata"), CommitMs: -1}
		if len(out) == 0 || out[len(out)-1].Topic != name {
			id := wire.UUID{}
			id[15] = byte(a.int("id", 0))
			out = append(out, CommitTopic{Topic: name, TopicID: id})
		}
		last := &out[len(out)-1]
		last.Partitions = append(last.Partitions, p)
	}
	return out
}

func (a *args) partitions() []TopicPartitions {
	var out []TopicPartitions
	for _, one := range a.list("of") {
		name, partition := splitPartition(one)
		id := wire.UUID{}
		id[15] = byte(a.int("id", 0))
		out = append(out, TopicPartitions{Topic: name, TopicID: id, Partitions: []int32{partition}})
	}
	return out
}

func splitPartition(s string) (string, int32) {
	i := strings.LastIndexByte(s, '-')
	n, _ := strconv.Atoi(s[i+1:])
	return s[:i], int32(n)
}

// subscribed is what a consumer tells: version 0, topics, no user data. "?" stands for bytes that are none.
func subscribed(topics string) []byte {
	if topics == "?" {
		return []byte("?")
	}
	names := strings.Split(topics, "+")
	b := wire.AppendArrayLen(wire.AppendInt16(nil, 0), len(names))
	for _, n := range names {
		b = wire.AppendString(b, n)
	}
	return wire.AppendBytes(b, nil)
}

// subscription is what a consumer tells: version 1 when it says what it has.
func (a *args) subscription() []byte {
	b := subscribed(a.text("topics", "t"))
	if has := a.optional("has"); has != nil {
		b[1] = 1
		all := readShare(*has)
		b = wire.AppendArrayLen(b, len(all))
		for _, t := range all {
			b = wire.AppendArrayLen(wire.AppendString(b, t.topic), len(t.partitions))
			for _, p := range t.partitions {
				b = wire.AppendInt32(b, p)
			}
		}
	}
	return b
}

var commands = map[string]func(w *world, a *args){
	"join":      joinCommand,
	"sync":      syncCommand,
	"heartbeat": heartbeatCommand,
	"leave":     leaveCommand,
	"commit":    commitCommand,
	"txn": func(w *world, a *args) {
		producer := a.int("producer", 1)
		each, write, err := w.m.CommitTransactional(a.commit(), producer)
		w.each(each, errors.Join(err, w.writeFor(write, producer)))
	},
	"marker": func(w *world, a *args) { w.marker(a.int("producer", 1), a.d.HasArg("commit")) },
	"fetch": func(w *world, a *args) {
		r := &FetchRequest{Group: a.text("group", "g"), MemberID: a.optional("member"),
			MemberEpoch: int32(a.int("epoch", -1)), Topics: a.partitions(), Stable: a.d.HasArg("stable")}
		r.All = r.Topics == nil
		topics, err := w.m.Fetch(r)
		w.each(nil, err)
		w.fetched(topics)
	},
	"delete": func(w *world, a *args) {
		each, write := w.m.Delete([]string{a.text("group", "g")})
		w.each(each, w.write(write))
	},
	"delete-offsets": func(w *world, a *args) {
		each, write, err := w.m.DeleteOffsets(a.text("group", "g"), a.partitions())
		w.each(each, errors.Join(err, w.write(write)))
	},
	"topic-deleted": func(w *world, a *args) {
		id := wire.UUID{}
		id[15] = byte(a.int("id", 0))
		for i, write := range w.m.TopicsDeleted([]DeletedTopic{{a.who(), id}}, int(a.int("batch", 16384))) {
			w.printf("batch %d", i)
			_ = w.write(write)
		}
	},
	"expire": func(w *world, a *args) {
		for i, write := range w.m.Expire(int(a.int("batch", 16384))) {
			w.printf("batch %d", i)
			_ = w.write(write)
		}
	},
	"describe": func(w *world, a *args) { w.describe(a.text("group", "g")) },
	"list":     func(w *world, a *args) { w.list(Filter{States: a.list("states"), Kinds: a.list("kinds")}) },
	"now":      func(w *world, a *args) { w.advance(a.int("plus", 0)) },
	"restart":  func(w *world, a *args) { w.restart() },
	"hold":     func(w *world, a *args) { w.hold = true },
	"release":  func(w *world, a *args) { w.release(nil) },
	"fail":     func(w *world, a *args) { w.release(errLost) },
	"lose":     func(w *world, a *args) { w.lose = true },
	"set": func(w *world, a *args) {
		w.config.MaxSize = int32(a.int("size", int64(w.config.MaxSize)))
		w.config.InitialRebalanceDelayMs = int32(a.int("delay", int64(w.config.InitialRebalanceDelayMs)))
		w.config.MetadataMaxBytes = int32(a.int("metadata", int64(w.config.MetadataMaxBytes)))
		w.config.RetentionMs = a.int("retention", w.config.RetentionMs)
		w.config.ConsumerMaxSize = int32(a.int("consumers", int64(w.config.ConsumerMaxSize)))
		w.config.ConsumerMigration = a.text("migration", w.config.ConsumerMigration)
		w.consumers.AssignmentIntervalMs = int32(a.int("interval", int64(w.consumers.AssignmentIntervalMs)))
	},
}

// join WHO [member=ID] [instance=ID] [session=MS] [rebalance=MS] [topics=A+B] [has=t-0+t-1] [protocols=(P,Q)] [v=N]
func joinCommand(w *world, a *args) {
	version := a.int("v", 9)
	r := &JoinRequest{Group: a.text("group", "g"), MemberID: a.text("member", ""), InstanceID: a.optional("instance"),
		ClientID: a.text("client", a.who()), ClientHost: "/10.0.0.1", SessionTimeoutMs: int32(a.int("session", 10000)),
		RebalanceTimeoutMs: int32(a.int("rebalance", 60000)), ProtocolType: a.text("type", "consumer"),
		NeedsMemberID: version >= 4, CanSkipAssignment: version >= 9}
	names := a.list("protocols")
	if names == nil && !a.d.HasArg("protocols") {
		names = []string{"range"}
	}
	for _, name := range names {
		r.Protocols = append(r.Protocols, Protocol{Name: name, Metadata: a.subscription()})
	}
	if err := r.Check(w.config); err != nil {
		w.printf("%s: %v", a.who(), err)
		return
	}
	_ = w.write(w.m.Join(r, w.joined(a.who())))
}

// readShare reads "t-0+t-1": partitions.
func readShare(s string) (all []topicPartitionsByName) {
	for _, one := range strings.Split(s, "+") {
		topic, partition := splitPartition(one)
		if n := len(all); n > 0 && all[n-1].topic == topic {
			all[n-1].partitions = append(all[n-1].partitions, partition)
		} else {
			all = append(all, topicPartitionsByName{topic, []int32{partition}})
		}
	}
	return all
}

// sync WHO generation=N [member=ID] [assign=(ID:BYTES,…)] [give=(ID:t-0+t-1,…)]
func syncCommand(w *world, a *args) {
	r := &SyncRequest{Group: a.text("group", "g"), MemberID: a.text("member", a.who()),
		InstanceID: a.optional("instance"), Generation: int32(a.int("generation", 1)), ProtocolType: a.optional("type"),
		Protocol: a.optional("protocol")}
	for _, pair := range a.pairs("assign") {
		r.Assignments = append(r.Assignments, Assignment{MemberID: pair[0], Bytes: []byte(pair[1])})
	}
	for _, pair := range a.pairs("give") {
		given := writeAssignment(readShare(pair[1]), nil)
		r.Assignments = append(r.Assignments, Assignment{MemberID: pair[0], Bytes: given})
	}
	_ = w.write(w.m.Sync(r, w.synced(a.who())))
}

func heartbeatCommand(w *world, a *args) {
	err := w.m.Heartbeat(a.text("group", "g"), a.text("member", a.who()), a.optional("instance"),
		int32(a.int("generation", 1)))
	w.each([]error{err}, nil)
}

func leaveCommand(w *world, a *args) {
	l := Leaving{MemberID: a.text("member", a.who()), InstanceID: a.optional("instance")}
	each, write, err := w.m.Leave(a.text("group", "g"), []Leaving{l})
	w.each(each, errors.Join(err, w.write(write)))
}

func (a *args) commit() *CommitRequest {
	return &CommitRequest{Group: a.text("group", "g"), MemberID: a.text("member", ""),
		InstanceID: a.optional("instance"), Generation: int32(a.int("generation", -1)), Version: int16(a.int("v", 9)),
		RetentionMs: a.int("retention", -1), Topics: a.topics()}
}

func commitCommand(w *world, a *args) {
	each, write, err := w.m.Commit(a.commit())
	w.each(each, errors.Join(err, w.write(write)))
}
