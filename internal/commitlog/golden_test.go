package commitlog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/internal/checkpoint"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// goldenCases are the cases that this package answers for: logs without transactions, and two with.
var goldenCases = []string{
	"01-", "02-", "03-", "04-", "05-", "06-", "07-", "08-", "09-", "11-", "12-",
}

// configOf resolves the topic configs of a case.
func configOf(t testing.TB, c golden.Case) Config {
	t.Helper()
	cfg := DefaultConfig()
	for key, value := range c.Info.TopicConfig {
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "retention.ms":
			cfg.RetentionMs = n
		case "retention.bytes":
			cfg.RetentionBytes = n
		case "segment.ms":
			cfg.SegmentMs = n
		case "internal.segment.bytes":
			cfg.SegmentBytes = int32(n)
		case "segment.index.bytes":
			cfg.SegmentIndexBytes = int32(n)
		case "index.interval.bytes":
			cfg.IndexIntervalBytes = int32(n)
		case "cleanup.policy":
			cfg.CleanupPolicy = map[string]CleanupPolicy{"compact": CleanupCompact, "delete": CleanupDelete}[value]
		case "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "delete.retention.ms":
			// the cleaner's
		case "max.message.bytes":
			cfg.MaxMessageBytes = int32(n)
		case "file.delete.delay.ms":
			cfg.FileDeleteDelayMs = n
		case "compression.type":
			codec, ok := record.ParseCodec(value)
			if !ok {
				t.Fatalf("%s: compression.type=%s", c.Name, value)
			}
			cfg.CompressionType = CompressionType(codec)
		case "message.timestamp.type":
			if value == "LogAppendTime" {
				cfg.MessageTimestampType = record.LogAppendTime
			}
		default:
			t.Fatalf("%s: topic config %s is not handled", c.Name, key)
		}
	}
	return cfg
}

// goldenDir is the folder of a case in the in-memory file system.
func goldenDir(c golden.Case) string { return "/data/" + c.PartitionName() }

// goldenOptions describes a copy of a case's folder, in memory.
func goldenOptions(t testing.TB, c golden.Case, tree golden.Tree) Options {
	t.Helper()
	fsys := vfs.NewMem()
	if tree == "" {
		if err := fsys.MkdirAll(goldenDir(c), 0o755); err != nil {
			t.Fatal(err)
		}
	} else {
		c.CopyTo(t, fsys, tree, goldenDir(c))
	}
	return Options{
		FS: fsys, Dir: goldenDir(c), Topic: c.Info.Topic, Partition: c.Info.Partition, Config: configOf(t, c),
		Clock: func() time.Time { return time.UnixMilli(c.Info.BaseTimestamp) },
		Clean: true,
	}
}

func openGolden(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Abandon() })
	l.UpdateHighWatermark(l.EndOffset())
	return l
}

// lastEpoch is the newest leader epoch that the folder's checkpoint names.
func lastEpoch(t testing.TB, o Options) int32 {
	t.Helper()
	epochs, err := checkpoint.OpenLeaderEpochs(o.FS, filepath.Join(o.Dir, checkpoint.LeaderEpochFile))
	if err != nil {
		t.Fatal(err)
	}
	latest, ok := epochs.Latest()
	if !ok {
		t.Fatalf("%s names no leader epoch", o.Dir)
	}
	return latest.Epoch
}

// becomeLeader takes up the epoch in which Kafka gave its answers.
func becomeLeader(t testing.TB, l *Log, epoch int32) {
	t.Helper()
	if err := l.AssignEpoch(epoch); err != nil {
		t.Fatal(err)
	}
}

