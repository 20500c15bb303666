//go:build oracle

package differential

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// part is one partition of a fetch; a zero maxBytes means 1 MiB.
type part struct {
	topic       string
	partition   int32
	offset      int64
	maxBytes    int32
	lastFetched *int32
	id          [16]byte // instead of the topic's, from v13 on
}

// fetchOptions are the fields of a fetch beside its partitions; a zero maxBytes means 50 MiB.
type fetchOptions struct {
	wait, minBytes, maxBytes int32
	isolation                int8
	session, epoch           int32
	forgotten                []part
}

func fetchParts(version int16, o fetchOptions, parts ...part) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrFetchRequest()
		req.SetVersion(version)
		req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, o.wait, o.minBytes, o.maxBytes
		if o.maxBytes == 0 {
			req.MaxBytes = 50 << 20
		}
		req.IsolationLevel, req.SessionID, req.SessionEpoch = o.isolation, o.session, o.epoch
		for _, p := range parts {
			rt := kmsg.NewFetchRequestTopic()
			if rt.Topic, rt.TopicID = p.topic, p.id; p.id == [16]byte{} {
				rt.TopicID = s.topicID(p.topic)
			}
			rp := kmsg.NewFetchRequestTopicPartition()
			rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p.partition, p.offset, p.maxBytes
			if p.maxBytes == 0 {
				rp.PartitionMaxBytes = 1 << 20
			}
			rp.LastFetchedEpoch = or(p.lastFetched, -1)
			rt.Partitions = append(rt.Partitions, rp)
			req.Topics = append(req.Topics, rt)
		}
		for _, p := range o.forgotten {
			rt := kmsg.NewFetchRequestForgottenTopic()
			rt.Topic, rt.TopicID, rt.Partitions = p.topic, s.topicID(p.topic), []int32{p.partition}
			req.ForgottenTopics = append(req.ForgottenTopics, rt)
		}
		return req
	}
}

// longPoll is a fetch that may wait, and what happens meanwhile.
type longPoll struct {
	name      string
	o         fetchOptions
	parts     []part
	meanwhile []request
}

const (
	shortWait = 600    // ms; long enough to tell a wait from a quick answer on a busy machine
	longWait  = 20_000 // ms; nothing here waits that long
)

