package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tidemark/test/golden"
)

// goldenLogs returns the start (≤ 32 KiB) of every .log and .checkpoint of the
// golden directories, each content once.
func goldenLogs(t testing.TB) [][]byte {
	t.Helper()
	seen := map[string]bool{}
	var logs [][]byte
	err := filepath.WalkDir(golden.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(path, ".log") || strings.HasSuffix(path, ".checkpoint")) {
			return err
		}
		p, err := os.ReadFile(path)
		if p = p[:min(len(p), 32<<10)]; !seen[string(p)] {
			seen[string(p)] = true
			logs = append(logs, p)
		}
		return err
	})
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d golden logs, %v", len(logs), err)
	}
	return logs
}

// Every golden log, iterated, gives the records that Kafka's consumer printed:
// offset, time, key, value, headers and leader epoch, in that order.
func TestGoldenRecords(t *testing.T) {
	for _, c := range golden.Cases(t, "0", "1") {
		if _, ok := c.Expect("records.tsv"); !ok {
			continue // no answers of a consumer: a whole data directory, or a folder Kafka refused
		}
		t.Run(c.Name, func(t *testing.T) {
			want, stopped := c.Records(t)
			start, end := logRange(t, c)
			got, err := readAsConsumer(t, c.TreePath(t, golden.Final), start, end)
			if (stopped != "") != (err != nil) {
				t.Errorf("Kafka's consumer stopped with %q, this one with %v", stopped, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("records differ (-Kafka +here):\n%.3000s", diff)
			}
		})
	}
}

// logRange is the range of offsets that Kafka served, [start, end).
func logRange(t *testing.T, c golden.Case) (start, end int64) {
	t.Helper()
	if strings.HasPrefix(c.Name, "10-") {
		a := c.AfterStart(t)
		return a.LogStartOffset, a.LogEndOffset
	}
	lines := c.Checkpoints(t)["log-start-offset-checkpoint"]
	if len(lines) == 0 {
		return 0, math.MaxInt64
	}
	start, err := strconv.ParseInt(lines[0][strings.LastIndexByte(lines[0], ' ')+1:], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return start, math.MaxInt64
}

var errCRC = errors.New("wrong checksum")

// readAsConsumer reads offsets [offset, end) from the logs of a folder as a
// client does: it stops at a wrong checksum, and passes over bytes at the end
// of a file that are no batch.
func readAsConsumer(t *testing.T, dir string, offset, end int64) (records []golden.Record, err error) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var it Iterator
	for _, name := range logs { // sorted by base offset
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
		for s.Next() {
			batch, err := s.Batch()
			if err != nil {
				t.Fatal(err)
			}
			if !ValidCRC(batch) {
				return records, errCRC
			}
			if s.Header().IsControl() {
				continue
			}
			if err := it.Reset(batch, IterOptions{}); err != nil {
				t.Fatalf("batch at %d: %v", s.Header().BaseOffset, err)
			}
			for it.Next() {
				if r := it.Record(); r.Offset >= offset && r.Offset < end {
					records = append(records, asGolden(r, s.Header()))
					offset = r.Offset + 1
				}
			}
			if it.Err() != nil {
				t.Fatalf("batch at %d: %v", s.Header().BaseOffset, it.Err())
			}
			compareSkipKV(t, batch)
		}
	}
	return records, nil
}

func asGolden(r *Record, h Header) golden.Record {
	g := golden.Record{
		Offset: r.Offset, Timestamp: r.Timestamp, TimestampType: h.TimestampType().String(),
		KeyLen: r.KeySize, KeyHash: shortHash(r.Key), ValueLen: r.ValueSize, ValueHash: shortHash(r.Value),
		Headers: len(r.Headers), HeadersHash: "-", LeaderEpoch: h.LeaderEpoch,
	}
	if len(r.Headers) > 0 {
		var p []byte
		for _, h := range r.Headers {
			p = append(append(p, h.Key...), 0)
			if h.Value == nil {
				p = append(p, 2)
			} else {
				p = append(append(p, 1), h.Value...)
			}
			p = append(p, 0)
		}
		g.HeadersHash = shortHash(p)
	}
	return g
}

func shortHash(p []byte) string {
	if p == nil {
		return "null"
	}
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:8])
}

// compareSkipKV checks that the mode without keys and values yields the same
// offsets, times and sizes.
func compareSkipKV(t *testing.T, batch []byte) {
	t.Helper()
	var full, skip Iterator
	if err := errors.Join(full.Reset(batch, IterOptions{}), skip.Reset(batch, IterOptions{SkipKV: true})); err != nil {
		t.Fatal(err)
	}
	for full.Next() {
		if !skip.Next() {
			t.Fatalf("SkipKV ended early: %v", skip.Err())
		}
		a, b := full.Record(), skip.Record()
		if a.Offset != b.Offset || a.Timestamp != b.Timestamp || a.KeySize != b.KeySize || a.ValueSize != b.ValueSize ||
			b.Key != nil || b.Value != nil {
			t.Fatalf("SkipKV yields %+v for %+v", b, a)
		}
	}
	if skip.Next() || skip.Err() != nil {
		t.Fatalf("SkipKV goes on: %v", skip.Err())
	}
}
