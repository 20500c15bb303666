//go:build oracle

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/test/oracle"
	"tidemark/test/pair"
)

// fourWays runs command lines with both tools against both servers.
type fourWays struct {
	kafka   *oracle.Kafka
	servers [2]*pair.Server
	dir     string
}

// TestAdminToolsFourWays compares what Kafka's tools and the copies of them print of Kafka and of Tidemark.
func TestAdminToolsFourWays(t *testing.T) {
	kafka, tidemark := pair.Start(t, map[string]string{"tidemark.api.versions": "kafka"})
	f := &fourWays{oracle.Get(t, oracle.Version), [2]*pair.Server{kafka, tidemark}, t.TempDir()}
	short := "default.api.timeout.ms=2500\nrequest.timeout.ms=2000\n"
	mustWrite(t, filepath.Join(f.dir, "short.properties"), []byte(short))
	mustWrite(t, filepath.Join(f.dir, "topic.properties"), []byte("segment.ms=100000\nretention.bytes = 5000\n"))
	for _, line := range append(configsLines(t), script(t, "admin.tsv", "ADDRESS")...) {
		f.run(t, line)
	}
	f.loggers(t)
	f.controllers(t)
}

// controllers compares what both tools print of Kafka's controller, and of brokers that are taken for controllers.
func (f *fourWays) controllers(t *testing.T) {
	status := f.kafka.MustTool(t, "kafka-metadata-quorum", "--bootstrap-server", f.servers[0].Addr, "describe", "--status")
	controller := regexp.MustCompile(`CONTROLLER://([^"]+)"`).FindStringSubmatch(status)
	if controller == nil {
		t.Fatalf("no controller in %q", status)
	}
	for _, address := range []string{controller[1], f.servers[0].Addr, f.servers[1].Addr} {
		for _, line := range script(t, "controllers.tsv", "") {
			args, err := splitWords(strings.ReplaceAll(line[0], "CONTROLLER", address))
			if err != nil {
				t.Fatal(err)
			}
			theirs, ours := twice(t, f.kafka, "", args)
			if d := cmp.Diff(settled(theirs), settled(ours)); d != "" {
				t.Errorf("%s (-Kafka's tool +ours):\n%s", line[0], firstLines(d, 40))
			}
		}
	}
}

// settled takes out what differs from call to call: Kafka's client logs once, twice or not at all that it asks the
// wrong kind of endpoint.
func settled(out shown) shown {
	for i, line := range out.Out {
		out.Out[i] = moving.ReplaceAllString(line, "$1 N")
	}
	out.Err = slices.DeleteFunc(out.Err, func(line string) bool {
		return strings.HasSuffix(line, "Fatal error during metadata update "+
			"(org.apache.kafka.clients.admin.internals.AdminMetadataManager)") ||
			strings.HasPrefix(line, "org.apache.kafka.common.errors.MismatchedEndpointTypeException: ")
	})
	return out
}

// moving are numbers of the metadata log, which grows.
var moving = regexp.MustCompile(`^(HighWatermark:|1 +\t[^\t]*\t) *\d+( *\t0 *\t\d+ *\t\d+ *)?`)

// loggers compares what both tools print of Tidemark's loggers, which Kafka does not have.
func (f *fourWays) loggers(t *testing.T) {
	args := []string{"kafka-configs", "--bootstrap-server", f.servers[1].Addr, "--describe", "--broker-logger", "1"}
	theirs, ours := twice(t, f.kafka, "", args)
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("loggers (-Kafka's tool +ours):\n%s", d)
	}
	if want := "  root=WARN sensitive=false synonyms={}"; !slices.Contains(theirs.Out, want) {
		t.Errorf("no %q in %q", want, theirs.Out)
	}
}

// configsLines are the lines of lines.tsv for kafka-configs, with the topics that they need.
func configsLines(t *testing.T) (lines [][2]string) {
	for _, topic := range []string{"MINE-a --partitions 1", "MINE-b --partitions 3 --config retention.ms=-1 --config " +
		"cleanup.policy=compact,delete"} {
		lines = append(lines, [2]string{"kafka-topics --bootstrap-server ADDRESS --create --topic " + topic})
	}
	for _, line := range script(t, "lines.tsv", "ADDRESS") {
		// What a broker was started with is not the same.
		skip := strings.Contains(line[0], "--broker 1 --all")
		if strings.HasPrefix(strings.TrimPrefix(line[0], "once "), "kafka-configs") && !skip {
			lines = append(lines, line)
		}
	}
	return lines
}

// run compares one line. What a server answers right after a change of its own configs may be older: such a line is
// tried again for a while.
func (f *fourWays) run(t *testing.T, line [2]string) {
	t.Helper()
	args, err := splitWords(line[0])
	if err != nil {
		t.Fatal(err)
	}
	if args[0] == "once" {
		for _, s := range f.servers {
			f.kafka.MustTool(t, args[1], f.given(t, args[2:], s)...)
		}
		return
	}
	for tries := 0; ; tries++ {
		differences := f.once(t, args, line[1])
		if differences == "" {
			return
		}
		if tries == 50 || !onlyReads(args) {
			t.Errorf("%s:\n%s", line[0], differences)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (f *fourWays) once(t *testing.T, args []string, stdin string) string {
	t.Helper()
	var want shown
	for i, s := range f.servers {
		theirs, ours := twice(t, f.kafka, stdin, f.given(t, args, s))
		theirs, ours = nameless(theirs, s), nameless(ours, s)
		if strings.Contains(strings.Join(args, " "), "--entity-type") { // many, in the order of the server's hash table
			slices.Sort(theirs.Out)
			slices.Sort(ours.Out)
		}
		if i == 0 {
			want = theirs
		}
		for tool, got := range map[string]shown{"Kafka's tool": theirs, "our tool": ours} {
			if d := cmp.Diff(want, got); d != "" {
				return "(-Kafka's tool at Kafka +" + tool + " at " + s.Name + ")\n" + firstLines(d, 40)
			}
		}
	}
	return ""
}

// given puts in the address, the directory and the files of a command line.
func (f *fourWays) given(t *testing.T, args []string, s *pair.Server) (all []string) {
	t.Helper()
	for _, a := range args {
		if text, ok := strings.CutPrefix(a, "FILE:"); ok {
			a = filepath.Join(f.dir, "MINE.json")
			for _, prefix := range []string{"mine1", "mine2"} {
				mustWrite(t, filepath.Join(f.dir, prefix+".json"), []byte(strings.ReplaceAll(text, "MINE", prefix)))
			}
		}
		a = strings.ReplaceAll(a, "DIR", f.dir)
		all = append(all, strings.ReplaceAll(a, "ADDRESS", s.Addr))
	}
	return all
}

var adminClient = regexp.MustCompile(`adminclient-\d+`)

// nameless takes out what differs between the two servers by nature: the address, the data directory, settings of the
// harness, and the order of keys in hash tables of names that each tool has for itself.
func nameless(out shown, s *pair.Server) shown {
	for _, lines := range [][]string{out.Out, out.Err} {
		for i, line := range lines {
			line = adminClient.ReplaceAllString(strings.ReplaceAll(line, s.Addr, "ADDRESS"), "adminclient-N")
			lines[i] = strings.ReplaceAll(line, s.Dir, "DATA")
		}
	}
	return out
}