func (w *world) testLongPoll(t *testing.T) {
	w.create(t, "poll", 3, "retention.ms", "-1")
	w.create(t, "poll-deleted", 1)
	for p := range int32(2) {
		w.same(t, "first", produce(11, "poll", p, -1, batch{records: some(1)}.encode()))
	}
	valid := batch{records: some(1)}.encode()
	size := int32(len(valid))
	append1 := produce(11, "poll", 0, -1, valid)
	append2 := produce(11, "poll", 1, -1, valid)
	end := []part{{topic: "poll", offset: 1}}
	for _, c := range []longPoll{
		{name: "nothing new", o: fetchOptions{wait: shortWait, minBytes: 1}, parts: end},
		{name: "no minimum", o: fetchOptions{wait: shortWait}, parts: end},
		{name: "negative minimum", o: fetchOptions{wait: shortWait, minBytes: -5}, parts: end},
		{name: "no wait", o: fetchOptions{minBytes: 1}, parts: end},
		{name: "negative wait", o: fetchOptions{wait: -7, minBytes: 1}, parts: end},
		{name: "no partitions", o: fetchOptions{wait: shortWait, minBytes: 1}},
		{name: "enough there", o: fetchOptions{wait: shortWait, minBytes: size}, parts: []part{{topic: "poll"}}},
		{name: "less than wanted", o: fetchOptions{wait: shortWait, minBytes: size + 1}, parts: []part{{topic: "poll"}}},
		{name: "enough in two", o: fetchOptions{wait: shortWait, minBytes: 2 * size},
			parts: []part{{topic: "poll"}, {topic: "poll", partition: 1}}},
		{name: "minimum above the maximum", o: fetchOptions{wait: shortWait, minBytes: 9999, maxBytes: size},
			parts: []part{{topic: "poll"}}},
		{name: "minimum above the partition's maximum", o: fetchOptions{wait: shortWait, minBytes: size + 1},
			parts: []part{{topic: "poll", maxBytes: 1}}},
		{name: "unknown topic", o: fetchOptions{wait: shortWait, minBytes: 1}, parts: []part{{topic: "nope"}}},
		{name: "unknown topic and another", o: fetchOptions{wait: shortWait, minBytes: 1},
			parts: append([]part{{topic: "nope"}}, end...)},
		{name: "unknown partition and another", o: fetchOptions{wait: shortWait, minBytes: 1},
			parts: append(end, part{topic: "poll", partition: 9})},
		{name: "out of range and another", o: fetchOptions{wait: shortWait, minBytes: 1},
			parts: append([]part{{topic: "poll", partition: 1, offset: 99}}, end...)},
		{name: "diverging", o: fetchOptions{wait: shortWait, minBytes: 1},
			parts: []part{{topic: "poll", offset: 1, lastFetched: ptr(int32(0))}}},
		{name: "append wakes", o: fetchOptions{wait: longWait, minBytes: 1}, parts: end, meanwhile: []request{append1}},
		{name: "append elsewhere does not wake", o: fetchOptions{wait: shortWait, minBytes: 1},
			parts: []part{{topic: "poll", partition: 2}}, meanwhile: []request{append1}},
		{name: "two appends wake", o: fetchOptions{wait: longWait, minBytes: 2 * size},
			parts:     []part{{topic: "poll", offset: 3}, {topic: "poll", partition: 1, offset: 1}},
			meanwhile: []request{append1, append2}},
		{name: "too little does not wake", o: fetchOptions{wait: shortWait, minBytes: 2 * size},
			parts: []part{{topic: "poll", offset: 4}}, meanwhile: []request{append1}},
		{name: "a transaction's end wakes nobody else", o: fetchOptions{wait: shortWait, minBytes: 1, isolation: 1},
			parts: []part{{topic: "poll", partition: 2}}},
		{name: "deletion wakes", o: fetchOptions{wait: longWait, minBytes: 1}, parts: []part{{topic: "poll-deleted"}},
			meanwhile: []request{deleteTopic("poll-deleted")}},
	} {
		w.longPoll(t, c)
	}
}

// longPoll runs a case on both sides and compares the answers, and whether they waited for all of maxWait. On a busy
// machine an answer without a wait may take as long: where nothing happens meanwhile, a difference must show each time.
func (w *world) longPoll(t *testing.T, c longPoll) {
	t.Helper()
	d := w.longPollOnce(t, c)
	for tries := 1; d != "" && len(c.meanwhile) == 0 && tries < 10; tries++ {
		d = w.longPollOnce(t, c)
	}
	if d != "" {
		w.report.add(c.name, "long poll", 12, d)
	}
}

// longPollOnce runs a case on both sides at once and tells the difference.
func (w *world) longPollOnce(t *testing.T, c longPoll) string {
	t.Helper()
	var trees [2]any
	var all sync.WaitGroup
	c.o.epoch = -1 // no session
	ask := fetchParts(12, c.o, c.parts...)
	for i, s := range w.sides {
		all.Go(func() {
			conn := dial(t, s.Addr)
			defer conn.close()
			conn.timeout = time.Minute
			done := make(chan struct{})
			start := time.Now()
			go func() {
				defer close(done)
				time.Sleep(100 * time.Millisecond) // so that the fetch waits already
				for _, m := range c.meanwhile {
					s.ask(t, m(s))
				}
			}()
			tree := s.tree(t, s.askOn(t, conn, ask(s)))
			waited := time.Since(start) >= time.Duration(c.o.wait)*time.Millisecond
			<-done
			trees[i] = map[string]any{"Waited": c.o.wait > 0 && waited, "Answer": tree}
		})
	}
	all.Wait()
	return difference(trees[0], trees[1])
}

// askOn is ask on a connection of its own.
func (s *side) askOn(t *testing.T, c *conn, req kmsg.Request) kmsg.Response {
	t.Helper()
	body, outcome := c.roundTrip(t, req)
	if outcome != "" {
		t.Errorf("%s: %s", s.Name, outcome)
		return nil
	}
	return s.decode(t, req, body)
}

