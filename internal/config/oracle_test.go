//go:build oracle

package config

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The tests of this file ask a running Kafka. TIDEMARK_ORACLE is its HOST:PORT; -record NAME asks the one that was
// started with testdata/NAME/server.properties, and writes its answers there.
var recordInto = flag.String("record", "", "scenario whose answers are written to testdata")

func oracle(t *testing.T) *kgo.Client {
	t.Helper()
	address := os.Getenv("TIDEMARK_ORACLE")
	if address == "" {
		t.Fatal("TIDEMARK_ORACLE is not set")
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
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

func askDescribe(t *testing.T, cl *kgo.Client, kind ResourceType, name string) []Entry {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(kind), name
	req.Resources = append(req.Resources, r)
	resp := ask(t, cl, req).(*kmsg.DescribeConfigsResponse)
	if code := resp.Resources[0].ErrorCode; code != 0 {
		t.Fatalf("describe %v %q: error %d", kind, name, code)
	}
	var entries []Entry
	for _, c := range resp.Resources[0].Configs {
		entries = append(entries, entryOf(c))
	}
	return sorted(entries)
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

// TestOracleDescribe compares every entry of the broker and of a topic with those of a node that is given what Kafka
// names as the sources.
func TestOracleDescribe(t *testing.T) {
	cl := oracle(t)
	createTopic(t, cl, "config-described")
	want := askDescribe(t, cl, BrokerResource, oracleID(t, cl))
	levels := map[Source]map[string]string{
		SourceStaticBroker: {}, SourceDynamicDefaultBroker: {}, SourceDynamicBroker: {},
	}
	for _, e := range want {
		for _, s := range e.Synonyms {
			if level, ok := levels[s.Source]; ok && s.Value != nil {
				level[s.Name] = *s.Value
			} else if ok {
				level[s.Name] = "a secret"
			}
		}
	}
	n, err := NewNode(levels[SourceStaticBroker])
	if err != nil {
		t.Fatal(err)
	}
	n, refused := n.WithDynamic(levels[SourceDynamicDefaultBroker], levels[SourceDynamicBroker])
	if refused != nil {
		t.Fatal(refused)
	}
	compareLines(t, toLines(n.DescribeBroker()), toLines(want))
	got, err := n.DescribeTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, toLines(got), toLines(askDescribe(t, cl, TopicResource, "config-described")))
}

// oracleID returns the number of the one broker.
func oracleID(t *testing.T, cl *kgo.Client) string {
	t.Helper()
	resp := ask(t, cl, kmsg.NewPtrMetadataRequest()).(*kmsg.MetadataResponse)
	return strconv.Itoa(int(resp.Brokers[0].NodeID))
}

// TestOracleRecord brings a Kafka into the state of a scenario and writes down what it answers.
func TestOracleRecord(t *testing.T) {
	if *recordInto == "" {
		t.Skip("no -record")
	}
	s, n := loadScenario(t, *recordInto)
	cl := oracle(t)
	id := n.DescribeBroker()
	nodeID := *id[slices.IndexFunc(id, func(e Entry) bool { return e.Name == "node.id" })].Value
	for topic := range s.Topics {
		createTopic(t, cl, topic)
	}
	resources := map[string]Resource{"broker": {BrokerResource, nodeID}, "cluster": {BrokerResource, ""}}
	configs := map[string]map[string]string{"broker": s.Broker, "cluster": s.Default}
	add := func(prefix string, kind ResourceType, all map[string]map[string]string) {
		for name, c := range all {
			resources[prefix+name], configs[prefix+name] = Resource{kind, name}, c
		}
	}
	add("topic-", TopicResource, s.Topics)
	add("group-", GroupResource, s.Groups)
	add("subscription-", ClientMetricsResource, s.Subscriptions)
	for file, r := range resources {
		var changes []Change
		for key, v := range configs[file] {
			changes = append(changes, Change{key, Set, v})
		}
		if code, text := alter(t, cl, r, false, changes); code != 0 {
			t.Errorf("alter %v: %d %s", r, code, text)
		}
	}
	for file, r := range resources {
		lines := toLines(askDescribe(t, cl, r.Type, r.Name))
		data := []byte(strings.Join(lines, "\n") + "\n")
		if err := os.WriteFile(filepath.Join(s.dir, file+".jsonl"), data, 0o644); err != nil {
			t.Fatal(err)
		}
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

// TestOracleErrors asks for changes that are only checked, and compares what Kafka answers with what Validator says.
// It wants the node of the scenario "default" in its state; with -record it writes the answers down.
func TestOracleErrors(t *testing.T) {
	s, n := loadScenario(t, "default")
	cl := oracle(t)
	createTopic(t, cl, "plain")
	var file strings.Builder
	for _, c := range errorCases() {
		c.Code, c.Message = alter(t, cl, c.Resource, true, c.Changes)
		if code, message := judge(s, n, c); code != c.Code || message != c.Message {
			t.Errorf("%s:\n\there  %d %s\n\tKafka %d %s", c, code, message, c.Code, c.Message)
		}
		fmt.Fprintf(&file, "%d\t%q\t%s\n", c.Code, c.Message, c)
	}
	if *recordInto == "" {
		return
	}
	if err := os.WriteFile(filepath.Join("testdata", "refusals.tsv"), []byte(file.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
