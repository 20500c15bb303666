//go:build oracle

// Package differential sends the same requests to Kafka and to Tidemark and compares the answers field by field.
//
// What must differ (topic ids, producer ids, cluster ids, addresses, times) is replaced by what it stands for before
// the comparison. Where Kafka does not serve a version that Tidemark serves for old clients, Kafka has no answer to
// compare with: those versions are not asked here.
package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/pair"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// TestDifferential runs every comparison against one pair of servers, in this order.
func TestDifferential(t *testing.T) {
	w := newWorld(t)
	w.run(t, "ApiVersions", w.testApiVersions)
	w.run(t, "Metadata", w.testMetadata)
	w.run(t, "CreateTopics", w.testCreateTopics)
	w.run(t, "DescribeConfigs", w.testDescribeConfigs)
	w.run(t, "Metadata topics", w.testMetadataTopics)
	w.run(t, "DeleteTopics", w.testDeleteTopics)
	w.run(t, "CreatePartitions", w.testCreatePartitions)
	w.run(t, "DescribeCluster", w.testDescribeCluster)
	w.run(t, "DescribeTopicPartitions", w.testDescribeTopicPartitions)
	w.run(t, "IncrementalAlterConfigs", w.testIncrementalAlterConfigs)
	w.run(t, "AlterConfigs", w.testAlterConfigs)
	w.run(t, "live configs", w.testLiveConfigs)
	w.run(t, "ACLs", w.testACLs)
	w.run(t, "ElectLeaders", w.testElectLeaders)
	w.run(t, "reassignments", w.testReassignments)
	w.run(t, "log directories", w.testLogDirs)
	w.run(t, "client quotas", w.testClientQuotas)
	w.run(t, "quotas of addresses", w.testAddressRate)
	w.run(t, "SCRAM credentials", w.testScramCredentials)
	w.run(t, "loggers", w.testLoggers)
	w.run(t, "DescribeQuorum", w.testDescribeQuorum)
	w.run(t, "ListConfigResources", w.testListConfigResources)
	w.run(t, "InitProducerId", w.testInitProducerID)
	w.run(t, "Produce", w.testProduce)
	w.run(t, "Produce many", w.testProduceMany)
	w.run(t, "append limits", w.testAppendLimits)
	w.run(t, "idempotence", w.testIdempotence)
	w.run(t, "ListOffsets", w.testListOffsets)
	w.run(t, "look-ups", w.testLookups)
	w.run(t, "DeleteRecords", w.testDeleteRecords)
	w.run(t, "reports", w.testReports)
	w.run(t, "OffsetForLeaderEpoch", w.testOffsetForLeaderEpoch)
	w.run(t, "Fetch", w.testFetch)
	w.run(t, "fetch session", w.testFetchSession)
	w.run(t, "long poll", w.testLongPoll)
	w.run(t, "sessions", w.testSessions)
	w.run(t, "hostile bytes", w.testHostileBytes)
	w.run(t, "before the restart", w.testBeforeRestart)
	w.restart(t)
	w.run(t, "after the restart", w.testAfterRestart)
	for _, s := range w.sides {
		if exit := s.Process.Stop(t); exit != 0 && s.Name == "Tidemark" {
			t.Errorf("%s ended with status %d; its log:\n%s", s.Name, exit, proc.Tail(s.Process.Log(), 20))
		}
	}
}

func (w *world) run(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		defer w.report.flush(t)
		test(t)
	})
}

// side is one server and what it alone knows: ids that differ between the two.
type side struct {
	*pair.Server
	conn  *conn
	names map[string]string // an id of this server, as JSON shows it → what it stands for
	ids   map[string][16]byte
	// outcome is what came instead of the last answer, empty when one came.
	outcome string
}

// world is both sides, Kafka first.
type world struct {
	sides  [2]*side
	report report
}

// quiet are settings under which neither side deletes, compacts or writes down anything of itself: each would do it at
// a time of its own, half a minute after the start for the first time.
func quiet() map[string]string {
	return map[string]string{"auto.create.topics.enable": "false", "log.initial.task.delay.ms": "3600000",
		"log.cleaner.backoff.ms": "3600000"}
}

