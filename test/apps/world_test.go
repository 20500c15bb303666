//go:build oracle

// Package apps runs Kafka's own applications against Tidemark: a word count with Kafka Streams, exactly once, and Kafka
// Connect, standalone and distributed, which copies a file into a topic and the topic into a file. They, and the
// broker, are killed while they work; what comes out at the end must be right.
//
// With TIDEMARK_TWIN set, Kafka plays Tidemark's part: it tests the tests.
package apps

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/oracle"
	"tidemark/test/pair"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// patience bounds everything that is waited for.
const patience = 3 * time.Minute

// world is a broker that can be killed and started again in its place.
type world struct {
	t    *testing.T
	addr string
	kill func() // and starts it again
}

var settings = map[string]string{"group.initial.rebalance.delay.ms": "100", "offsets.topic.num.partitions": "5",
	"transaction.state.log.num.partitions": "5"}

func newWorld(t *testing.T) *world {
	dir := filepath.Join(t.TempDir(), "data")
	if pair.Twin() {
		n := oracle.Get(t, oracle.Version).Start(t, oracle.NodeOptions{Dir: dir, Properties: settings})
		return &world{t: t, addr: n.Addr, kill: func() {
			n.Kill(t)
			n = n.Restart(t, settings)
		}}
	}
	var flags []string
	for key, value := range settings {
		flags = append(flags, "--set", key+"="+value)
	}
	port := proc.FreePorts(t, 1)[0]
	p, addr := proc.Serve(t, dir, port, flags...)
	oracle.WaitReady(t, p, addr)
	return &world{t: t, addr: addr, kill: func() {
		p.Kill(t)
		p, _ = proc.Serve(t, dir, port, flags...)
		oracle.WaitReady(t, p, addr)
	}}
}

func (w *world) client(options ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.addr)}, options...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) create(partitions int32, topics ...string) {
	w.t.Helper()
	admin := kadm.NewClient(w.client())
	for _, topic := range topics {
		if _, err := admin.CreateTopic(w.t.Context(), partitions, 1, nil, topic); err != nil {
			w.t.Fatal(err)
		}
	}
}

// document says what was seen.
const document = "../../doc/compat.md"

// seen checks, when the test has passed so far, that the document names the application in the version that ran.
func seen(t *testing.T, application string) {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(document))
	if err != nil {
		t.Fatal(err)
	}
	row := "| " + application + " | " + oracle.Version + " |"
	if !t.Failed() && !strings.Contains(string(b), row) {
		t.Errorf("%s has no row that begins with %q", document, row)
	}
}

// readUntil reads committed records of a topic from its start until enough have come, and then, for a while, whatever
// comes beyond: nothing should.
func (w *world) readUntil(app *proc.Process, topic string, enough func(r *kgo.Record) bool) {
	w.t.Helper()
	c := w.client(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	go func() {
		select {
		case <-app.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	for done := false; ; {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			if !done {
				w.t.Fatalf("topic %s is not complete after %v; the application's log:\n%s", topic, patience,
					proc.Tail(app.Log(), 60))
			}
			return
		}
		for r := range fetches.RecordsAll() {
			if enough(r) && !done {
				done = true
				var short context.CancelFunc
				ctx, short = context.WithTimeout(w.t.Context(), 500*time.Millisecond)
				defer short()
			}
		}
	}
}
