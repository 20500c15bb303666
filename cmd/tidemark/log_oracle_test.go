//go:build oracle

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidemark/test/golden"
	"tidemark/test/ledger"
	"tidemark/test/oracle"
)

// gone are the cases whose bytes are not in the folder, with the records that are left. (The swap file of leftover-swap
// holds half of a segment, and Kafka puts it in place.)
var gone = map[string]int{
	"10-clean-torn-tail": 135, "10-crash-torn-tail": 135, "10-crash-torn-header": 135,
	"10-crash-last-log-empty": 129, "10-crash-last-log-missing": 129, "10-crash-middle-log-missing": 103,
	"10-crash-leftover-swap": 120,
}

// TestKafkaStartsOnRepaired puts every damaged folder into a Kafka node's stopped log directory, repairs that, and
// starts Kafka: it must have nothing to complain of, and give every record whose bytes were there.
func TestKafkaStartsOnRepaired(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	node := k.Start(t, oracle.NodeOptions{Properties: map[string]string{"log.retention.ms": "-1"}})
	cases := golden.Cases(t, "10-")
	for _, c := range cases {
		if _, errs, status := call(t, "", "kafka-topics", "--bootstrap-server", node.Addr, "--create",
			"--topic", c.Info.Topic, "--partitions", "1", "--config", "retention.ms=-1"); status != 0 {
			t.Fatal(errs)
		}
	}
	node.Stop(t)
	for _, c := range cases {
		dir := filepath.Join(node.Dir, c.PartitionName())
		id, err := os.ReadFile(filepath.Join(dir, "partition.metadata"))
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if err == nil {
			err = os.Rename(c.CopyDir(t, golden.Before), dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(dir, "partition.metadata"), id)
	}
	spoilNode(t, node.Dir, cases[0].PartitionName())
	out, errs, status := call(t, "", "log", "repair", "--apply", "--set", "index.interval.bytes=250", node.Dir)
	if status == 2 || !strings.Contains(out, "changes made") {
		t.Fatalf("repair: status %d\n%s%s", status, out, errs)
	}
	dumpWritten(t, k, out)
	again := k.Start(t, oracle.NodeOptions{Dir: node.Dir, Properties: map[string]string{"log.retention.ms": "-1"}})
	if complaints := again.Errors(); len(complaints) > 0 {
		t.Errorf("Kafka complains: %s", strings.Join(complaints, "\n"))
	}
	for _, c := range cases {
		want, ok := gone[c.Name]
		if !ok {
			want = 136
		}
		if n := countRecords(t, again.Addr, c.Info.Topic); n != want {
			t.Errorf("%s: Kafka gives %d records, want %d", c.Name, n, want)
		}
	}
	var logs, indexes []string
	for _, c := range cases {
		dir := filepath.Join(node.Dir, c.PartitionName())
		logs, indexes = append(logs, glob(t, dir, "*.log")...), append(indexes, glob(t, dir, "*index")...)
	}
	dumpWhole(t, k, logs, "--deep-iteration")
	again.Stop(t)
	dumpWhole(t, k, indexes, "--verify-index-only")
}

// written is a line of a repair about a file that it wrote.
var written = regexp.MustCompile(
	`(?m)^do: (\S+\.(log|index|timeindex|txnindex|snapshot)): (rebuild|write|end|restore|take)`)

// dumpWritten has Kafka's tool read what a repair wrote, before Kafka itself has had a look at it.
func dumpWritten(t *testing.T, k *oracle.Kafka, output string) {
	t.Helper()
	files := map[string][]string{}
	for _, m := range written.FindAllStringSubmatch(output, -1) {
		if info, err := os.Stat(m[1]); err == nil && info.Size() > 0 {
			files[m[2]] = append(files[m[2]], m[1])
		}
	}
	dumpWhole(t, k, files["log"], "--deep-iteration")
	dumpWhole(t, k, append(files["index"], files["timeindex"]...), "--verify-index-only")
	dumpWhole(t, k, append(files["txnindex"], files["snapshot"]...))
}

// spoilNode makes a log directory one that Kafka does not start over, and a folder one that it takes for a stray.
func spoilNode(t *testing.T, dir, folder string) {
	t.Helper()
	for _, name := range []string{"replication-offset-checkpoint", "recovery-point-offset-checkpoint",
		"log-start-offset-checkpoint", "cleaner-offset-checkpoint"} {
		mustWrite(t, filepath.Join(dir, name), []byte("0\n1\njunk\n"))
	}
	if err := os.Remove(filepath.Join(dir, folder, "partition.metadata")); err != nil {
		t.Fatal(err)
	}
}

// countRecords reads a topic of one partition from its start to its end; markers do not count.
func countRecords(t *testing.T, addr, topic string) int {
	t.Helper()
	client := ledger.Dial(t, addr)
	client.WaitLed(t, topic, 1)
	start, code := client.ForTime(t, topic, 0, -2, 0)
	if code != 0 {
		t.Fatalf("start of %s: error %d", topic, code)
	}
	p := &ledger.Partition{Topic: topic, Start: start.Offset, End: client.EndOffset(t, topic, 0)}
	n := 0
	for _, r := range ledger.Consume(t, addr, []*ledger.Partition{p}, false)[p.Name()] {
		if !r.Control {
			n++
		}
	}
	return n
}

// TestKafkaReadsExports exports a part of every whole folder: Kafka's kafka-dump-log must read the copies without
// complaint, records and indexes.
func TestKafkaReadsExports(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	root := t.TempDir()
	for _, c := range golden.Cases(t, "01-seed", "02-", "03-", "04-", "05-", "06-", "12-shapes", "12-max") {
		from := c.TreePath(t, golden.Dir0)
		if _, errs, status := call(t, "", "log", "export", "--from", "1", "-o", root, from); status != 0 {
			t.Fatalf("%s: %s", c.Name, errs)
		}
	}
	dumpWhole(t, k, glob(t, root, "*/*.log"), "--deep-iteration")
	dumpWhole(t, k, glob(t, root, "*/*index"), "--verify-index-only")
	dumpWhole(t, k, glob(t, root, "*/*index"), "--index-sanity-check")
	dumpWhole(t, k, glob(t, root, "*/*.snapshot"))
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// complaint is what Kafka's tool says of something wrong; it exits with 0 whatever it finds.
var complaint = regexp.MustCompile(`(?i)isvalid: false|mismatch|exception|corrupt|not found|out of order`)

// dumpWhole has Kafka's tool read files in which nothing is wrong.
func dumpWhole(t *testing.T, k *oracle.Kafka, files []string, options ...string) {
	t.Helper()
	if len(files) == 0 {
		t.Fatal("no files")
	}
	r := k.Tool(t, "kafka-dump-log", append([]string{"--files", strings.Join(files, ",")}, options...)...)
	for line := range strings.Lines(r.Stdout + r.Stderr) {
		if complaint.MatchString(line) {
			t.Errorf("%q: Kafka's dump: %s", options, line)
		}
	}
	if n := strings.Count(r.Stdout, "Dumping "); r.Exit != 0 || n != len(files) {
		t.Errorf("%q: Kafka's dump of %d files: exit status %d after %d", options, len(files), r.Exit, n)
	}
}
