//go:build oracle

package config

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/oracle"
)

// The tests of this file ask a real Kafka that runs under the settings of a scenario. With -record they write its
// answers to testdata.
var recordAnswers = flag.Bool("record", false, "write Kafka's answers to testdata")

// startScenario starts Kafka with testdata/NAME/server.properties, on the ports and directories named there.
func startScenario(t *testing.T, name string) (scenario, *Node, *kgo.Client) {
	t.Helper()
	s, n := loadScenario(t, name)
	settings := map[string]string{ // what the harness sets and the scenario does not
		"group.initial.rebalance.delay.ms": "", "offsets.topic.num.partitions": "", "offsets.topic.replication.factor": "",
		"transaction.state.log.min.isr": "", "transaction.state.log.num.partitions": "",
		"transaction.state.log.replication.factor": "", "share.coordinator.state.topic.min.isr": "",
		"share.coordinator.state.topic.num.partitions": "", "share.coordinator.state.topic.replication.factor": "",
		"advertised.listeners": "",
	}
	for key, v := range n.static {
		if strings.HasPrefix(v, " ") {
			v = "\\" + v
		}
		settings[key] = v
	}
	delete(settings, "broker.id") // filled in by NewNode
	for _, dir := range n.Broker().LogDirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	kafka := oracle.Get(t, oracle.Version).Start(t, oracle.NodeOptions{
		Dir: n.Broker().LogDirs[0], Port: n.Broker().Listeners[0].Port, Properties: settings,
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return s, n, cl
}

// ask sends a request to the one broker as it is, without the client's own routing.
func ask(t *testing.T, cl *kgo.Client, req kmsg.Request) kmsg.Response {
	t.Helper()
	resp, err := cl.SeedBrokers()[0].Request(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// askUntil asks until the answer is what is wanted, for a while, and returns the last one: Kafka answers a change
// before its broker has taken it on.
func askUntil(t *testing.T, cl *kgo.Client, r Resource, want []string) (lines []string) {
	t.Helper()
	var code int16
	if *recordAnswers {
		time.Sleep(5 * time.Second) // nothing is known of what to wait for
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var entries []Entry
		entries, code = askDescribe(t, cl, r.Type, r.Name)
		if lines = toLines(entries); code == 0 && (slices.Equal(lines, want) || *recordAnswers) {
			return lines
		}
	}
	if code != 0 {
		t.Fatalf("describe %v: error %d", r, code)
	}
	return lines
}

func askDescribe(t *testing.T, cl *kgo.Client, kind ResourceType, name string) ([]Entry, int16) {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(kind), name
	req.Resources = append(req.Resources, r)
	resp := ask(t, cl, req).(*kmsg.DescribeConfigsResponse)
	var entries []Entry
	for _, c := range resp.Resources[0].Configs {
		entries = append(entries, entryOf(c))
	}
	return sorted(entries), resp.Resources[0].ErrorCode
}

func entryOf(c kmsg.DescribeConfigsResponseResourceConfig) Entry {
	e := Entry{
		Name: c.Name, Value: c.Value, Source: Source(c.Source), Sensitive: c.IsSensitive, ReadOnly: c.ReadOnly,
		Type: Type(c.ConfigType),
	}
	if c.Documentation != nil {
		e.Doc = *c.Documentation
	}
	for _, s := range c.ConfigSynonyms {
		e.Synonyms = append(e.Synonyms, Synonym{s.Name, s.Value, Source(s.Source)})
	}
	return e
}

// alter sends changes and returns the error code and text.
func alter(t *testing.T, cl *kgo.Client, r Resource, validateOnly bool, changes []Change) (int16, string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = validateOnly
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
	for _, c := range changes {
		cc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		cc.Name, cc.Op = c.Name, kmsg.IncrementalAlterConfigOp(c.Op)
		if c.Op != Delete {
			cc.Value = &c.Value
		}
		rr.Configs = append(rr.Configs, cc)
	}
	req.Resources = append(req.Resources, rr)
	resp := ask(t, cl, req).(*kmsg.IncrementalAlterConfigsResponse)
	answer := resp.Resources[0]
	if answer.ErrorMessage == nil {
		return answer.ErrorCode, ""
	}
	return answer.ErrorCode, *answer.ErrorMessage
}

func TestOracleDescribes(t *testing.T) {
	for _, name := range []string{"default", "rich"} {
		t.Run(name, func(t *testing.T) {
			s, n, cl := startScenario(t, name)
			for topic := range s.Topics {
				createTopic(t, cl, topic)
			}
			s.answers(t, n, func(file string, entries []Entry) {
				r, configs := s.resource(n, file)
				var changes []Change
				for key, v := range configs {
					changes = append(changes, Change{key, Set, v})
				}
				if code, text := alter(t, cl, r, false, changes); code != 0 {
					t.Errorf("alter %v: %d %s", r, code, text)
				}
			})
			s.answers(t, n, func(file string, entries []Entry) {
				r, _ := s.resource(n, file)
				want := askUntil(t, cl, r, toLines(entries))
				compareLines(t, toLines(entries), want)
				writeAnswers(t, filepath.Join(s.dir, file+".jsonl"), strings.Join(want, "\n")+"\n")
			})
		})
	}
}

// resource returns what a file of answers is about, and the configs it has of its own.
func (s scenario) resource(n *Node, file string) (Resource, map[string]string) {
	kind, name, _ := strings.Cut(file, "-")
	switch kind {
	case "broker":
		return Resource{BrokerResource, fmt.Sprint(n.Broker().NodeID)}, s.Broker
	case "cluster":
		return Resource{BrokerResource, ""}, s.Default
	case "topic":
		return Resource{TopicResource, name}, s.Topics[name]
	case "group":
		return Resource{GroupResource, name}, s.Groups[name]
	default:
		return Resource{ClientMetricsResource, name}, s.Subscriptions[name]
	}
}

func writeAnswers(t *testing.T, path, text string) {
	t.Helper()
	if !*recordAnswers {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func createTopic(t *testing.T, cl *kgo.Client, name string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	req.Topics = append(req.Topics, topic)
	req.TimeoutMillis = 10000
	resp := ask(t, cl, req).(*kmsg.CreateTopicsResponse)
	if code := resp.Topics[0].ErrorCode; code != 0 && code != 36 { // 36: it exists
		t.Fatalf("create topic %s: error %d", name, code)
	}
}

// TestOracleRefuses asks for changes that are only checked, and compares what Kafka answers with what is said here.
func TestOracleRefuses(t *testing.T) {
	s, n, cl := startScenario(t, "default")
	createTopic(t, cl, "plain")
	var file strings.Builder
	for _, c := range errorCases() {
		c.Code, c.Message = alter(t, cl, c.Resource, true, c.Changes)
		if code, message := judge(s, n, c); code != c.Code || message != c.Message {
			t.Errorf("%s:\n\there  %d %s\n\tKafka %d %s", c, code, message, c.Code, c.Message)
		}
		fmt.Fprintf(&file, "%d\t%q\t%s\n", c.Code, c.Message, c)
	}
	writeAnswers(t, filepath.Join("testdata", "refusals.tsv"), file.String())
}
