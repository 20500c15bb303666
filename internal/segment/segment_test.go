package segment

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

func testEnv(t testing.TB) *Env {
	t.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/d", 0o755); err != nil {
		t.Fatal(err)
	}
	e := &Env{
		Files: index.NewFileCache(mem, 8), Pages: index.NewCache(1 << 20), Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.UnixMilli(1_700_000_000_000) }, Metrics: new(Metrics),
	}
	e.SetDir("/d")
	return e
}

// sized makes a batch of exactly so many bytes with these timestamps.
func sized(t testing.TB, base int64, size int, timestamps ...int64) record.Batch {
	t.Helper()
	o := record.DefaultBuilderOptions()
	o.BaseOffset, o.LeaderEpoch = base, 0
	for pad := 0; ; pad++ {
		b := record.NewBuilder(o)
		for i, ts := range timestamps {
			value := ""
			if i == 0 {
				value = strings.Repeat("v", pad+max(size-len(timestamps)*20-100, 0))
			}
			if err := b.Append(ts, nil, []byte(value), nil); err != nil {
				t.Fatal(err)
			}
		}
		batch := b.Bytes()
		if len(batch) == size {
			return bytes.Clone(batch)
		}
		if len(batch) > size {
			t.Fatalf("no batch of %d bytes", size)
		}
	}
}

