//go:build oracle

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/golden"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// These tests run Kafka's tools and the copies of them against one Kafka and compare what
// they print, and their exit status.

// shown is the output of a tool with what differs from run to run taken out: stack
// frames, usage text, times of log lines, and the name that a tool gives a group.
type shown struct {
	Out, Err []string
	Exit     int
}

var (
	frame      = regexp.MustCompile(`^\s+at |^\s+\.\.\. \d+ more`)
	randomName = regexp.MustCompile(`console-consumer-\d+`)
	topicID    = regexp.MustCompile(`TopicId: \S{22}`)
)

func normal(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if usageStart.MatchString(line) {
			return append(lines, "(usage)")
		}
		if frame.MatchString(line) {
			continue
		}
		line = logTime.ReplaceAllString(line, "[TIME]")
		line = randomName.ReplaceAllString(line, "console-consumer-N")
		lines = append(lines, topicID.ReplaceAllString(line, "TopicId: ID"))
	}
	return lines
}

// twice runs a command line with both tools. MINE stands for a prefix of names that each
// has for itself.
func twice(t *testing.T, kafka *oracle.Kafka, stdin string, args []string) (theirs, ours shown) {
	t.Helper()
	own := func(prefix string) []string {
		var all []string
		for _, a := range args {
			all = append(all, strings.ReplaceAll(a, "MINE", prefix))
		}
		return all
	}
	shape := func(r proc.Result, prefix string) shown {
		undo := func(s string) []string {
			if strings.Contains(strings.Join(args, " "), "MINE") {
				s = strings.ReplaceAll(s, prefix, "MINE")
			}
			return normal(s)
		}
		return shown{undo(r.Stdout), undo(r.Stderr), r.Exit}
	}
	const theirPrefix, ourPrefix = "mine1", "mine2"
	args1, args2 := own(theirPrefix), own(ourPrefix)
	theirs = shape(kafka.ToolInput(t, stdin, args1[0], args1[1:]...), theirPrefix)
	out, errs, status := call(t, stdin, args2...)
	return theirs, shape(proc.Result{Stdout: out, Stderr: errs, Exit: status}, ourPrefix)
}

var stdinSigns = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", "LONG", strings.Repeat("x", 1500))

// script is the list of command lines of a file in testdata/oracle: standard input, then the
// command line; ADDR stands for the broker.
func script(t *testing.T, name, addr string) (lines [][2]string) {
	data, err := os.ReadFile(filepath.Join("testdata", "oracle", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		command, stdin, _ := strings.Cut(line, "\t")
		stdin = stdinSigns.Replace(stdin)
		command = strings.ReplaceAll(command, "ADDR", "--bootstrap-server "+addr)
		lines = append(lines, [2]string{command, stdin})
	}
	return lines
}

func TestToolsAgainstKafka(t *testing.T) {
	kafka := oracle.Get(t, oracle.Version)
	node := kafka.Start(t, oracle.NodeOptions{})
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "short.properties"), []byte("default.api.timeout.ms=2500\nrequest.timeout.ms=2000\n"))
	mustWrite(t, filepath.Join(dir, "topic.properties"), []byte("segment.ms=100000\nretention.bytes = 5000\n"))
	runScript(t, kafka, script(t, "lines.tsv", node.Addr), dir)
}

// runScript runs command lines with both tools. DIR stands for a directory.
func runScript(t *testing.T, kafka *oracle.Kafka, lines [][2]string, dir string) {
	t.Helper()
	for _, line := range lines {
		args, err := splitWords(strings.ReplaceAll(line[0], "DIR", dir))
		if err != nil {
			t.Fatal(err)
		}
		if args[0] == "once" {
			if r := kafka.ToolInput(t, line[1], args[1], args[2:]...); r.Exit != 0 {
				t.Fatalf("%s: %+v", line[0], r)
			}
			continue
		}
		difference := ""
		for tries := range maxTries {
			theirs, ours := twice(t, kafka, line[1], args)
			if difference = cmp.Diff(theirs, ours); difference == "" || !onlyReads(args) {
				break
			}
			args = patient(args, tries)
			time.Sleep(200 * time.Millisecond)
		}
		if difference != "" {
			t.Errorf("%s (-Kafka +Tidemark):\n%s", line[0], firstLines(difference, 40))
		}
	}
}

// maxTries is how often a line that only reads is tried. What a server answers right after a change may be older.
const maxTries = 10

// onlyReads tells whether a command line changes nothing, so that it may be run again.
func onlyReads(args []string) bool {
	return slices.Contains([]string{"kafka-get-offsets", "kafka-console-consumer"}, args[0]) &&
		!slices.Contains(args, "--group") || slices.Contains(args, "--describe") || slices.Contains(args, "--list")
}

// patient gives a consumer more time for its first records when it is tried again for the first time: on a busy machine
// the time of the line may be too short.
func patient(args []string, tries int) []string {
	args = slices.Clone(args)
	for i := 1; i < len(args) && tries == 0; i++ {
		if ms, err := strconv.Atoi(args[i]); err == nil && args[i-1] == "--timeout-ms" {
			args[i] = strconv.Itoa(8 * ms)
		}
	}
	return args
}

// TestGoldenTools repeats the golden calls of tools against a Kafka with the same topics.
func TestGoldenTools(t *testing.T) {
	const topic = "01-seed-demo"
	c := golden.Load(t, topic)
	node := oracle.Get(t, oracle.Version).Start(t, oracle.NodeOptions{
		Properties: map[string]string{"log.segment.delete.delay.ms": "300"},
	})
	brokers := []string{"--bootstrap-server", node.Addr}
	for _, args := range [][]string{
		{"--topic", "01-empty"}, {"--topic", topic, "--config", "index.interval.bytes=200", "--config", "retention.ms=-1"},
	} {
		create := append([]string{"kafka-topics", "--create", "--partitions", "1"}, brokers...)
		if out, errs, status := call(t, "", append(create, args...)...); status != 0 {
			t.Fatalf("create %q: %s%s", args, out, errs)
		}
	}
	produceDemo(t, node.Addr, topic, c)
	names := map[string]string{
		"GetOffsetShell": "kafka-get-offsets", "ConsoleConsumer": "kafka-console-consumer", "TopicCommand": "kafka-topics",
	}
	for _, want := range c.ToolCalls(t) {
		args := append([]string{names[want.Args[0]]}, brokers...)
		args = append(args, goldenArgs(want.Args[1:])...)
		out, errs, status := call(t, "", args...)
		got := shown{normal(blanksTrimmed(out)), normal(errs), status}
		expected := shown{normal(lined(want.Stdout)), normal(lined(want.Stderr)), want.Exit}
		if d := cmp.Diff(expected, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", want.Args, d)
		}
	}
}

// blanksTrimmed leaves out what the golden file, too, has lost at the end of lines.
func blanksTrimmed(text string) string {
	return strings.ReplaceAll(text, " \n", "\n")
}

func lined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// goldenArgs gives each of the formatter's settings its own option: the golden file
// names the option once.
func goldenArgs(args []string) (all []string) {
	for i, a := range args {
		if strings.Contains(a, "=") && i > 0 && strings.Contains(args[i-1], "=") {
			all = append(all, "--formatter-property")
		}
		all = append(all, a)
	}
	return all
}

// produceDemo writes the records of the golden case, one a batch.
func produceDemo(t *testing.T, addr, topic string, c golden.Case) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 300 {
		r := &kgo.Record{
			Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i),
			Timestamp: time.UnixMilli(c.Info.BaseTimestamp + int64(i)*1000),
		}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
