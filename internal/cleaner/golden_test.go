package cleaner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// goldenLog is a copy of a folder that Kafka compacted, with a cleaner for it.
type goldenLog struct {
	mem  *vfs.Mem
	name checkpoint.TopicPartition
	log  *commitlog.Log
	c    *Cleaner
	now  time.Time
}

func openGolden(t *testing.T, c golden.Case, now time.Time) *goldenLog {
	t.Helper()
	ms, err := strconv.ParseInt(c.Info.TopicConfig["delete.retention.ms"], 10, 64)
	must(t, err)
	return openGoldenTree(t, c, golden.Dir0, ms, now)
}

func openGoldenTree(t *testing.T, c golden.Case, tree golden.Tree, retentionMs int64, now time.Time) *goldenLog {
	t.Helper()
	cfg := smallLog()
	cfg.SegmentBytes, cfg.IndexIntervalBytes, cfg.SegmentIndexBytes = 3000, 200, 10<<20
	cfg.DeleteRetentionMs = retentionMs
	g := &goldenLog{mem: vfs.NewMem(), name: checkpoint.TopicPartition{Topic: c.Info.Topic}, now: now}
	dir := filepath.Join(worldRoot, g.name.String())
	c.CopyTo(t, g.mem, tree, dir)
	clock := func() time.Time { return g.now }
	var err error
	g.log, err = commitlog.Open(commitlog.Options{FS: g.mem, Dir: dir, Topic: g.name.Topic, Config: cfg, Clock: clock,
		Clean: true, ProducerIDExpirationMs: math.MaxInt64})
	must(t, err)
	g.log.UpdateHighWatermark(g.log.EndOffset())
	g.c = New(Options{FS: g.mem, Config: DefaultConfig(), Clock: clock,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Logs:  func() []Partition { return []Partition{{Name: g.name, Log: g.log, Dir: worldRoot}} }})
	return g
}

// firstHorizon is a time just before any tombstone or marker of the log may go.
func firstHorizon(t *testing.T, log *commitlog.Log) time.Time {
	t.Helper()
	first := int64(math.MaxInt64)
	for _, b := range batches(t, log) {
		if b.HasDeleteHorizon() {
			first = min(first, b.BaseTimestamp())
		}
	}
	if first == math.MaxInt64 {
		return time.UnixMilli(1_800_000_000_000)
	}
	return time.UnixMilli(first - 1)
}

// TestGoldenIsClean: by Kafka's checkpoint there is nothing to do in what Kafka compacted.
func TestGoldenIsClean(t *testing.T) {
	for _, c := range golden.Cases(t, "07-") {
		t.Run(c.Name, func(t *testing.T) {
			g := openGolden(t, c, time.UnixMilli(1_800_000_000_000))
			line := c.Checkpoints(t)[checkpoint.CleanerOffsetFile]
			if len(line) != 1 {
				t.Fatalf("lines of the checkpoint: %v", line)
			}
			must(t, vfs.WriteFileAtomic(g.mem, filepath.Join(worldRoot, checkpoint.CleanerOffsetFile),
				[]byte("0\n1\n"+line[0]+"\n")))
			before := rows(t, g.log)
			if g.c.Pass(context.Background()) {
				t.Error("what Kafka compacted was compacted again")
			}
			if after := rows(t, g.log); show(after) != show(before) {
				t.Error("records have changed")
			}
		})
	}
}

// TestGoldenSurvives compacts again, as if nothing was known, what Kafka compacted: all its records must stay, and its
// producers. Only what a round less gave no delete horizon yet may change.
func TestGoldenSurvives(t *testing.T) {
	for _, c := range golden.Cases(t, "07-") {
		t.Run(c.Name, func(t *testing.T) {
			g := openGolden(t, c, time.Time{})
			g.now = firstHorizon(t, g.log)
			producers := recoveredProducers(t, openGolden(t, c, g.now))
			if !g.c.Pass(context.Background()) {
				t.Fatalf("nothing was compacted: %v", g.c.Uncleanable())
			}
			want, stopped := c.Records(t)
			if stopped != "" {
				t.Fatal(stopped)
			}
			got := goldenRecords(t, g.log)
			if len(got) != len(want) {
				t.Fatalf("%d records, kafka %d", len(got), len(want))
			}
			for i, r := range want {
				if got[i] != fmt.Sprintf("%d %d %d %s", r.Offset, r.Timestamp, r.ValueLen, r.ValueHash) {
					t.Errorf("record %d: got %s, kafka %+v", i, got[i], r)
				}
			}
			if again := recoveredProducers(t, g); again != producers {
				t.Errorf("producers after recovery:\ngot  %s\nwant %s", again, producers)
			}
		})
	}
}