// add appends a batch as the log does.
func add(t testing.TB, s *Segment, b record.Batch) {
	t.Helper()
	pos, err := s.Write(b, b.MaxTimestamp())
	if err == nil {
		err = s.Index(BatchOf(b.Header(), pos))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func offsets(t testing.TB, s *Segment) string {
	t.Helper()
	var out []string
	n, err := s.files().offsets.Len()
	for i := 0; i < n && err == nil; i++ {
		var e index.OffsetEntry
		e, err = s.files().offsets.Entry(i)
		out = append(out, fmt.Sprintf("(%d,%d)", e.Offset-s.base, e.Pos))
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func times(t testing.TB, s *Segment) string {
	t.Helper()
	var out []string
	n, err := s.files().times.Len()
	for i := 0; i < n && err == nil; i++ {
		var e index.TimeEntry
		e, err = s.files().times.Entry(i)
		out = append(out, fmt.Sprintf("(%d,%d)", e.Timestamp, e.Offset-s.base))
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// TestWorkedExamples holds index contents seen on Kafka 4.3.1.
func TestWorkedExamples(t *testing.T) {
	rising := func(n, size, records int) (out [][]int64) {
		for i := range n {
			var ts []int64
			for j := range records {
				ts = append(ts, int64(i*10+j))
			}
			out = append(out, ts)
		}
		return out
	}
	backwards := [][]int64{}
	for _, ts := range []int64{100, 50, 40, 30, 20, 10, 0, -10, 90, 100, 200, 150, 120, 110, 120, 110, 120, 110, 300} {
		backwards = append(backwards, []int64{ts, ts - 5, ts - 1})
	}
	tests := []struct {
		name           string
		size           int
		batches        [][]int64
		offsets, times string
		sealed         string // time index after the end
	}{
		{"20 batches of 1000 bytes", 1000, rising(20, 1000, 3), "(17,5000) (32,10000) (47,15000)",
			"(52,17) (102,32) (152,47)", "(52,17) (102,32) (152,47) (192,59)"},
		{"the interval exactly does not do", 1024, rising(12, 1024, 3), "(17,5120) (32,10240)",
			"(52,17) (102,32)", "(52,17) (102,32) (112,35)"},
		{"each batch above the interval", 5000, rising(4, 5000, 3), "(5,5000) (8,10000) (11,15000)",
			"(12,5) (22,8) (32,11)", "(12,5) (22,8) (32,11)"},
		{"timestamps that go back", 2100, backwards,
			"(8,4200) (14,8400) (20,12600) (26,16800) (32,21000) (38,25200) (44,29400) (50,33600) (56,37800)",
			"(100,2) (200,32) (300,56)", "(100,2) (200,32) (300,56)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Create(testEnv(t), 7000, Config{IndexIntervalBytes: 4096, MaxIndexBytes: 10485760})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Release()
			next := int64(7000)
			for _, ts := range test.batches {
				b := sized(t, next, test.size, ts...)
				add(t, s, b)
				next = b.NextOffset()
			}
			if got := offsets(t, s); got != test.offsets {
				t.Errorf("offset index\n %s, want\n %s", got, test.offsets)
			}
			if got := times(t, s); got != test.times {
				t.Errorf("time index\n %s, want\n %s", got, test.times)
			}
			if err := s.Finish(); err != nil {
				t.Fatal(err)
			}
			if got := times(t, s); got != test.sealed {
				t.Errorf("time index after the end\n %s, want\n %s", got, test.sealed)
			}
		})
	}
}

// TestSmallIndexesRoll is Kafka's answer to segment.index.bytes=60: the time index, one slot kept free, is full first.
func TestSmallIndexesRoll(t *testing.T) {
	s, err := Create(testEnv(t), 0, Config{IndexIntervalBytes: 0, MaxIndexBytes: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	for i := range int64(6) {
		roll, err := s.ShouldRoll(Roll{SizeBytes: 100, MaxTimestamp: i, LastOffset: i, SegmentBytes: 1 << 20,
			SegmentMs: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		if roll != (i == 5) {
			t.Fatalf("roll before batch %d: %v", i, roll)
		}
		if !roll {
			add(t, s, sized(t, i, 100, i))
		}
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{".index": 32, ".timeindex": 48, ".log": 500} {
		info, err := s.env.Files.FS().Stat("/d/" + Name(0, name))
		if err != nil || info.Size() != want {
			t.Errorf("%s: %v bytes, %v, want %d", name, info.Size(), err, want)
		}
	}
}

func TestShouldRoll(t *testing.T) {
	tests := []struct {
		name string
		roll Roll
		want bool
	}{
		{"fits exactly", Roll{SizeBytes: 924, SegmentBytes: 1024, MaxTimestamp: 1000, LastOffset: 1, SegmentMs: 60000},
			false},
		{"a byte too many", Roll{SizeBytes: 925, SegmentBytes: 1024, MaxTimestamp: 1000, LastOffset: 1, SegmentMs: 60000},
			true},
		{"old exactly", Roll{SegmentBytes: 1024, MaxTimestamp: 61000, LastOffset: 1, SegmentMs: 60000}, false},
		{"too old", Roll{SegmentBytes: 1024, MaxTimestamp: 61001, LastOffset: 1, SegmentMs: 60000}, true},
		{"back in time", Roll{SegmentBytes: 1024, MaxTimestamp: -5, LastOffset: 1, SegmentMs: 60000, NowMs: 1 << 60}, false},
		{"last offset that fits", Roll{SegmentBytes: 1024, MaxTimestamp: 1000, LastOffset: 1<<31 - 1, SegmentMs: 60000},
			false},
		{"last offset too far", Roll{SegmentBytes: 1024, MaxTimestamp: 1000, LastOffset: 1 << 31, SegmentMs: 60000}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Create(testEnv(t), 0, Config{IndexIntervalBytes: 4096, MaxIndexBytes: 1200})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Release()
			add(t, s, sized(t, 0, 100, 1000))
			got, err := s.ShouldRoll(test.roll)
			if err != nil || got != test.want {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

// TestReferences holds a segment beyond its deletion.
func TestReferences(t *testing.T) {
	env := testEnv(t)
	s, err := Create(env, 0, Config{IndexIntervalBytes: 4096, MaxIndexBytes: 1200, PreallocateBytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, sized(t, 0, 200, 1000))
	if !s.Acquire() || !s.Shared() {
		t.Fatal("no reference")
	}
	if err := s.Doom(); err != nil {
		t.Fatal(err)
	}
	s.Release()
	if _, found, err := s.Find(0, 200); !found || err != nil {
		t.Errorf("find in a doomed segment: %v, %v", found, err)
	}
	entries, err := env.Files.FS().ReadDir("/d")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), DeletedSuffix) {
			t.Errorf("%s is not renamed", e.Name())
		}
	}
	s.Release()
	if s.Acquire() {
		t.Error("a segment without references was acquired")
	}
	if entries, err = env.Files.FS().ReadDir("/d"); err != nil || len(entries) != 0 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}
