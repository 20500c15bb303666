package tidemark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/test/golden"
	"tidemark/vfs"
)

var at = time.UnixMilli(1_790_214_409_427)

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s *Store, topic string) *Log {
	t.Helper()
	l, err := s.Create(topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fill(t *testing.T, l *Log, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		r := Record{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i)}
		r.Time = at.Add(time.Duration(i) * time.Second)
		if offset, err := l.Append(r); err != nil || offset != int64(i) {
			t.Fatalf("append %d: offset %d, %v", i, offset, err)
		}
	}
}

// values reads a log from an offset on.
func values(t *testing.T, l *Log, from int64) (out []string) {
	t.Helper()
	next := from
	for r, err := range l.Read(from) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Offset != next {
			t.Fatalf("offset %d, want %d", r.Offset, next)
		}
		next++
		out = append(out, string(r.Value))
	}
	return out
}

// A store has the bytes that Kafka has for the same records.
func TestBytesOfTheDemo(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "/data", Options{FS: mem, Config: map[string]string{"index.interval.bytes": "200",
		"retention.ms": "-1"}})
	l := create(t, s, "time-index-demo")
	fill(t, l, 0, 300)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for suffix, want := range map[string]int{".log": 22580, ".timeindex": 1200, ".index": 792} {
		b, err := vfs.ReadFile(mem, "/data/time-index-demo-0/00000000000000000000"+suffix)
		if err != nil || len(b) != want {
			t.Errorf("%s: %d bytes, want %d (%v)", suffix, len(b), want, err)
		}
	}
}

func TestReopen(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash=%v", crash), func(t *testing.T) {
			mem := vfs.NewMem()
			s := open(t, "/data", Options{FS: mem, Config: map[string]string{"segment.bytes": "2097152", "retention.ms": "-1"}})
			l := create(t, s, "t")
			fill(t, l, 0, 100)
			files := mem
			if crash {
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
				files = mem.CrashClone(rand.New(rand.NewPCG(1, 1)), 0)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, "/data", Options{FS: files, Config: map[string]string{"retention.ms": "-1"}})
			defer closeStore(t, s)
			l, err := s.Log("t", 0)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, l, 100, 110)
			if got := values(t, l, 95); len(got) != 15 || got[0] != "v95" || got[14] != "v109" {
				t.Errorf("read %q", got)
			}
			found, ok, err := l.OffsetForTime(at.Add(99_500 * time.Millisecond))
			if err != nil || !ok || found.Offset != 100 || !found.Time.Equal(at.Add(100*time.Second)) {
				t.Errorf("found %v %v %v", found, ok, err)
			}
		})
	}
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAppend(t *testing.T) {
	s := open(t, "/data", Options{FS: vfs.NewMem(), Config: map[string]string{
		"max.message.bytes": "1000", "compression.type": "zstd"}})
	defer closeStore(t, s)
	l := create(t, s, "t")
	before := time.Now().Truncate(time.Millisecond)
	header := Header{Key: []byte("h"), Value: []byte{}}
	if offset, err := l.Append(Record{Headers: []Header{header}}, Record{Value: []byte{}}); offset != 0 || err != nil {
		t.Fatalf("offset %d, %v", offset, err)
	}
	if offset, err := l.Append(); offset != 2 || err != nil {
		t.Errorf("appending nothing: offset %d, %v", offset, err)
	}
	var got []Record
	for r, err := range l.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != 2 || got[0].Value != nil || got[1].Value == nil || got[0].Time.Before(before) ||
		len(got[0].Headers) != 1 || got[0].Headers[0].Value == nil {
		t.Errorf("read %+v", got)
	}
	_, err := l.Append(Record{Time: time.Now().Add(3 * time.Hour)})
	if err == nil || !strings.Contains(err.Error(), "should be within") {
		t.Errorf("a record three hours ahead: %v", err)
	}
	noise := make([]byte, 0, 3200)
	for i := range 100 {
		sum := sha256.Sum256([]byte{byte(i)})
		noise = append(noise, sum[:]...)
	}
	if _, err := l.Append(Record{Value: noise}); err == nil {
		t.Error("a batch above max.message.bytes was taken")
	}
	if l.EndOffset() != 2 || l.StartOffset() != 0 {
		t.Errorf("log is [%d, %d)", l.StartOffset(), l.EndOffset())
	}
}