// testSessions opens sessions on both sides and goes on in them.
func (w *world) testSessions(t *testing.T) {
	w.create(t, "session-a", 3, "retention.ms", "-1")
	w.create(t, "session-b", 1, "retention.ms", "-1")
	for p := range int32(3) {
		w.same(t, "first", produce(11, "session-a", p, -1, batch{records: some(2)}.encode()))
	}
	for _, version := range []int16{7, 12, 13, 18} {
		w.sessions(t, version)
	}
	t.Run("topics come and go", w.sessionTopics)
	t.Run("pipelined", w.pipelinedSession)
}

func (w *world) sessions(t *testing.T, version int16) {
	a := func(partition int32, offset int64) part {
		return part{topic: "session-a", partition: partition, offset: offset}
	}
	small := a(0, 0)
	small.maxBytes = 10
	session := make(map[*side]int32)
	wrong := int16(12)
	if version < 13 {
		wrong = 13
	}
	for _, st := range []struct {
		name    string
		epoch   int32
		o       fetchOptions
		parts   []part
		version int16
	}{
		{name: "open", parts: []part{a(0, 0), a(1, 2), a(2, 0), {topic: "session-b"}}},
		{name: "all again", epoch: 1},
		{name: "one moves", epoch: 2, parts: []part{a(0, 2)}},
		{name: "all again", epoch: 3, o: fetchOptions{maxBytes: 1}},
		{name: "all but one forgotten", epoch: 4, o: fetchOptions{forgotten: []part{a(0, 0), a(1, 0), {topic: "session-b"}}}},
		{name: "what was never there forgotten", epoch: 5, o: fetchOptions{forgotten: []part{a(9, 0)}}},
		{name: "moved and forgotten at once", epoch: 6, parts: []part{a(0, 0)}, o: fetchOptions{forgotten: []part{a(0, 0)}}},
		{name: "an unknown partition", epoch: 7, parts: []part{a(7, 0)}},
		{name: "it stays unknown", epoch: 8},
		{name: "out of range", epoch: 9, parts: []part{a(2, 77)}, o: fetchOptions{forgotten: []part{a(7, 0)}}},
		{name: "it stays out of range", epoch: 10},
		{name: "in range again", epoch: 11, parts: []part{a(2, 2)}},
		{name: "nothing new", epoch: 12},
		{name: "epoch too small", epoch: 12},
		{name: "epoch too large", epoch: 99},
		{name: "ids and names mixed", epoch: 13, version: wrong},
		{name: "read committed", epoch: 13, o: fetchOptions{isolation: 1}, parts: []part{a(1, 0)}},
		{name: "another isolation", epoch: 14, o: fetchOptions{isolation: 9}},
		{name: "after that", epoch: 15},
		{name: "all forgotten", epoch: 16, o: fetchOptions{forgotten: []part{a(1, 0), a(2, 0)}}},
		{name: "after all were forgotten", epoch: 17},
		{name: "open again", parts: []part{a(0, 0)}},
		{name: "close, with partitions", epoch: -1, parts: []part{a(1, 0)}},
		{name: "after the close", epoch: 1},
		{name: "open, twice the same partition", parts: []part{a(0, 0), a(0, 1), a(1, 0)}},
		{name: "opened anew", epoch: 0, parts: []part{a(2, 0)}},
		{name: "epoch -7", epoch: -7},
		{name: "open with nothing", epoch: 0},
		{name: "nothing, later", epoch: 1},
	} {
		w.same(t, st.name, func(s *side) kmsg.Request {
			o := st.o
			o.session, o.epoch = session[s], st.epoch
			v := version
			if st.version != 0 {
				v = st.version
			}
			return fetchParts(v, o, st.parts...)(s)
		}, func(s *side, tree any) any {
			m, ok := tree.(map[string]any)
			if !ok {
				return tree
			}
			if id := number(m["SessionID"]); id != 0 {
				session[s], m["SessionID"] = id, "some"
			}
			return tree
		})
	}
}