// newWorld starts both sides; settings are keys and values that both take besides the usual ones.
func newWorld(t *testing.T, settings ...string) *world {
	both := quiet()
	both["tidemark.api.versions"] = "kafka"
	for i := 0; i+1 < len(settings); i += 2 {
		both[settings[i]] = settings[i+1]
	}
	kafka, tidemark := pair.Start(t, both)
	return worldOf(t, kafka, tidemark)
}

func worldOf(t *testing.T, kafka, tidemark *pair.Server) *world {
	w := &world{}
	for i, s := range []*pair.Server{kafka, tidemark} {
		w.sides[i] = &side{Server: s, names: make(map[string]string), ids: make(map[string][16]byte)}
		w.sides[i].learnAddress(t)
	}
	return w
}

func (s *side) learnAddress(t *testing.T) {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s.names[port] = "PORT"
}

// dial returns the side's connection, a new one when the last was closed.
func (s *side) dial(t *testing.T) *conn {
	t.Helper()
	if s.conn == nil || s.conn.closed {
		s.conn = dial(t, s.Addr)
		t.Cleanup(s.conn.close)
	}
	return s.conn
}

// topicID returns the id of a topic that create made.
func (s *side) topicID(name string) [16]byte { return s.ids[name] }

// create makes a topic on both sides and learns its ids.
func (w *world) create(t *testing.T, topic string, partitions int32, configs ...string) {
	t.Helper()
	for _, s := range w.sides {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.TimeoutMillis = 30_000
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, partitions, 1
		for i := 0; i+1 < len(configs); i += 2 {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = configs[i], kmsg.StringPtr(configs[i+1])
			rt.Configs = append(rt.Configs, c)
		}
		req.Topics = append(req.Topics, rt)
		req.SetVersion(7)
		answer, ok := s.ask(t, req).(*kmsg.CreateTopicsResponse)
		if !ok || len(answer.Topics) != 1 || answer.Topics[0].ErrorCode != 0 {
			t.Fatalf("%s: create %s: %+v", s.Name, topic, answer)
		}
		s.learnID(topic, answer.Topics[0].TopicID)
		s.waitLed(t, topic, partitions)
	}
}

// waitLed waits until every partition is led: Kafka answers a creation before that.
func (s *side) waitLed(t *testing.T, topic string, partitions int32) {
	t.Helper()
	s.waitFor(t, "partitions of "+topic+" led", func() bool {
		for p := range partitions {
			req := listOffsets(7, -1, 0, topic, offsetQuery{p, -1, -1})(s)
			answer, ok := s.ask(t, req).(*kmsg.ListOffsetsResponse)
			if !ok || answer.Topics[0].Partitions[0].ErrorCode != 0 {
				return false
			}
		}
		return true
	})
}

// patience bounds what is waited for.
const patience = time.Minute

func (s *side) waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v: %s", s.Name, patience, what)
		}
	}
}

func (s *side) learnID(topic string, id [16]byte) {
	s.ids[topic] = id
	b, err := json.Marshal(id)
	if err != nil {
		panic(err) // an array of bytes always marshals
	}
	s.names[string(b)] = "ID of " + topic
}

// ask sends a request and decodes the answer; it is nil when none came, and s.outcome says why.
func (s *side) ask(t *testing.T, req kmsg.Request) kmsg.Response {
	t.Helper()
	body, outcome := s.dial(t).roundTrip(t, req)
	if s.outcome = outcome; outcome != "" {
		return nil
	}
	return s.decode(t, req, body)
}

// decode decodes the body of an answer; nil when it cannot be.
func (s *side) decode(t *testing.T, req kmsg.Request, body []byte) kmsg.Response {
	t.Helper()
	resp := req.ResponseKind()
	if err := resp.ReadFrom(body); err != nil {
		t.Errorf("%s: answer to key %d version %d does not decode: %v; %x", s.Name, req.Key(), req.GetVersion(), err, body)
		return nil
	}
	return resp
}

// request makes a request for one side: ids differ between them.
type request func(s *side) kmsg.Request

// change edits a decoded answer, a tree of maps, slices, json.Number, string, bool and nil, before it is compared.
type change func(s *side, tree any) any