func TestAppendSideBySide(t *testing.T) {
	s := open(t, "/data", Options{FS: vfs.NewMem()})
	defer closeStore(t, s)
	l := create(t, s, "t")
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 50 {
				if _, err := l.Append(Record{Value: fmt.Appendf(nil, "%d/%d", w, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := values(t, l, 0); len(got) != 200 {
		t.Errorf("%d records", len(got))
	}
}

func TestReadErrors(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "/data", Options{FS: mem})
	defer closeStore(t, s)
	l := create(t, s, "t")
	if got := values(t, l, 0); got != nil {
		t.Errorf("an empty log has %q", got)
	}
	fill(t, l, 0, 3)
	for _, offset := range []int64{-1, 4} {
		var last error
		for _, err := range l.Read(offset) {
			last = err
		}
		var want *OffsetOutOfRangeError
		if !errors.As(last, &want) || want.Requested != offset || want.End != 3 {
			t.Errorf("from %d: %v", offset, last)
		}
	}
	for r, err := range l.Read(0) {
		if r.Offset == 1 || err != nil {
			break // the iterator must not go on
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := s.Log("absent", 0); !errors.Is(err, ErrUnknownPartition) {
		t.Errorf("a log that is not there: %v", err)
	}
	for _, name := range []string{"", "a/b", "..", strings.Repeat("x", 250)} {
		if _, err := s.Create(name, 0); err == nil {
			t.Errorf("topic %q was made", name)
		}
	}
	if _, err := s.Create("t", -1); err == nil {
		t.Error("partition -1 was made")
	}
	closeStore(t, s)
	if _, err := Open(dir, Options{Config: map[string]string{"segment.bytes": "few"}}); err == nil {
		t.Error("a bad config was taken")
	}
	node := golden.Load(t, "13-data").CopyDir(t, golden.Data)
	if _, err := Open(node, Options{}); !errors.Is(err, ErrOfNode) {
		t.Errorf("a directory of a node: %v", err)
	}
}

// Every golden directory has through this package what real Kafka served from it.
func TestGoldenReadOnly(t *testing.T) {
	for _, c := range golden.Cases(t) {
		if !c.Has(golden.Dir0) || strings.HasPrefix(c.Name, "10-") {
			continue // damage: Kafka's answers are not true there
		}
		t.Run(c.Name, func(t *testing.T) {
			s, err := OpenReadOnly(logDirectory(t, c), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer closeStore(t, s)
			partitions, err := s.Partitions()
			if err != nil || len(partitions) != 1 {
				t.Fatalf("partitions %v, %v", partitions, err)
			}
			l, err := s.Log(partitions[0].Topic, partitions[0].Number)
			if err != nil {
				t.Fatal(err)
			}
			sameRecords(t, c, l)
			sameLookups(t, c, l)
			if _, err := l.Append(Record{}); !errors.Is(err, ErrReadOnly) {
				t.Errorf("append: %v", err)
			}
		})
	}
}

// logDirectory is a copy of a case's folder beside the log start offset that Kafka had checkpointed.
func logDirectory(t *testing.T, c golden.Case) string {
	t.Helper()
	dir := filepath.Dir(c.CopyDir(t, golden.Dir0))
	if lines := c.Checkpoints(t)[checkpoint.LogStartOffsetFile]; len(lines) > 0 {
		text := fmt.Sprintf("0\n%d\n%s\n", len(lines), strings.Join(lines, "\n"))
		if err := os.WriteFile(filepath.Join(dir, checkpoint.LogStartOffsetFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sameRecords(t *testing.T, c golden.Case, l *Log) {
	t.Helper()
	want, stopped := c.Records(t)
	i := 0
	for r, err := range l.Read(l.StartOffset()) {
		if err != nil {
			if stopped == "" {
				t.Fatalf("after %d records: %v", i, err)
			}
			break
		}
		if i >= len(want) {
			t.Fatalf("more than %d records", len(want))
		}
		w := want[i]
		i++
		sum := sha256.Sum256(r.Value)
		ms := int64(-1)
		if !r.Time.IsZero() {
			ms = r.Time.UnixMilli()
		}
		if r.Offset != w.Offset || ms != w.Timestamp || len(r.Headers) != w.Headers ||
			len(r.Value) != max(0, w.ValueLen) || r.Value != nil && hex.EncodeToString(sum[:8]) != w.ValueHash {
			t.Fatalf("record %d: %+v, want %+v", i, r, w)
		}
	}
	if i != len(want) {
		t.Errorf("%d records, want %d", i, len(want))
	}
}

func sameLookups(t *testing.T, c golden.Case, l *Log) {
	t.Helper()
	records, _ := c.Records(t)
	for _, q := range c.ListOffsets(t) {
		if q.Query < 0 || q.Isolation != 0 || q.Error != "NONE" {
			continue
		}
		found, ok, err := l.OffsetForTime(time.UnixMilli(q.Query))
		got := int64(-1)
		if ok {
			got = found.Offset
		}
		if q.Offset < 0 { // Kafka misses some records that are there, but none that are not
			i := slices.IndexFunc(records, func(r golden.Record) bool { return r.Timestamp >= q.Query })
			if i >= 0 {
				q.Offset = records[i].Offset
			}
		}
		if err != nil || got != q.Offset {
			t.Errorf("look-up of %d: offset %d, %v; want %d", q.Query, got, err, q.Offset)
		}
	}
}

// A directory under a live broker, or a copy of one, is the same after it was looked into.
func TestReadOnlyChangesNothing(t *testing.T) {
	dir := golden.Load(t, "13-data").CopyDir(t, golden.Data)
	before := contents(t, dir)
	s, err := OpenReadOnly(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Log("t-b", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := values(t, l, 0); len(got) != 60 {
		t.Errorf("%d records, want 60", len(got))
	}
	if _, err := s.Create("t", 0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("create: %v", err)
	}
	if _, err := s.Log("absent", 0); !errors.Is(err, ErrUnknownPartition) {
		t.Errorf("a log that is not there: %v", err)
	}
	closeStore(t, s)
	if after := contents(t, dir); after != before {
		t.Error("the directory was changed")
	}
	if _, err := OpenReadOnly(filepath.Join(dir, "absent"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent directory: %v", err)
	}
}

// contents is a checksum over names and bytes of all files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		fmt.Fprintf(sum, "%s %d ", name, len(b))
		sum.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Retention works in a store as in a broker: what is too old goes.
func TestRetention(t *testing.T) {
	s := open(t, "/data", Options{FS: vfs.NewMem(), Config: map[string]string{
		"segment.bytes": "1048576", "retention.bytes": "1048576"}})
	defer closeStore(t, s)
	l := create(t, s, "t")
	value := make([]byte, 200<<10)
	for range 20 {
		if _, err := l.Append(Record{Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := l.log.DeleteOldSegments(time.Now()); err != nil || n == 0 || l.StartOffset() == 0 {
		t.Errorf("%d segments went, log starts at %d, %v", n, l.StartOffset(), err)
	}
	if got := values(t, l, l.StartOffset()); int64(len(got)) != l.EndOffset()-l.StartOffset() {
		t.Errorf("%d records left of [%d, %d)", len(got), l.StartOffset(), l.EndOffset())
	}
}

func TestScheduleEnds(t *testing.T) {
	s := &schedule{stop: make(chan struct{})}
	ran := make(chan string, 10)
	s.Background(func() { ran <- "soon" })
	if got := <-ran; got != "soon" {
		t.Error(got)
	}
	s.Every(0, time.Millisecond, func() { ran <- "again" })
	<-ran
	<-ran
	s.After(time.Hour, func() { ran <- "late" })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		s.end()
	}()
	for ctx.Err() == nil {
		select {
		case got := <-ran:
			if got != "again" {
				t.Error(got)
			}
		case <-ctx.Done():
		}
	}
	s.Background(func() { t.Error("ran after the end") })
	s.end()
}

// TestStoreIsClosed asks a store and its logs that are closed.
func TestStoreIsClosed(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		fsys := vfs.NewMem()
		s, err := Open("/store", Options{FS: fsys})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Create("t", 0)
		if err == nil {
			_, err = l.Append(Record{Value: []byte("v")})
		}
		if err != nil {
			t.Fatal(err)
		}
		if readOnly {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = OpenReadOnly("/store", Options{FS: fsys}); err != nil {
				t.Fatal(err)
			}
			if l, err = s.Log("t", 0); err != nil {
				t.Fatal(err)
			}
			if err := l.Flush(); !errors.Is(err, ErrReadOnly) {
				t.Errorf("flush: %v", err)
			}
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		_, create := s.Create("u", 0)
		_, log := s.Log("t", 0)
		_, partitions := s.Partitions()
		_, _, look := l.OffsetForTime(time.UnixMilli(1))
		var read error
		for _, read = range l.Read(0) {
			break
		}
		asked := map[string]error{"create": create, "log": log, "partitions": partitions, "look up": look, "read": read}
		if !readOnly {
			_, asked["append"] = l.Append(Record{})
		}
		for what, err := range asked {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("read-only %v: %s: %v", readOnly, what, err)
			}
		}
	}
}

// TestStoreRefusesNames keeps a store from what would make it another thing.
func TestStoreRefusesNames(t *testing.T) {
	fsys := vfs.NewMem()
	s, err := Open("/store", Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create("__cluster_metadata", 0); err == nil {
		t.Error("the metadata log of a node was made")
	}
	if _, err := s.Create("t", 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReadOnly("/store/t-0", Options{FS: fsys}); err == nil ||
		!strings.Contains(err.Error(), "the directory around it") {
		t.Errorf("a partition's folder: %v", err)
	}
}