// recoveredProducers opens a log as after a kill, without its producer snapshots, and shows what the batches tell of
// producers.
func recoveredProducers(t *testing.T, g *goldenLog) string {
	t.Helper()
	must(t, g.log.Abandon())
	entries, err := g.mem.ReadDir(g.log.Dir())
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".snapshot") {
			must(t, g.mem.Remove(filepath.Join(g.log.Dir(), e.Name())))
		}
	}
	log, err := commitlog.Open(commitlog.Options{FS: g.mem, Dir: g.log.Dir(), Topic: g.name.Topic,
		Config: g.log.Config(), Clock: func() time.Time { return g.now }, ProducerIDExpirationMs: math.MaxInt64})
	must(t, err)
	var out strings.Builder
	for _, e := range log.ActiveProducers() {
		last, _ := e.LastBatch()
		fmt.Fprintf(&out, "%d epoch %d sequence %d at %d; ", e.ProducerID, e.ProducerEpoch, last.LastSequence,
			last.LastOffset)
	}
	must(t, log.Abandon())
	return out.String()
}

// goldenRecords are the records as a consumer prints them: offset, timestamp, length and checksum of the value.
func goldenRecords(t *testing.T, log *commitlog.Log) []string {
	t.Helper()
	var out []string
	for _, b := range batches(t, log) {
		if b.IsControl() {
			continue
		}
		it, err := record.NewIterator(b, record.IterOptions{})
		must(t, err)
		for it.Next() {
			r := it.Record()
			hash := "null"
			if r.Value != nil {
				sum := sha256.Sum256(r.Value)
				hash = hex.EncodeToString(sum[:8])
			}
			out = append(out, fmt.Sprintf("%d %d %d %s", r.Offset, r.Timestamp, r.ValueSize, hash))
		}
		must(t, it.Err())
	}
	return out
}

// TestGoldenOddBatches compacts folders of old message formats, of negative timestamps, of all shapes of records: of
// each key the last record stays, unchanged, and all batches are of magic 2.
func TestGoldenOddBatches(t *testing.T) {
	for _, c := range golden.Cases(t, "11-", "12-shapes", "12-huge", "12-relative", "05-", "06-transactions-all-decided") {
		t.Run(c.Name, func(t *testing.T) {
			want, _ := c.CommittedRecords(t)
			last := make(map[string]int64)
			for _, r := range want {
				if r.KeyLen >= 0 {
					last[r.KeyHash] = r.Offset
				}
			}
			g := openGoldenTree(t, c, golden.Final, 1<<62, time.UnixMilli(1_800_000_000_000))
			must(t, g.log.Roll())
			g.log.UpdateHighWatermark(g.log.EndOffset())
			if !g.c.Pass(context.Background()) {
				t.Fatalf("nothing was compacted: %v", g.c.Uncleanable())
			}
			var kept []string
			for _, r := range want {
				if r.KeyLen >= 0 && last[r.KeyHash] == r.Offset {
					kept = append(kept, fmt.Sprintf("%d %d %d %s", r.Offset, r.Timestamp, r.ValueLen, r.ValueHash))
				}
			}
			got := goldenRecords(t, g.log)
			if strings.Join(got, "\n") != strings.Join(kept, "\n") {
				t.Errorf("got %d records, want %d:\n%s\nwant\n%s", len(got), len(kept), strings.Join(got, "\n"),
					strings.Join(kept, "\n"))
			}
			for _, b := range batches(t, g.log) {
				if b.Magic() != 2 {
					t.Errorf("batch at offset %d has magic %d", b.BaseOffset(), b.Magic())
				}
			}
		})
	}
}
