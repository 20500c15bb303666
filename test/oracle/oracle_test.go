//go:build oracle

package oracle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/ledger"
)

// A node starts, serves Kafka's tools, survives a kill and a clean stop, and logs no error.
func TestNodeAndTools(t *testing.T) {
	versions := strings.Fields(os.Getenv("TIDEMARK_ORACLE_VERSIONS"))
	if len(versions) == 0 {
		versions = []string{Version}
	}
	for _, v := range versions {
		t.Run(v, func(t *testing.T) { nodeAndTools(t, Get(t, v)) })
	}
}

func nodeAndTools(t *testing.T, k *Kafka) {
	n := k.Start(t, NodeOptions{})
	server := []string{"--bootstrap-server", n.Addr}
	out := k.MustTool(t, "kafka-topics", append(server, "--create", "--topic", "a", "--partitions", "2")...)
	if out != "Created topic a.\n" {
		t.Errorf("create printed %q", out)
	}
	ledger.Dial(t, n.Addr).WaitLed(t, "a", 2) // the producer would warn of partitions that are not led yet
	r := k.ToolInput(t, "one\ntwo\n", "kafka-console-producer", append(server, "--topic", "a")...)
	if r.Exit != 0 || r.Stderr != "" {
		t.Errorf("producer: %+v", r)
	}
	out = k.MustTool(t, "kafka-get-offsets", append(server, "--topic", "a", "--time", "-1")...)
	if out != "a:0:0\na:1:2\n" && out != "a:0:2\na:1:0\n" {
		t.Errorf("offsets %q", out)
	}
	r = k.Tool(t, "kafka-console-consumer", append(server, "--topic", "a", "--from-beginning", "--max-messages", "2")...)
	if r.Stdout != "one\ntwo\n" || !strings.Contains(r.Stderr, "Processed a total of 2 messages") {
		t.Errorf("consumer: %+v", r)
	}
	r = k.Tool(t, "kafka-topics", append(server, "--describe", "--topic", "nope")...)
	if r.Exit != 1 || !strings.Contains(r.Stdout, "does not exist as expected") {
		t.Errorf("describe of an absent topic: %+v", r)
	}
	n.Kill(t)
	n = n.Restart(t, nil)
	n.Stop(t)
	if _, err := os.Stat(filepath.Join(n.Dir, ".kafka_cleanshutdown")); err != nil {
		t.Errorf("after a clean stop: %v", err)
	}
	if lines := n.Errors(); len(lines) > 0 {
		t.Errorf("the node logged %q", lines)
	}
}

func TestToolWithoutServer(t *testing.T) {
	k := Get(t, Version)
	r := k.Tool(t, "kafka-topics")
	if r.Exit != 1 || r.Stderr == "" {
		t.Errorf("no arguments: %+v", r)
	}
	if r := k.Tool(t, "kafka-dump-log", "--files", "nothing.log"); r.Exit != 1 {
		t.Errorf("absent file: %+v", r)
	}
}
