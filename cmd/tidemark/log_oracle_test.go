//go:build oracle

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/golden"
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
	out, errs, status := call(t, "", "log", "repair", "--apply", "--set", "index.interval.bytes=250", node.Dir)
	if status == 2 || !strings.Contains(out, "changes made") {
		t.Fatalf("repair: status %d\n%s%s", status, out, errs)
	}
	again := k.Start(t, oracle.NodeOptions{Dir: node.Dir, Properties: map[string]string{"log.retention.ms": "-1"}})
	if complaints := again.Errors(); len(complaints) > 0 {
		t.Errorf("Kafka complains: %s", strings.Join(complaints, "\n"))
	}
	for _, c := range cases {
		want, ok := gone[c.Name]
		if !ok {
			want = 136
		}
		out, errs, _ := call(t, "", "kafka-console-consumer", "--bootstrap-server", again.Addr, "--topic", c.Info.Topic,
			"--from-beginning", "--timeout-ms", "1500")
		if n := strings.Count(out, "\n"); n != want {
			t.Errorf("%s: Kafka gives %d records, want %d\n%s", c.Name, n, want, errs)
		}
	}
	log := filepath.Join(node.Dir, "10-crash-flip-middle-segment-0", "00000000000000000078.log")
	dump := k.MustTool(t, "kafka-dump-log", "--files", log)
	if strings.Contains(dump, "isvalid: false") || !strings.Contains(dump, "isvalid: true") {
		t.Errorf("Kafka's dump of a repaired log:\n%s", dump)
	}
}