// startOf is the log start offset in the case's checkpoints.
func startOf(t testing.TB, c golden.Case) int64 {
	lines := c.Checkpoints(t)["log-start-offset-checkpoint"]
	if len(lines) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(strings.Fields(lines[0])[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGoldenAnswers(t *testing.T) {
	for _, c := range golden.Cases(t, goldenCases...) {
		t.Run(c.Name, func(t *testing.T) {
			o := goldenOptions(t, c, golden.Final)
			o.StartOffset = startOf(t, c)
			epoch := lastEpoch(t, o)
			l := openGolden(t, o)
			becomeLeader(t, l, epoch)
			checkAnswers(t, c, l)
		})
	}
}

func checkAnswers(t *testing.T, c golden.Case, l *Log) {
	t.Helper()
	t.Run("records", func(t *testing.T) { checkRecords(t, c, l) })
	t.Run("list-offsets", func(t *testing.T) { checkListOffsets(t, c, l) })
	t.Run("fetch", func(t *testing.T) { checkFetches(t, c, l) })
	t.Run("epoch-end", func(t *testing.T) { checkEpochEnds(t, c, l) })
}

func checkRecords(t *testing.T, c golden.Case, l *Log) {
	want, stopped := c.Records(t)
	if stopped != "" {
		t.Fatalf("the consumer stopped: %s", stopped)
	}
	var got []golden.Record
	for offset := l.StartOffset(); offset < l.EndOffset(); {
		s, err := l.Read(offset, ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: l.EndOffset()})
		if err != nil {
			t.Fatal(err)
		}
		data, err := s.Bytes()
		s.Release()
		if err != nil || len(data) == 0 {
			t.Fatalf("read at %d: %d bytes, %v", offset, len(data), err)
		}
		var records []golden.Record
		if records, offset = decodeRecords(t, data, offset); len(records) > 0 {
			got = append(got, records...)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-kafka +tidemark):\n%s", diff)
	}
}

// decodeRecords decodes the records at or behind an offset and returns the offset to go on with.
func decodeRecords(t *testing.T, data []byte, from int64) ([]golden.Record, int64) {
	t.Helper()
	var out []golden.Record
	next := from
	for {
		h, entry, rest, err := record.NextEntry(data)
		if errors.Is(err, record.ErrShort) {
			return out, next
		}
		if err != nil {
			t.Fatal(err)
		}
		data, next = rest, h.NextOffset()
		if h.IsControl() {
			continue
		}
		it, err := record.NewIterator(entry, record.IterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			if r := it.Record(); r.Offset >= from {
				out = append(out, goldenRecord(h, r))
			}
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
}

func goldenRecord(h record.Header, r *record.Record) golden.Record {
	g := golden.Record{
		Offset: r.Offset, Timestamp: r.Timestamp, TimestampType: h.TimestampType().String(),
		Headers: len(r.Headers), HeadersHash: "-", LeaderEpoch: max(h.LeaderEpoch, -1),
	}
	g.KeyLen, g.KeyHash = lenHash(r.Key)
	g.ValueLen, g.ValueHash = lenHash(r.Value)
	if len(r.Headers) > 0 {
		sum := sha256.New()
		for _, h := range r.Headers {
			sum.Write(h.Key)
			sum.Write([]byte{0})
			if h.Value == nil {
				sum.Write([]byte{2})
			} else {
				sum.Write([]byte{1})
				sum.Write(h.Value)
			}
			sum.Write([]byte{0})
		}
		g.HeadersHash = hex.EncodeToString(sum.Sum(nil))[:16]
	}
	return g
}

func lenHash(b []byte) (int, string) {
	if b == nil {
		return -1, "null"
	}
	return len(b), hash16(b)
}

func hash16(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:16]
}

// leastVersion is the first version of ListOffsets that knows a special timestamp.
var leastVersion = map[int64]int16{-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}

func checkListOffsets(t *testing.T, c golden.Case, l *Log) {
	for _, want := range c.ListOffsets(t) {
		got := listOffset(t, l, want)
		if got == want {
			continue
		}
		if want.Offset == -1 && isFalseNone(t, c, want, got) {
			continue
		}
		t.Errorf("query %d isolation %d version %d:\n kafka    %+v\n tidemark %+v",
			want.Query, want.Isolation, want.Version, want, got)
	}
}

// isFalseNone says whether Kafka missed a record that is there: the one class of answers in which this log differs.
// The record is looked for in the case's list of all records.
func isFalseNone(t *testing.T, c golden.Case, want, got golden.ListOffset) bool {
	if c.Name != "11-legacy-mixed" || want.Query < 0 {
		return false
	}
	records, _ := c.Records(t)
	for _, r := range records {
		if r.Timestamp >= want.Query {
			return got.Offset == r.Offset && got.Timestamp == r.Timestamp
		}
	}
	return false
}

// listOffset answers a query as the handler of ListOffsets does.
func listOffset(t *testing.T, l *Log, q golden.ListOffset) golden.ListOffset {
	t.Helper()
	none := q
	none.Error, none.Offset, none.Timestamp, none.LeaderEpoch = "NONE", -1, -1, -1
	upTo := l.EndOffset()
	if q.Isolation == 1 {
		upTo = l.LastStableOffset(upTo)
	}
	least, special := leastVersion[q.Query]
	if q.Query < 0 && (!special || q.Version < least) {
		none.Error = "UNSUPPORTED_VERSION"
		return none
	}
	out := none
	var f Found
	var ok bool
	var err error
	switch q.Query {
	case -1:
		out.Offset, ok = upTo, true
		out.LeaderEpoch, _ = l.LatestEpoch()
		if _, known := l.LatestEpoch(); !known {
			out.LeaderEpoch = -1
		}
	case -2, -4:
		out.Offset, out.LeaderEpoch, ok = l.StartOffset(), l.StartEpoch(), true
	case -5, -6:
	case -3:
		f, ok, err = l.MaxTimestamp(upTo)
		out.Offset, out.Timestamp, out.LeaderEpoch = f.Offset, f.Timestamp, f.LeaderEpoch
	default:
		f, ok, err = l.OffsetForTime(q.Query, upTo, nil)
		out.Offset, out.Timestamp, out.LeaderEpoch = f.Offset, f.Timestamp, f.LeaderEpoch
	}
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		out = none
	}
	if q.Version < 4 {
		out.LeaderEpoch = -1
	}
	return out
}

func checkFetches(t *testing.T, c golden.Case, l *Log) {
	for _, want := range c.Fetches(t) {
		got := fetch(t, l, want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fetch at %d, %d bytes, isolation %d (-kafka +tidemark):\n%s",
				want.StartOffset, want.MaxBytes, want.Isolation, diff)
		}
	}
}

// fetch answers as the handler of Fetch does for a request with one partition.
func fetch(t *testing.T, l *Log, q golden.Fetch) golden.Fetch {
	t.Helper()
	end := l.EndOffset()
	out := golden.Fetch{
		StartOffset: q.StartOffset, MaxBytes: q.MaxBytes, Isolation: q.Isolation, Version: q.Version,
		Error: "NONE", HighWatermark: end, LastStableOffset: l.LastStableOffset(end), LogStartOffset: l.StartOffset(),
		FirstBaseOffset: -1, LastOffset: -1, Hash: "-", AbortedNull: q.Isolation == 0,
	}
	o := ReadOptions{MaxBytes: int(q.MaxBytes), MinOneBatch: true, UpTo: end, Isolation: Isolation(q.Isolation)}
	if o.Isolation == ReadCommitted {
		o.UpTo = out.LastStableOffset
	}
	s, err := l.Read(q.StartOffset, o)
	var outside *OffsetOutOfRangeError
	if errors.As(err, &outside) {
		out.Error, out.HighWatermark, out.LastStableOffset, out.LogStartOffset = "OFFSET_OUT_OF_RANGE", -1, -1, -1
		out.AbortedNull = true
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	if q.Version < 5 {
		out.LogStartOffset = -1 // not in the answer yet
	}
	data, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.AbortedTxns {
		out.Aborted = append(out.Aborted, golden.Aborted{ProducerID: a.ProducerID, FirstOffset: a.FirstOffset})
	}
	describe(&out, data)
	return out
}

func describe(out *golden.Fetch, data []byte) {
	out.Bytes = len(data)
	if len(data) > 0 {
		out.Hash = hash16(data)
	}
	for {
		h, _, rest, err := record.NextEntry(data)
		if err != nil {
			out.PartialTailBytes = len(data)
			return
		}
		if out.Batches == 0 {
			out.FirstBaseOffset = h.BaseOffset
		}
		out.Batches++
		out.LastOffset = h.LastOffset
		data = rest
	}
}

func checkEpochEnds(t *testing.T, c golden.Case, l *Log) {
	for _, want := range c.EpochEnds(t) {
		got := golden.EpochEnd{Query: want.Query, Error: "NONE"}
		got.LeaderEpoch, got.EndOffset = l.EpochEnd(want.Query)
		if got != want {
			t.Errorf("epoch %d: kafka %+v, tidemark %+v", want.Query, want, got)
		}
	}
}

// files reads all files of a folder.
func files(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, e := range entries {
		data, err := vfs.ReadFile(fsys, filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

// diffFiles compares folders, byte for byte, where a name has one of the suffixes.
func diffFiles(want, got map[string]string, suffixes ...string) string {
	var b strings.Builder
	names := make(map[string]bool)
	for n := range want {
		names[n] = true
	}
	for n := range got {
		names[n] = true
	}
	for n := range names {
		match := false
		for _, s := range suffixes {
			match = match || strings.HasSuffix(n, s)
		}
		w, inWant := want[n]
		g, inGot := got[n]
		switch {
		case !match || w == g && inWant == inGot:
		case !inGot:
			fmt.Fprintf(&b, "%s is missing\n", n)
		case !inWant:
			fmt.Fprintf(&b, "%s (%d bytes) is not Kafka's\n", n, len(g))
		default:
			fmt.Fprintf(&b, "%s differs: kafka %d bytes\n%x\ntidemark %d bytes\n%x\n", n, len(w), clip(w), len(g), clip(g))
		}
	}
	return b.String()
}

func clip(s string) string { return s[:min(len(s), 600)] }