// same sends what ask makes for each side and compares the answers. It returns Kafka's, nil when none came.
func (w *world) same(t *testing.T, name string, ask request, changes ...change) kmsg.Response {
	t.Helper()
	var answers [2]kmsg.Response
	var trees [2]any
	for i, s := range w.sides {
		answers[i] = s.ask(t, ask(s))
		trees[i] = s.tree(t, answers[i])
		for _, c := range changes {
			trees[i] = c(s, trees[i])
		}
	}
	if trees[0] == waitingOutcome && trees[1] != waitingOutcome {
		t.Logf("%s: Kafka never answers; Tidemark does, or closes the connection, so that the client learns of it", name)
		return nil
	}
	if d := difference(trees[0], trees[1]); d != "" {
		req := ask(w.sides[0])
		w.report.add(name, kmsg.NameForKey(req.Key()), req.GetVersion(), d)
	}
	return answers[0]
}

// sameSoon is same after a change: Kafka answers a change before its broker has taken it on.
func (w *world) sameSoon(t *testing.T, name string, ask request, changes ...change) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var trees [2]any
		for i, s := range w.sides {
			trees[i] = s.tree(t, s.ask(t, ask(s)))
			for _, c := range changes {
				trees[i] = c(s, trees[i])
			}
		}
		if difference(trees[0], trees[1]) == "" {
			return
		}
	}
	w.same(t, name, ask, changes...)
}

// tree turns an answer into maps and slices, with this side's own ids and its port named.
func (s *side) tree(t *testing.T, answer kmsg.Response) any {
	t.Helper()
	if answer == nil {
		return s.outcome
	}
	b, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber() // a float64 would round offsets and times
	if err := decoder.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return s.rename(tree)
}

func (s *side) rename(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = s.rename(value)
			if n, ok := v[key].(json.Number); ok && key == "Port" {
				v[key] = s.names[n.String()]
			}
		}
	case []any:
		b, err := json.Marshal(v)
		if name := s.names[string(b)]; err == nil && name != "" {
			return name
		}
		for i := range v {
			v[i] = s.rename(v[i])
		}
	}
	return tree
}

// hide replaces the fields named, wherever they are, when their value is not a default one (0, −1, null, empty):
// that there is a value is compared, not which.
func hide(fields ...string) change {
	set := make(map[string]bool)
	for _, f := range fields {
		set[f] = true
	}
	var walk func(tree any) any
	walk = func(tree any) any {
		switch v := tree.(type) {
		case map[string]any:
			for key := range v {
				if v[key] = walk(v[key]); set[key] && !isDefault(v[key]) {
					v[key] = "some"
				}
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		}
		return tree
	}
	return func(_ *side, tree any) any { return walk(tree) }
}

func isDefault(v any) bool {
	return v == nil || v == "" || v == json.Number("0") || v == json.Number("-1")
}

// answerTimeout is how long an answer may take.
const answerTimeout = 10 * time.Second

// conn is a connection that speaks frames.
type conn struct {
	c       net.Conn
	closed  bool
	next    int32
	format  *kmsg.RequestFormatter
	timeout time.Duration
}

func dial(t *testing.T, addr string) *conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return &conn{c: c, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("differential")), timeout: answerTimeout}
}

func (c *conn) close() {
	c.closed = true
	c.c.Close()
}

// roundTrip sends a request and returns the body of its answer, or the outcome that there was instead.
func (c *conn) roundTrip(t *testing.T, req kmsg.Request) (body []byte, outcome string) {
	t.Helper()
	c.next++
	if _, err := c.c.Write(c.format.AppendRequest(nil, req, c.next)); err != nil {
		c.closed = true
		return nil, closedOutcome
	}
	frame, outcome := c.readFrame()
	if outcome != "" {
		c.close()
		return nil, outcome
	}
	body, err := cutHeader(frame, req, c.next)
	if err != nil {
		t.Errorf("key %d version %d: %v", req.Key(), req.GetVersion(), err)
	}
	return body, ""
}

// cutHeader checks and removes the response header, version 0 or, for flexible answers but ApiVersions', 1.
func cutHeader(frame []byte, req kmsg.Request, correlation int32) ([]byte, error) {
	if len(frame) < 4 {
		return nil, fmt.Errorf("frame of %d bytes", len(frame))
	}
	if got := be32(frame); got != correlation {
		return nil, fmt.Errorf("correlation id %d, sent %d", got, correlation)
	}
	frame = frame[4:]
	if req.IsFlexible() && req.Key() != 18 {
		if len(frame) == 0 || frame[0] != 0 {
			return nil, fmt.Errorf("no empty tag section in the header: %x", frame)
		}
		frame = frame[1:]
	}
	return frame, nil
}
