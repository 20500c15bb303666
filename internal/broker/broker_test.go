package broker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startBroker starts a broker on a free loopback port and stops it at the end of the test.
func startBroker(t *testing.T, dir string, more map[string]string) *Broker {
	t.Helper()
	props := map[string]string{"log.dirs": dir, "listeners": "PLAINTEXT://127.0.0.1:0",
		"tidemark.admin.listener": "127.0.0.1:0"}
	for k, v := range more {
		props[k] = v
	}
	b, err := Start(t.Context(), Options{Properties: props})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() { stopBroker(t, b) })
	return b
}

func stopBroker(t *testing.T, b *Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func client(t *testing.T, b *Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addresses()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func produceValues(t *testing.T, c *kgo.Client, topic string, first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		r := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "v%d", i)}
		if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatalf("produce %d: %v", i, err)
		}
		if r.Offset != int64(i) {
			t.Fatalf("offset of record %d: got %d", i, r.Offset)
		}
	}
}

func consumeValues(t *testing.T, b *Broker, topic string, n int) []string {
	t.Helper()
	c := client(t, b, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var values []string
	for len(values) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("consume after %d records: %v", len(values), err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func TestRecordsSurviveACleanRestart(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, nil)
	admin := kadm.NewClient(client(t, b))
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "a"); err != nil {
		t.Fatalf("create topic: %v", err)
	}
	produceValues(t, client(t, b), "a", 0, 5)
	cluster := b.clusterID()
	stopBroker(t, b)
	if _, err := os.Stat(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
		t.Errorf("clean marker: %v", err)
	}

	b = startBroker(t, dir, nil)
	if b.clusterID() != cluster {
		t.Errorf("cluster id after restart: got %s, want %s", b.clusterID(), cluster)
	}
	produceValues(t, client(t, b), "a", 5, 5)
	want := "v0 v1 v2 v3 v4 v5 v6 v7 v8 v9"
	if got := strings.Join(consumeValues(t, b, "a", 10), " "); got != want {
		t.Errorf("records: got %s, want %s", got, want)
	}
}

func TestAdminPort(t *testing.T) {
	b := startBroker(t, t.TempDir(), nil)
	for path, want := range map[string]string{"/live": "live", "/ready": "ready",
		"/metrics": "tidemark_start_milliseconds"} {
		resp, err := http.Get("http://" + b.AdminAddress() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: got status %d, error %v, body without %q", path, resp.StatusCode, err, want)
		}
	}
}

// get is what the admin port answers.
func get(t *testing.T, b *Broker, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + b.AdminAddress() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestScrubProves has a broker look through segments that have no seals, and tell so.
func TestScrubProves(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, nil)
	c := client(t, b, kgo.ProducerBatchCompression(kgo.NoCompression()))
	small := "2000"
	_, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, map[string]*string{"internal.segment.bytes": &small}, "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Value: make([]byte, 1500)}).FirstErr(); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	stopBroker(t, b)
	if err := os.Remove(filepath.Join(dir, "a-0", "tidemark.seals")); err != nil {
		t.Fatal(err)
	}
	b = startBroker(t, dir, map[string]string{"log.initial.task.delay.ms": "0", "tidemark.scrub.interval.ms": "1"})
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, body := get(t, b, "/metrics"); strings.Contains(body, "tidemark_seals_total 9\n") &&
			strings.Contains(body, "tidemark_segments_unproven 1\n") {
			return // all but the one that is appended to
		}
	}
	_, body := get(t, b, "/metrics")
	t.Errorf("the segments were not proven:\n%s", body)
}

func TestASecondBrokerOnTheDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	startBroker(t, dir, nil)
	_, err := Start(t.Context(), Options{Properties: map[string]string{"log.dirs": dir,
		"listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("got %v, want an error that names process %d", err, os.Getpid())
	}
}

func TestNoNewClusterBesidePartitions(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Properties: map[string]string{"log.dirs": dir,
		"listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
	if err == nil || !strings.Contains(err.Error(), "a-0") {
		t.Errorf("got %v, want a refusal that names a-0", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "__cluster_metadata-0")); err == nil {
		t.Error("a metadata log was made")
	}
}
