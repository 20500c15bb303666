//go:build oracle

// Package clients runs transactions with stock clients against Tidemark: franz-go, Kafka's Java client and librdkafka
// (through Python's confluent-kafka, which the test installs into a cache directory of the user).
package clients

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// start starts a broker with topic name.
func start(t *testing.T, name string) (addr string) {
	t.Helper()
	p, addr := proc.Serve(t, filepath.Join(t.TempDir(), "data"), 0)
	oracle.WaitReady(t, p, addr)
	if _, err := kadm.NewClient(client(t, addr)).CreateTopic(t.Context(), 1, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	return addr
}

func client(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// committed reads the values of a topic that a reader of committed records sees, up to the value "end".
func committed(t *testing.T, addr, topic string) (values []string) {
	t.Helper()
	c := client(t, addr, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %q: %v", values, err)
		}
		for r := range fetches.RecordsAll() {
			if string(r.Value) == "end" {
				return values
			}
			values = append(values, string(r.Value))
		}
	}
}

// offsetOf is the offset that a group has committed for partition 0.
func offsetOf(t *testing.T, addr, group, topic string) int64 {
	t.Helper()
	found, err := kadm.NewClient(client(t, addr)).FetchOffsets(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := found.Lookup(topic, 0)
	if !ok {
		return -1
	}
	return o.At
}

// check compares what a client's run has left: it commits "a" and "b" with the offset 7 of a group, aborts "x" with
// offset 9, is fenced by a second producer of its id, which commits "c" and "end".
func check(t *testing.T, addr string) {
	t.Helper()
	if got, want := committed(t, addr, "t"), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("committed records %q, want %q", got, want)
	}
	if got := offsetOf(t, addr, "g", "t"); got != 7 {
		t.Errorf("the group's offset is %d, want 7", got)
	}
}

// TestFranz runs franz-go.
func TestFranz(t *testing.T) {
	addr := start(t, "t")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	producer := func() *kgo.Client {
		return client(t, addr, kgo.TransactionalID("franz"), kgo.DefaultProduceTopic("t"))
	}
	first := producer()
	run := func(c *kgo.Client, commit bool, values ...string) error {
		if err := c.BeginTransaction(); err != nil {
			return err
		}
		for _, v := range values {
			if err := c.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
				return err
			}
		}
		return c.EndTransaction(ctx, kgo.TransactionEndTry(commit))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(run(first, true, "a", "b"))
	must(run(first, false, "x"))
	must(first.BeginTransaction())
	must(first.ProduceSync(ctx, kgo.StringRecord("y")).FirstErr())
	second := producer()
	must(run(second, true, "c"))
	err := first.EndTransaction(ctx, kgo.TryCommit)
	if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
		t.Errorf("the commit of the fenced producer: %v", err)
	}
	must(run(second, true, "end"))
	if got, want := committed(t, addr, "t"), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("committed records %q, want %q", got, want)
	}
}

// TestLibrdkafka runs librdkafka.
func TestLibrdkafka(t *testing.T) {
	python := confluent(t)
	addr := start(t, "t")
	runClient(t, exec.Command(python, filepath.Join("testdata", "transactions.py"), addr))
	check(t, addr)
}

// TestJava runs Kafka's Java client.
func TestJava(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	addr := start(t, "t")
	source, err := filepath.Abs(filepath.Join("testdata", "Transactions.java"))
	if err != nil {
		t.Fatal(err)
	}
	runClient(t, k.PlainTool("com.sun.tools.javac.launcher.Main", source, addr)) // compiles and runs one file
	check(t, addr)
}

func runClient(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, proc.Tail(string(out), 30))
	}
	if !strings.Contains(string(out), "FENCED") {
		t.Errorf("the first producer was not told that it is fenced: %s", proc.Tail(string(out), 30))
	}
}

// confluent is a Python that has confluent-kafka.
func confluent(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "tidemark", "confluent-kafka")
	python := filepath.Join(dir, "bin", "python")
	if exec.Command(python, "-c", "import confluent_kafka").Run() == nil {
		return python
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "--quiet", "confluent-kafka"},
	} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		t.Skipf("confluent-kafka cannot be installed here: %q: %v: %s", args, err, out)
	}
	return python
}