// sessionTopics deletes and makes again a topic that a session reads.
func (w *world) sessionTopics(t *testing.T) {
	for _, version := range []int16{12, 13} {
		name := fmt.Sprintf("coming%d", version)
		w.create(t, name, 1)
		before := make(map[*side][16]byte)
		session := make(map[*side]int32)
		for _, s := range w.sides {
			before[s] = s.topicID(name)
		}
		look := func(when string, epoch int32, parts ...part) {
			w.same(t, when, func(s *side) kmsg.Request {
				for i := range parts {
					parts[i].id = before[s]
				}
				return fetchParts(version, fetchOptions{session: session[s], epoch: epoch}, parts...)(s)
			}, func(s *side, tree any) any {
				m, _ := tree.(map[string]any)
				session[s] = number(m["SessionID"])
				delete(m, "SessionID")
				return tree
			})
		}
		look("open", 0, part{topic: name})
		look("there", 1)
		w.same(t, "delete", deleteTopic(name), hideID)
		for _, s := range w.sides {
			s.waitFor(t, name+" gone", func() bool { return s.fetchCode(t, name) == 3 })
		}
		look("gone", 2)
		w.create(t, name, 1)
		look("there again", 3)
		look("a new session with the old id", 0, part{topic: name})
	}
}

// number is a number of a tree.
func number(v any) int32 {
	n, _ := v.(json.Number)
	i, _ := n.Int64() // 0 for what is no number
	return int32(i)
}

// fetchCode is the error code of a fetch of the first partition of a topic, by name.
func (s *side) fetchCode(t *testing.T, topic string) int16 {
	answer, ok := s.ask(t, fetchParts(12, fetchOptions{epoch: -1}, part{topic: topic})(s)).(*kmsg.FetchResponse)
	if !ok {
		t.Fatalf("%s does not answer", s.Name)
	}
	return answer.Topics[0].Partitions[0].ErrorCode
}

const invalidFetchSessionEpoch = 71

// pipelinedSession sends the fetches of a session without waiting for the answers, and from two connections.
func (w *world) pipelinedSession(t *testing.T) {
	w.create(t, "pipe", 1, "retention.ms", "-1")
	var outcomes [2][]string
	for i, s := range w.sides {
		c := dial(t, s.Addr)
		defer c.close()
		open := s.askOn(t, c, fetchParts(12, fetchOptions{}, part{topic: "pipe"})(s)).(*kmsg.FetchResponse)
		id := open.SessionID
		ask := func(epoch, wait int32) kmsg.Request {
			return fetchParts(12, fetchOptions{session: id, epoch: epoch, wait: wait, minBytes: 1})(s)
		}
		tell := func(answers []kmsg.Response) {
			for _, a := range answers {
				f := a.(*kmsg.FetchResponse)
				outcomes[i] = append(outcomes[i], fmt.Sprintf("error %d, same session %v, %d topics", f.ErrorCode,
					f.SessionID == id, len(f.Topics)))
			}
		}
		tell(s.pipeline(t, c, ask(1, shortWait), ask(2, shortWait), ask(9, 0), ask(3, 0)))
		overtaken := make(chan []kmsg.Response)
		go func() { overtaken <- s.pipeline(t, c, ask(4, 5*shortWait)) }()
		other := dial(t, s.Addr)
		defer other.close()
		next := s.pipeline(t, other, ask(5, 0))
		for tries := 0; tries < 10 && next[0].(*kmsg.FetchResponse).ErrorCode == invalidFetchSessionEpoch; tries++ {
			time.Sleep(100 * time.Millisecond) // the one before has not come in yet
			next = s.pipeline(t, other, ask(5, 0))
		}
		tell(next)
		tell(<-overtaken)
		tell(s.pipeline(t, c, ask(6, 0)))
	}
	if fmt.Sprint(outcomes[0]) != fmt.Sprint(outcomes[1]) {
		t.Errorf("pipelined fetches:\n    Kafka    %q\n    Tidemark %q", outcomes[0], outcomes[1])
	}
}

// pipeline sends all requests before it reads the answers.
func (s *side) pipeline(t *testing.T, c *conn, requests ...kmsg.Request) []kmsg.Response {
	t.Helper()
	var out []kmsg.Response
	first := c.next + 1
	for _, req := range requests {
		c.next++
		if _, err := c.c.Write(c.format.AppendRequest(nil, req, c.next)); err != nil {
			t.Fatal(err)
		}
	}
	for i, req := range requests {
		frame, outcome := c.readFrame()
		if outcome != "" {
			t.Fatalf("%s: answer %d: %s", s.Name, i, outcome)
		}
		body, err := cutHeader(frame, req, first+int32(i))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s.decode(t, req, body))
	}
	return out
}
