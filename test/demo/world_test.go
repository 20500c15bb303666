//go:build oracle

// Package demo proves the published demo of the time index on four combinations: Kafka's own command lines and
// Tidemark's, against Kafka and against Tidemark. All four must print the same and end with the same exit status.
package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/test/oracle"
	"tidemark/test/pair"
	"tidemark/test/proc"
)

// tools is one of the two sets of command lines.
type tools struct {
	name string
	run  func(t *testing.T, stdin, name string, args ...string) proc.Result
}

// world is both servers and both sets of tools, Kafka's first.
type world struct {
	kafka   *oracle.Kafka
	servers [2]*pair.Server
	tools   [2]tools
}

func newWorld(t *testing.T) *world {
	w := &world{kafka: oracle.Get(t, oracle.Version)}
	w.servers[0], w.servers[1] = pair.Start(t, nil)
	w.tools[0] = tools{"Kafka's tools", func(t *testing.T, stdin, name string, args ...string) proc.Result {
		t.Helper()
		return w.kafka.ToolInput(t, stdin, name, args...)
	}}
	if pair.Twin() {
		w.tools[1] = w.tools[0]
		return w
	}
	binary := proc.Tidemark(t)
	w.tools[1] = tools{"Tidemark's tools", func(t *testing.T, stdin, name string, args ...string) proc.Result {
		t.Helper()
		return proc.Run(t, stdin, binary, append([]string{name}, args...)...)
	}}
	return w
}

// stop stops both servers cleanly.
func (w *world) stop(t *testing.T) {
	t.Helper()
	for _, s := range w.servers {
		if exit := s.Process.Stop(t); exit != 0 && s.Name == "Tidemark" {
			t.Errorf("%s ended with status %d; its log:\n%s", s.Name, exit, proc.Tail(s.Process.Log(), 20))
		}
	}
}

var (
	topicID = regexp.MustCompile(`(TopicId: )[A-Za-z0-9_-]{22}`)
	logTime = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d [^]]*\]`)
	dropped = regexp.MustCompile(`^\[TIME\] (INFO|WARN) |^\tat |^\t\.\.\. \d+ more`)
)

// normalise replaces what must differ: directories, addresses, topic ids, the time of a logged error; and drops the
// Java client's own warnings and the frames of Java stack traces.
func normalise(s *pair.Server, text string) []string {
	text = strings.NewReplacer(s.Dir, "DIR", s.Addr, "ADDR").Replace(text)
	text = topicID.ReplaceAllString(text, "${1}ID")
	text = logTime.ReplaceAllString(text, "[TIME]")
	return slices.DeleteFunc(strings.Split(text, "\n"), dropped.MatchString)
}

// output is what a command printed and how it ended, without what must differ.
type output struct {
	Stdout, Stderr []string
	Exit           int
}

// same runs a command line on all four combinations, fails the test where one differs from Kafka's tool against Kafka,
// and returns that one. In the arguments, ADDR and DIR stand for the server's address and directory.
func (w *world) same(t *testing.T, name string, args ...string) proc.Result {
	t.Helper()
	return w.sameBut(t, func(lines []string) []string { return lines }, name, args...)
}

// sameBut is same with a further change of the lines before they are compared.
func (w *world) sameBut(t *testing.T, change func([]string) []string, name string, args ...string) proc.Result {
	t.Helper()
	var first proc.Result
	var want output
	for i, s := range w.servers {
		for j, set := range w.tools {
			var own []string
			for _, a := range args {
				own = append(own, strings.NewReplacer("ADDR", s.Addr, "DIR", s.Dir).Replace(a))
			}
			r := set.run(t, "", name, own...)
			got := output{change(normalise(s, r.Stdout)), change(normalise(s, r.Stderr)), r.Exit}
			if i == 0 && j == 0 {
				first, want = r, got
				continue
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %q: %s against %s differ from Kafka's tools against Kafka (-want +got):\n%s",
					name, args, set.name, s.Name, d)
			}
		}
	}
	return first
}

// bootstrap prefixes the arguments of a tool that talks to a server.
func bootstrap(args ...string) []string {
	return append([]string{"--bootstrap-server", "ADDR"}, args...)
}

// create makes a topic of one partition on both servers with Kafka's tool.
func (w *world) create(t *testing.T, topic string, configs ...string) {
	t.Helper()
	args := []string{"--create", "--topic", topic, "--partitions", "1", "--replication-factor", "1"}
	for _, c := range configs {
		args = append(args, "--config", c)
	}
	for _, s := range w.servers {
		all := append([]string{"--bootstrap-server", s.Addr}, args...)
		if out := w.kafka.MustTool(t, "kafka-topics", all...); !strings.Contains(out, "Created topic "+topic+".") {
			t.Fatalf("%s: create %s printed %q", s.Name, topic, out)
		}
	}
}

// file returns the path of a file of a topic's partition 0, with DIR for the server's directory.
func file(topic, name string) string { return "DIR/" + topic + "-0/" + name }

// sealsFile is where Tidemark notes which segments are proven; Kafka passes over it.
const sealsFile = "tidemark.seals"

// sizes returns the size of every file of a topic's partition 0 but the snapshots, by name.
func sizes(t *testing.T, s *pair.Server, topic string) map[string]int64 {
	t.Helper()
	dir := filepath.Join(s.Dir, topic+"-0")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int64)
	for _, e := range entries {
		if e.Name() == sealsFile {
			continue // Tidemark's own, beside Kafka's files
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = info.Size()
	}
	return out
}

// sameFiles compares the files of a topic on both servers byte for byte; partition.metadata holds the topic's id.
func (w *world) sameFiles(t *testing.T, topic string, but ...string) {
	t.Helper()
	want, got := sizes(t, w.servers[0], topic), sizes(t, w.servers[1], topic)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: files and sizes differ (-Kafka +Tidemark):\n%s", topic, d)
		return
	}
	for name := range want {
		if name == "partition.metadata" || slices.Contains(but, filepath.Ext(name)) {
			continue
		}
		var data [2]string
		for i, s := range w.servers {
			b, err := os.ReadFile(filepath.Join(s.Dir, topic+"-0", name))
			if err != nil {
				t.Fatal(err)
			}
			data[i] = string(b)
		}
		if data[0] != data[1] {
			t.Errorf("%s: %s differs from byte %d on", topic, name, firstDifference(data[0], data[1]))
		}
	}
}

func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
