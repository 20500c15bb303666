package inspect_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

func target(t testing.TB, fsys vfs.FS, dir string) inspect.Target {
	t.Helper()
	all, err := inspect.Resolve(fsys, []string{dir})
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %d targets, %v", dir, len(all), err)
	}
	return all[0]
}

// TestCatGolden reads every whole folder and compares the records with what Kafka's consumer read.
func TestCatGolden(t *testing.T) {
	for _, c := range golden.Cases(t) {
		if !c.Has(golden.Dir0) || strings.HasPrefix(c.Name, "10-") || c.Info.Topic == "" || c.Name == "08-delete-records" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			fsys, dir := load(t, c, golden.Dir0)
			for _, committed := range []bool{false, true} {
				want, stopped := c.Records(t)
				if committed {
					want, stopped = c.CommittedRecords(t)
				}
				var got []inspect.Record
				err := inspect.Cat(fsys, target(t, fsys, dir), commitlog.DefaultConfig(), inspect.CatOptions{
					Committed: committed, Warn: func(text string) { t.Error(text) },
				}, func(r inspect.Record) error { got = append(got, r); return nil })
				if err != nil {
					t.Fatal(err)
				}
				if stopped == "" && len(got) != len(want) {
					t.Fatalf("committed %v: %d records, Kafka read %d", committed, len(got), len(want))
				}
				for i := range want {
					if got[i].Offset != want[i].Offset || got[i].Timestamp != want[i].Timestamp ||
						digest(got[i].Value) != want[i].ValueHash || len(got[i].Headers) != want[i].Headers {
						t.Fatalf("committed %v: record %d is %+v, Kafka read %+v", committed, i, got[i], want[i])
					}
				}
			}
		})
	}
}

func digest(b []byte) string {
	if b == nil {
		return "null"
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:16]
}

