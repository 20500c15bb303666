//go:build oracle

// Package compaction compares what compaction leaves: Tidemark's with Kafka's, byte for byte from the same folder, and
// record by record after the same requests.
package compaction

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/cleaner"
	"tidemark/internal/commitlog"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/proc"
	"tidemark/vfs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// brokerSettings make a broker compact at once and take batches of producers that it does not know.
var brokerSettings = map[string]string{
	"log.cleaner.backoff.ms": "100", "transaction.partition.verification.enable": "false",
	"log.cleaner.dedupe.buffer.size": "1500000", "log.retention.check.interval.ms": "3600000",
	"auto.create.topics.enable": "false",
}

// mapBytes is log.cleaner.dedupe.buffer.size in brokerSettings: room for 56 250 keys.
const mapBytes = 1_500_000

// subject is one topic of the comparison.
type subject struct {
	topic   string
	configs []string
	kind    kind
	rounds  int
	steps   int
	cfg     func(*commitlog.Config) // the same for Tidemark
	traffic *traffic
}

const segmentBytes = 3000

func subjects() []*subject {
	plain := []record.Codec{record.None}
	all := []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}
	return []*subject{
		{topic: "plain", rounds: 2, steps: 120,
			kind: kind{keys: 30, codecs: plain, tombstones: 0.2, maxRecords: 5, maxValue: 60}},
		{topic: "transactions", rounds: 3, steps: 150,
			kind: kind{keys: 30, codecs: plain, tombstones: 0.1, idempotent: 3, transactions: 4, maxRecords: 4, maxValue: 40}},
		{topic: "short-deletes", rounds: 4, steps: 60, configs: []string{"delete.retention.ms", "1"},
			cfg:  func(c *commitlog.Config) { c.DeleteRetentionMs = 1 },
			kind: kind{keys: 15, codecs: plain, tombstones: 0.4, idempotent: 2, transactions: 3, maxRecords: 4, maxValue: 40}},
		{topic: "append-time", rounds: 2, steps: 100, configs: []string{"message.timestamp.type", "LogAppendTime"},
			cfg:  func(c *commitlog.Config) { c.MessageTimestampType = record.LogAppendTime },
			kind: kind{keys: 20, codecs: plain, tombstones: 0.2, transactions: 2, maxRecords: 6, maxValue: 40}},
		{topic: "codecs", rounds: 2, steps: 120,
			kind: kind{keys: 40, codecs: all, tombstones: 0.2, idempotent: 2, transactions: 2, maxRecords: 12, maxValue: 60}},
		{topic: "many-keys", rounds: 1, steps: 160, configs: []string{"internal.segment.bytes", "1000000"},
			cfg:  func(c *commitlog.Config) { c.SegmentBytes = 1_000_000 },
			kind: kind{keys: 1 << 30, codecs: plain, maxRecords: 1500, maxValue: 5}},
	}
}

// topicConfigs are those that a topic is made with: nothing is compacted yet.
func (s *subject) topicConfigs() []string {
	return append([]string{"internal.segment.bytes", fmt.Sprint(segmentBytes), "index.interval.bytes", "200",
		"retention.ms", "-1", "min.cleanable.dirty.ratio", "0.001", "cleanup.policy", "delete",
		"message.timestamp.after.max.ms", "9223372036854775807", "file.delete.delay.ms", "0"}, s.configs...)
}

// config is the same for Tidemark, while the topic is compacted.
func (s *subject) config() commitlog.Config {
	c := commitlog.DefaultConfig()
	c.CleanupPolicy, c.SegmentBytes, c.IndexIntervalBytes = commitlog.CleanupCompact, segmentBytes, 200
	c.RetentionMs, c.MinCleanableDirtyRatio, c.FileDeleteDelayMs = -1, 0.001, 0
	if s.cfg != nil {
		s.cfg(&c)
	}
	return c
}

// TestCompaction starts Kafka once for all comparisons.
func TestCompaction(t *testing.T) {
	kafka := oracle.Get(t, oracle.Version).Start(t, oracle.NodeOptions{Properties: brokerSettings})
	t.Run("same bytes", func(t *testing.T) { sameBytes(t, kafka) })
	t.Run("same survivors", func(t *testing.T) { sameSurvivors(t, kafka) })
	for _, line := range kafka.Errors() {
		t.Errorf("Kafka complains: %s", line)
	}
}

// sameBytes lets Kafka write topics, then compact them; Tidemark compacts a copy made in between, by a clock that shows
// what Kafka's showed. All files must be the same, except what a compressor made.
func sameBytes(t *testing.T, kafka *oracle.Node) {
	client := dial(t, kafka.Addr)
	all := subjects()
	for i, s := range all {
		s.traffic = newTraffic(uint64(i), s.kind)
		client.CreateTopic(t, s.topic, 1, s.topicConfigs()...)
	}
	for round := 0; ; round++ {
		any := false
		for _, s := range all {
			if round >= s.rounds {
				continue
			}
			any = true
			t.Run(fmt.Sprintf("%s/%d", s.topic, round), func(t *testing.T) { s.round(t, kafka, client) })
		}
		if !any {
			break
		}
	}
}

