//go:build oracle

package apps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// worker are settings of a worker of Kafka Connect.
func worker(addr string, restPort int, more ...string) []string {
	return append([]string{"bootstrap.servers=" + addr, fmt.Sprintf("listeners=http://127.0.0.1:%d", restPort),
		"key.converter=org.apache.kafka.connect.storage.StringConverter",
		"value.converter=org.apache.kafka.connect.storage.StringConverter",
		"plugin.discovery=service_load", "offset.flush.interval.ms=200"}, more...)
}

// properties writes a file of settings.
func properties(t *testing.T, name string, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name+".properties")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// file is a file that grows.
type file struct {
	t     *testing.T
	path  string
	lines []string
}

func (f *file) grow(n int) {
	f.t.Helper()
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	for range n {
		f.lines = append(f.lines, fmt.Sprintf("line %d of the file", len(f.lines)))
		if _, err := fmt.Fprintln(out, f.lines[len(f.lines)-1]); err != nil {
			f.t.Fatal(err)
		}
	}
}

// waitFor waits until the file at path holds the lines; with repeats, lines may be there more than once, and a killed
// writer may have left half a line.
func (f *file) waitFor(app *proc.Process, path string, repeats bool) {
	f.t.Helper()
	var got []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it is not there yet
		}
		got = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if repeats && f.holdsAll(got) || slices.Equal(got, f.lines) {
			return
		}
		select {
		case <-app.Ended():
			f.t.Fatalf("%s has ended; its log:\n%s", app.Name, proc.Tail(app.Log(), 60))
		default:
		}
	}
	f.t.Fatalf("%s holds %d lines, want %d; the log:\n%s", path, len(got), len(f.lines), proc.Tail(app.Log(), 60))
}

func (f *file) holdsAll(got []string) bool {
	has := make(map[string]bool)
	for _, line := range got {
		has[line] = true
	}
	for _, line := range f.lines {
		if !has[line] {
			return false
		}
	}
	return true
}

// topicHolds waits until the topic holds the lines, each once and in order, for a reader of committed records.
func (f *file) topicHolds(w *world, app *proc.Process, topic string) {
	f.t.Helper()
	var got []string
	w.readUntil(app, topic, func(r *kgo.Record) bool {
		got = append(got, string(r.Value))
		return len(got) >= len(f.lines)
	})
	if !slices.Equal(got, f.lines) {
		f.t.Errorf("the topic holds %d lines, want %d: %q", len(got), len(f.lines), got)
	}
}

// TestConnectStandalone copies a file into a topic, and the topic into a file, with a standalone worker that is stopped
// and started again.
func TestConnectStandalone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(1, "copied")
	dir := t.TempDir()
	from, to := &file{t: t, path: filepath.Join(dir, "from.txt")}, filepath.Join(dir, "to.txt")
	args := []string{
		properties(t, "worker", worker(w.addr, proc.FreePorts(t, 1)[0],
			"offset.storage.file.filename="+filepath.Join(dir, "offsets"))...),
		properties(t, "source", "name=source", "connector.class=FileStreamSource", "tasks.max=1", "file="+from.path,
			"topic=copied"),
		properties(t, "sink", "name=sink", "connector.class=FileStreamSink", "tasks.max=1", "file="+to,
			"topics=copied"),
	}
	k := oracle.Get(t, oracle.Version)
	from.grow(500)
	for range 2 {
		app := k.App(t, "connect-standalone", "org.apache.kafka.connect.cli.ConnectStandalone", args...)
		from.waitFor(app, to, false)
		from.grow(500)
		from.waitFor(app, to, false)
		from.topicHolds(w, app, "copied")
		app.Stop(t)
		from.grow(100)
	}
	seen(t, "Kafka Connect, standalone")
}

// TestConnectDistributed copies in both directions with a distributed worker whose source is exactly once, while the
// worker and the broker are killed: the topic holds each line once.
func TestConnectDistributed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(1, "copied")
	dir := t.TempDir()
	from, to := &file{t: t, path: filepath.Join(dir, "from.txt")}, filepath.Join(dir, "to.txt")
	port := proc.FreePorts(t, 1)[0]
	config := properties(t, "worker", worker(w.addr, port, "group.id=connect", "exactly.once.source.support=enabled",
		"config.storage.topic=connect-configs", "config.storage.replication.factor=1",
		"offset.storage.topic=connect-offsets", "offset.storage.replication.factor=1",
		"offset.storage.partitions=2", "status.storage.topic=connect-status", "status.storage.replication.factor=1",
		"status.storage.partitions=2", "scheduled.rebalance.max.delay.ms=0", "session.timeout.ms=6000",
		"heartbeat.interval.ms=1000")...)
	k := oracle.Get(t, oracle.Version)
	start := func() *proc.Process {
		return k.App(t, "connect-distributed", "org.apache.kafka.connect.cli.ConnectDistributed", config)
	}
	from.grow(300)
	app := start()
	connect(t, app, port, "source", map[string]string{"connector.class": "FileStreamSource", "tasks.max": "1",
		"file": from.path, "topic": "copied", "exactly.once.support": "required", "transaction.boundary": "poll"})
	connect(t, app, port, "sink", map[string]string{"connector.class": "FileStreamSink", "tasks.max": "1",
		"file": to, "topics": "copied", "consumer.override.isolation.level": "read_committed"})
	from.waitFor(app, to, true)
	app.Kill(t)
	from.grow(300)
	app = start()
	from.waitFor(app, to, true)
	from.grow(300)
	w.kill()
	from.grow(300)
	from.waitFor(app, to, true)
	from.topicHolds(w, app, "copied")
	seen(t, "Kafka Connect, distributed")
}

// connect sets a connector up, as soon as the worker serves.
func connect(t *testing.T, app *proc.Process, port int, name string, config map[string]string) {
	t.Helper()
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	last := "no answer"
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		select {
		case <-app.Ended():
			t.Fatalf("%s has ended; its log:\n%s", app.Name, proc.Tail(app.Log(), 60))
		default:
		}
		url := fmt.Sprintf("http://127.0.0.1:%d/connectors/%s/config", port, name)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			last = err.Error()
			continue
		}
		text, _ := io.ReadAll(answer.Body) // for the message only
		answer.Body.Close()
		if last = answer.Status + " " + string(text); answer.StatusCode < 300 {
			return
		}
	}
	t.Fatalf("connector %s is not set up: %s; the log:\n%s", name, last, proc.Tail(app.Log(), 60))
}