// TestCatRange bounds records by offset, time, key and text.
func TestCatRange(t *testing.T) {
	c := golden.Load(t, "01-seed-demo")
	fsys, dir := load(t, c, golden.Dir0)
	n := func(v int64) *int64 { return &v }
	base := c.Info.BaseTimestamp
	tests := []struct {
		o           inspect.CatOptions
		first, last int64
		count       int
	}{
		{inspect.CatOptions{Range: inspect.Range{FromOffset: n(10), ToOffset: n(20)}}, 10, 19, 10},
		{inspect.CatOptions{Range: inspect.Range{FromTime: n(base + 5000), ToTime: n(base + 7001)}}, 5, 7, 3},
		{inspect.CatOptions{Range: inspect.Range{FromTime: n(base + 1e9)}}, 0, 0, 0},
		{inspect.CatOptions{Range: inspect.Range{FromOffset: n(290), ToTime: n(base + 1e9)}}, 290, 299, 10},
		{inspect.CatOptions{Range: inspect.Range{FromOffset: n(295)}, Limit: 2}, 295, 296, 2},
	}
	for i, tt := range tests {
		var got []int64
		err := inspect.Cat(fsys, target(t, fsys, dir), commitlog.DefaultConfig(), tt.o, func(r inspect.Record) error {
			got = append(got, r.Offset)
			return nil
		})
		if err != nil || len(got) != tt.count || tt.count > 0 && (got[0] != tt.first || got[len(got)-1] != tt.last) {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
}

// TestTransactionsGolden compares the aborted transactions with the transaction indexes that Kafka wrote.
func TestTransactionsGolden(t *testing.T) {
	for _, name := range []string{"06-transactions", "06-transactions-all-decided", "10-crash-intact"} {
		c := golden.Load(t, name)
		tree := golden.Dir0
		if !c.Has(tree) {
			tree = golden.After
		}
		fsys, dir := load(t, c, tree)
		var got []string
		s, err := inspect.Transactions(fsys, target(t, fsys, dir), nil, func(x inspect.Transaction) error {
			if x.State == "aborted" {
				got = append(got, fmt.Sprintf("%d %d %d", x.ProducerID, x.FirstOffset, x.MarkerOffset))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.Aborted == 0 || s.Committed == 0 || int(s.Aborted) != len(got) {
			t.Errorf("%s: %+v, %d listed", name, s, len(got))
		}
		var want []string
		for line := range strings.SplitSeq(c.ExpectText(t, "dump-txnindex.txt"), "\n") {
			var version, producer, first, last, stable int64
			if n, _ := fmt.Sscanf(line, "version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d",
				&version, &producer, &first, &last, &stable); n == 5 {
				want = append(want, fmt.Sprintf("%d %d %d", producer, first, last))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %v\nKafka's index has %v", name, got, want)
		}
	}
}

// TestExportGolden exports ranges of every whole folder: the copy is whole, and holds the same records.
func TestExportGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "01-seed", "02-", "03-", "04-", "05-", "06-", "07-", "12-shapes", "12-max") {
		t.Run(c.Name, func(t *testing.T) {
			fsys, dir := load(t, c, golden.Dir0)
			from := target(t, fsys, dir)
			cfg := commitlog.DefaultConfig()
			first := int64(1)
			s, err := inspect.Export(fsys, from, cfg, inspect.Range{FromOffset: &first}, "/out",
				time.UnixMilli(1_796_000_000_000), nil)
			if err != nil {
				t.Fatal(err)
			}
			if found := verify(t, fsys, s.Dir); len(found) > 0 {
				t.Errorf("the copy is not whole:\n%s", texts(found))
			}
			read := func(at inspect.Target) (out string) {
				err := inspect.Cat(fsys, at, cfg, inspect.CatOptions{Range: inspect.Range{FromOffset: &first}, Control: true},
					func(r inspect.Record) error { out += fmt.Sprintf("%+v\n", r); return nil })
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			if a, b := read(from), read(target(t, fsys, s.Dir)); a != b || a == "" {
				t.Errorf("the copy has other records")
			}
			_, err = inspect.Export(fsys, from, cfg, inspect.Range{}, "/out", time.Time{}, nil)
			if !errors.Is(err, os.ErrExist) {
				t.Errorf("a second export: %v", err)
			}
		})
	}
}

// TestStatistics compares the measures of a folder with ones counted the slow way.
func TestStatistics(t *testing.T) {
	for _, name := range []string{"03-out-of-order", "10-crash-intact", "02-segments-monotonic"} {
		c := golden.Load(t, name)
		tree := golden.Dir0
		if !c.Has(tree) {
			tree = golden.After
		}
		fsys, dir := load(t, c, tree)
		s, err := inspect.Compute(fsys, target(t, fsys, dir), settings(t, fsys, nil), time.UnixMilli(1_796_000_000_000), nil)
		if err != nil {
			t.Fatal(err)
		}
		var times []int64
		scanned := int64(0)
		for _, g := range s.Segments {
			data, err := vfs.ReadFile(fsys, filepath.Join(dir, fmt.Sprintf("%020d.log", g.BaseOffset)))
			if err != nil {
				t.Fatal(err)
			}
			log := openReadOnly(t, fsys, dir)
			for _, b := range batches(data) {
				for offset := b.h.BaseOffset; offset <= b.h.LastOffset; offset++ {
					way, ok, err := log.TraceOffset(offset)
					if err != nil || !ok {
						t.Fatal(ok, err)
					}
					scanned += way.BatchPosition - way.Position + record.HeaderSize
				}
				times = append(times, recordTimes(t, data[b.pos:b.pos+int64(b.h.SizeBytes)])...)
			}
		}
		late, moves, maximum := int64(0), int64(0), int64(-1)
		for _, ts := range times {
			if ts > maximum {
				maximum, moves = ts, moves+1
			} else if ts < maximum {
				late++
			}
		}
		if s.Records != int64(len(times)) || s.Timestamps.OutOfOrder != late || s.Timestamps.MovesMaximum != moves ||
			s.Timestamps.Largest != maximum {
			t.Errorf("%s: %d records, %+v; counted %d, %d late, %d move", name, s.Records, s.Timestamps, len(times), late, moves)
		}
		if s.ScanByOffset.Count != s.Records || s.ScanByOffset.Mean != scanned/s.Records {
			t.Errorf("%s: scan by offset %+v, counted %d", name, s.ScanByOffset, scanned/s.Records)
		}
	}
}

func openReadOnly(t *testing.T, fsys vfs.FS, dir string) *commitlog.Log {
	t.Helper()
	log, err := inspect.Open(fsys, target(t, fsys, dir), commitlog.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Abandon() })
	return log
}

func recordTimes(t *testing.T, entry []byte) (out []int64) {
	t.Helper()
	it, err := record.NewIterator(entry, record.IterOptions{SkipKV: true})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		out = append(out, it.Record().Timestamp)
	}
	return out
}

// TestParseTime reads every form of a time.
func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		text string
		want string // in UTC; "" an error
		warn bool
	}{
		{"1700000000000", "2023-11-14T22:13:20.000Z", false},
		{"1700000000", "1970-01-20T16:13:20.000Z", true},
		{"1700000000000000", "", true},
		{"1700000000000000000", "", true},
		{"0", "1970-01-01T00:00:00.000Z", false},
		{"-1", "none", false},
		{"2026-11-30T12:00:00Z", "2026-11-30T12:00:00.000Z", false},
		{"2026-11-30 12:00:00.5+01:00", "2026-11-30T11:00:00.500Z", false},
		{"2026-11-30T12:00:05", "2026-11-30T11:00:05.000Z", false},
		{"2026-07-01 12:00", "2026-07-01T10:00:00.000Z", false},
		{"2026-11-30", "2026-11-29T23:00:00.000Z", false},
		{"now", "2026-11-30T12:00:00.000Z", false},
		{"today", "2026-11-29T23:00:00.000Z", false},
		{"yesterday", "2026-11-28T23:00:00.000Z", false},
		{"2h ago", "2026-11-30T10:00:00.000Z", false},
		{"1d12h ago", "2026-11-29T00:00:00.000Z", false},
		{"3 weeks ago", "2026-11-09T12:00:00.000Z", false},
		{"1.5 hours ago", "2026-11-30T10:30:00.000Z", false},
	}
	for _, tt := range tests {
		got, err := inspect.ParseTime(tt.text, berlin, now)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if text := inspect.FormatTime(got.Ms, time.UTC); tt.want != "" && text != tt.want || (got.Warning != "") != tt.warn {
			t.Errorf("%q: %s, warning %q", tt.text, text, got.Warning)
		}
	}
	for _, bad := range []string{"", "soon", "2h", "ago", "5 parsecs ago", "2026-13-01", "12:00", "1e30 weeks ago"} {
		if got, err := inspect.ParseTime(bad, berlin, now); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// TestFindExplains follows a look-up in a folder whose files Kafka wrote.
func TestFindExplains(t *testing.T) {
	c := golden.Load(t, "10-crash-intact")
	fsys, dir := load(t, c, golden.After)
	at := c.Info.BaseTimestamp + 50_000
	f, err := inspect.Find(fsys, target(t, fsys, dir), commitlog.DefaultConfig(), inspect.Query{Time: &at}, true)
	if err != nil {
		t.Fatal(err)
	}
	if f.Record == nil || f.Record.Timestamp < at || f.Explain == nil || len(f.Explain.Segments) != 5 ||
		f.Explain.TimeEntry.Timestamp > at || f.Explain.SegmentBase > f.Record.Offset || f.Explain.BytesScanned == 0 {
		t.Errorf("%+v\n%+v", f, f.Explain)
	}
}

// TestTransactionsBehindDamage wipes one batch after the other out: the transactions behind it are listed all the same.
func TestTransactionsBehindDamage(t *testing.T) {
	c := golden.Load(t, "06-transactions")
	fsys, dir := vfs.NewMem(), "/data/"+c.PartitionName()
	c.CopyTo(t, fsys, golden.Dir0, dir)
	count := func(at inspect.Target) (n int) {
		t.Helper()
		s, err := inspect.Transactions(fsys, at, nil, func(inspect.Transaction) error { n++; return nil })
		if err != nil || s.EndOffset == 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		return n
	}
	at := target(t, fsys, dir)
	all := count(at)
	wiped := 0
	for _, base := range basesOf(t, fsys, dir) {
		name := filepath.Join(dir, segment.Name(base, segment.LogSuffix))
		whole, err := vfs.ReadFile(fsys, name)
		for pos := 0; pos < len(whole) && err == nil; wiped++ {
			h, _ := record.ParseHeader(whole[pos:])
			end := pos + int(h.SizeBytes)
			err = vfs.WriteFileAtomic(fsys, name, slices.Concat(whole[:pos], make([]byte, h.SizeBytes), whole[end:]))
			if n := count(at); n < all-1 {
				t.Errorf("without the batch at %d of segment %d there are %d transactions of %d", pos, base, n, all)
			}
			pos = end
		}
		if err := errors.Join(err, vfs.WriteFileAtomic(fsys, name, whole)); err != nil {
			t.Fatal(err)
		}
	}
	if all < 3 || wiped < 10 {
		t.Errorf("%d transactions, %d batches: too few to tell", all, wiped)
	}
}

// basesOf are the base offsets of a folder's segments.
func basesOf(t *testing.T, fsys vfs.FS, dir string) (bases []int64) {
	t.Helper()
	at := target(t, fsys, dir)
	each := func(s inspect.SegmentInfo) error { bases = append(bases, s.BaseOffset); return nil }
	_, err := inspect.List(fsys, at, commitlog.DefaultConfig(), inspect.ListOptions{Segment: each})
	if err != nil {
		t.Fatal(err)
	}
	return bases
}