func (s *subject) round(t *testing.T, kafka *oracle.Node, client *conn) {
	for range s.steps {
		send(t, client, s.topic, s.traffic.next())
	}
	for _, one := range s.traffic.closing() {
		send(t, client, s.topic, one)
	}
	send(t, client, s.topic, s.traffic.filler(int(s.config().SegmentBytes)/2+100))
	send(t, client, s.topic, s.traffic.filler(int(s.config().SegmentBytes)/2+100))
	time.Sleep(2 * time.Millisecond) // a horizon of the round before is past by now

	folder := s.topic + "-0"
	before := t.TempDir()
	copyFolder(t, filepath.Join(kafka.Dir, folder), filepath.Join(before, folder))
	points := checkpoint.CleanerOffsetFile
	copyFile(t, filepath.Join(kafka.Dir, points), filepath.Join(before, points))
	setConfigs(t, client.Client, s.topic, "cleanup.policy", "compact")
	waitCompacted(t, kafka.Dir, s.topic)
	setConfigs(t, client.Client, s.topic, "cleanup.policy", "delete")
	after := t.TempDir()
	copyFolder(t, filepath.Join(kafka.Dir, folder), filepath.Join(after, folder))

	now := cleanedAt(t, before, after, folder, s.config().DeleteRetentionMs)
	s.compact(t, before, now)
	compareFolders(t, filepath.Join(after, folder), filepath.Join(before, folder))
	want, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(kafka.Dir, checkpoint.CleanerOffsetFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(before, checkpoint.CleanerOffsetFile))
	if err != nil {
		t.Fatal(err)
	}
	name := checkpoint.TopicPartition{Topic: s.topic}
	if got[name] != want[name] {
		t.Errorf("first dirty offset: kafka %d, tidemark %d", want[name], got[name])
	}
}

// compact lets Tidemark do as many rounds on a folder as there are to do.
func (s *subject) compact(t *testing.T, root string, now time.Time) {
	t.Helper()
	name := checkpoint.TopicPartition{Topic: s.topic}
	log, err := commitlog.Open(commitlog.Options{FS: vfs.OS(), Dir: filepath.Join(root, name.String()), Topic: s.topic,
		Config: s.config(), Clock: time.Now, ProducerIDExpirationMs: 1 << 50,
		RecoveryPoint: activeBase(t, filepath.Join(root, name.String()))})
	if err != nil {
		t.Fatal(err)
	}
	log.UpdateHighWatermark(log.EndOffset())
	config := cleaner.DefaultConfig()
	config.DedupeBufferBytes = mapBytes
	c := cleaner.New(cleaner.Options{FS: vfs.OS(), Config: config, Clock: func() time.Time { return now },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Logs:  func() []cleaner.Partition { return []cleaner.Partition{{Name: name, Log: log, Dir: root}} }})
	rounds := 0
	for c.Pass(context.Background()) {
		rounds++
	}
	if broken := c.Uncleanable(); len(broken) > 0 || rounds == 0 {
		t.Fatalf("%d rounds, uncleanable: %v", rounds, broken)
	}
	if err := log.Abandon(); err != nil {
		t.Fatal(err)
	}
}

// cleanedAt is when Kafka compacted, told by a delete horizon that it wrote; now when it wrote none.
func cleanedAt(t *testing.T, before, after, folder string, retentionMs int64) time.Time {
	t.Helper()
	had := horizons(t, filepath.Join(before, folder))
	for base, at := range horizons(t, filepath.Join(after, folder)) {
		if _, ok := had[base]; !ok {
			return time.UnixMilli(at - retentionMs)
		}
	}
	return time.Now()
}

// horizons are the delete horizons in the logs of a folder, by base offset.
func horizons(t *testing.T, folder string) map[int64]int64 {
	t.Helper()
	out := make(map[int64]int64)
	for _, name := range filesOf(t, folder) {
		if !strings.HasSuffix(name, segment.LogSuffix) {
			continue
		}
		for _, b := range batchesOf(t, filepath.Join(folder, name)) {
			if b.HasDeleteHorizon() {
				out[b.BaseOffset()] = b.BaseTimestamp()
			}
		}
	}
	return out
}

func batchesOf(t *testing.T, name string) []record.Batch {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []record.Batch
	for len(data) > 0 {
		_, entry, rest, err := record.NextEntry(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, data = append(out, record.Batch(entry)), rest
	}
	return out
}

func filesOf(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

// activeBase is the base offset of the last segment in a folder.
func activeBase(t *testing.T, folder string) int64 {
	t.Helper()
	base := int64(-1)
	for _, name := range filesOf(t, folder) {
		var n int64
		if strings.HasSuffix(name, segment.LogSuffix) {
			if _, err := fmt.Sscanf(name, "%020d.log", &n); err != nil {
				t.Fatal(err)
			}
			base = max(base, n)
		}
	}
	return base
}

// waitCompacted waits until a broker has compacted a topic up to its active segment.
func waitCompacted(t *testing.T, root, topic string) {
	t.Helper()
	name := checkpoint.TopicPartition{Topic: topic}
	at := int64(-1)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		all, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(root, checkpoint.CleanerOffsetFile))
		if err != nil {
			t.Fatal(err)
		}
		if offset, ok := all[name]; ok {
			at = offset
		}
		if at >= activeBase(t, filepath.Join(root, name.String())) {
			return
		}
	}
	t.Fatalf("%s is not compacted: first dirty offset %d, active segment %d", topic, at,
		activeBase(t, filepath.Join(root, name.String())))
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range filesOf(t, from) {
		if !strings.HasSuffix(name, segment.DeletedSuffix) {
			copyFile(t, filepath.Join(from, name), filepath.Join(to, name))
		}
	}
}

// copyFile copies a file with its time of last change.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}
