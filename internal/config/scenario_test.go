package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scenario is a broker's configuration and what Kafka 4.3.1 answered under it: testdata/NAME holds server.properties,
// dynamic.json and the entries of every DescribeConfigs v4 answer, a line each, sorted by name, without documentation.
type scenario struct {
	dir           string
	Default       map[string]string            // of the cluster
	Broker        map[string]string            // of the broker
	Topics        map[string]map[string]string // by name, as Groups and Subscriptions
	Groups        map[string]map[string]string
	Subscriptions map[string]map[string]string
}

func loadScenario(t *testing.T, name string) (scenario, *Node) {
	t.Helper()
	s := scenario{dir: filepath.Join("testdata", name)}
	if err := json.Unmarshal(readFile(t, s.dir, "dynamic.json"), &s); err != nil {
		t.Fatal(err)
	}
	props, err := ParseProperties(readFile(t, s.dir, "server.properties"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNode(props)
	if err != nil {
		t.Fatal(err)
	}
	if s.Default == nil {
		s.Default = make(map[string]string)
	}
	s.Default["min.insync.replicas"] = "1" // a new cluster has it, for the eligible leader replicas
	n, refused := n.WithDynamic(s.Default, s.Broker)
	if refused != nil {
		t.Fatal(refused)
	}
	return s, n
}

func readFile(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// line is an [Entry] in a file.
type line struct {
	Name      string    `json:"name"`
	Value     *string   `json:"value"`
	Source    Source    `json:"source"`
	ReadOnly  bool      `json:"readOnly,omitempty"`
	Sensitive bool      `json:"sensitive,omitempty"`
	Type      Type      `json:"type"`
	Doc       bool      `json:"doc"` // whether there is any
	Synonyms  []Synonym `json:"synonyms,omitempty"`
}

func toLines(entries []Entry) []string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		data, err := json.Marshal(line{
			e.Name, e.Value, e.Source, e.ReadOnly, e.Sensitive, e.Type, e.Doc != "", e.Synonyms,
		})
		if err != nil {
			panic(err) // strings and numbers only
		}
		lines[i] = string(data)
	}
	return lines
}

// answers calls f for every answer of a scenario: the name of its file, and Tidemark's entries.
func (s scenario) answers(t *testing.T, n *Node, f func(file string, entries []Entry)) {
	t.Helper()
	must := func(entries []Entry, err error) []Entry {
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	f("broker", n.DescribeBroker())
	f("cluster", n.DescribeClusterDefault())
	for name, overrides := range s.Topics {
		f("topic-"+name, must(n.DescribeTopic(overrides)))
	}
	for name, overrides := range s.Groups {
		f("group-"+name, must(n.DescribeGroup(overrides)))
	}
	for name, overrides := range s.Subscriptions {
		f("subscription-"+name, must(DescribeClientMetrics(overrides)))
	}
}

func TestDescribeEqualsKafka(t *testing.T) {
	for _, name := range []string{"default", "rich"} {
		s, n := loadScenario(t, name)
		s.answers(t, n, func(file string, entries []Entry) {
			t.Run(name+"/"+file, func(t *testing.T) {
				compareLines(t, toLines(entries), fileLines(t, s.dir, file+".jsonl"))
			})
		})
	}
}

func fileLines(t *testing.T, path ...string) []string {
	t.Helper()
	var lines []string
	sc := bufio.NewScanner(bytes.NewReader(readFile(t, path...)))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	return lines
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing expected")
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			t.Errorf("only here:  %s", l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			t.Errorf("only Kafka: %s", l)
		}
	}
	if !t.Failed() && strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Error("another order")
	}
}
