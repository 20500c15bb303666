package crash

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/internal/broker"
	"tidemark/internal/checkpoint"
	"tidemark/test/ledger"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// addIdempotent produces one record of 1 kB with a sequence and notes it.
func addIdempotent(t *testing.T, n node, p *ledger.Partition, sequence int32) ledger.Batch {
	t.Helper()
	b := ledger.Batch{ProducerID: 4242, Sequence: sequence, Records: []ledger.Record{
		{Timestamp: time.Now().UnixMilli() + int64(sequence)*10, Value: bytes.Repeat([]byte("v"), 1000)}}}
	encoded, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Produce(p.Topic, p.ID, encoded)
	if err != nil || got.Err() != nil {
		t.Fatalf("produce to %s: %v %v", p.Name(), err, got.Err())
	}
	p.Added(b, got)
	return b
}

// segmented starts a node with a topic of one partition in which every third record begins a segment.
func segmented(t *testing.T, fsys vfs.FS, dir string, records int) (node, *ledger.Ledger, *ledger.Partition) {
	t.Helper()
	n := startNode(t, fsys, dir)
	n.CreateTopic(t, "reported", 1, "internal.segment.bytes", "3300", "index.interval.bytes", "0")
	book := ledger.New()
	p := book.Partition("reported", 0)
	lead(t, n, book)
	for i := range records {
		addIdempotent(t, n, p, int32(i))
	}
	return n, book, p
}

// An index with one entry at the base offset, and an empty one, are legal: they hide nothing, and no start after the
// first looks at them again (KAFKA-7076).
func TestSparseIndexes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, book, _ := segmented(t, vfs.OS(), dir, 9)
	stopWell(t, n)
	names := map[string][]byte{"00000000000000000000.index": make([]byte, 8), "00000000000000000003.index": {}}
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, content := range names {
		path := filepath.Join(dir, "reported-0", name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	var written [2]map[string]time.Time
	for i := range written {
		n = startNode(t, vfs.OS(), dir)
		lead(t, n, book)
		book.Check(t, n.Client)
		stopWell(t, n)
		written[i] = make(map[string]time.Time)
		for name := range names {
			info, err := os.Stat(filepath.Join(dir, "reported-0", name))
			if err != nil {
				t.Fatal(err)
			}
			written[i][name] = info.ModTime()
		}
	}
	if !maps.Equal(written[0], written[1]) {
		t.Errorf("rebuilt in each start: %v, then %v", written[0], written[1])
	}
}

func stopWell(t *testing.T, n node) {
	t.Helper()
	if err := n.stop(t); err != nil {
		t.Fatal(err)
	}
}

// A failure of the transaction index, behind the append of the marker, must not give an offset twice (KAFKA-7866).
func TestTransactionIndexFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := &disk{below: filepath.Join(dir, "reported-0"), err: syscall.EIO}
	d.only = func(op faultfs.Op) bool { return op == faultfs.WriteAt }
	failed := make(chan struct{})
	first := sync.OnceFunc(func() { close(failed) })
	failing := faultfs.Func(func(op faultfs.Op, name string) error {
		if !strings.HasSuffix(name, ".txnindex") {
			return nil
		}
		err := d.Inject(op, name)
		if err != nil {
			first()
		}
		return err
	})
	n := startNode(t, faultfs.Wrap(vfs.OS(), failing), dir)
	n.CreateTopic(t, "reported", 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr), kgo.TransactionalID("x"), kgo.DefaultProduceTopic("reported"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("aborted")).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	d.broken.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = client.EndTransaction(ctx, kgo.TryAbort) // its marker meets the failure
	select {
	case <-failed:
	case <-ctx.Done():
		t.Fatal("no marker met the failure")
	}
	client.Close()
	_ = n.stop(t) // the directory is offline
	d.broken.Store(false)
	checkAborted(t, startNode(t, faultfs.Wrap(vfs.OS(), failing), dir))
}

// checkAborted proves that two aborted records stay hidden, and that what comes has offsets of its own.
func checkAborted(t *testing.T, n node) {
	t.Helper()
	defer stopWell(t, n)
	n.WaitLed(t, "reported", 1)
	book := ledger.New()
	p := book.Partition("reported", 0)
	got := add(t, n, p, "visible")
	if got.Err() != nil || got.Base < 3 {
		t.Errorf("the next record is at %d: %v", got.Base, got.Err())
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		end := n.FetchOne(t, "reported", 0, 0, 1<<20, 1)
		if end.LastStableOffset == end.HighWatermark {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("last stable offset %d, high watermark %d", end.LastStableOffset, end.HighWatermark)
		}
	}
	p.End = n.EndOffset(t, "reported", 0)
	for _, committed := range []bool{false, true} {
		var values []string
		last := int64(-1)
		for _, r := range ledger.Consume(t, n.Addr, book.Partitions(), committed)["reported-0"] {
			if r.Offset <= last {
				t.Errorf("offset %d after %d", r.Offset, last)
			}
			if last = r.Offset; !r.Control {
				values = append(values, string(r.Value))
			}
		}
		want := []string{"aborted", "aborted", "visible"}
		if committed {
			want = want[2:]
		}
		if !slices.Equal(values, want) {
			t.Errorf("committed %v: read %q, want %q", committed, values, want)
		}
	}
}

// The clean marker is gone before the first log is opened, and does not come back when loading fails (KAFKA-15375).
func TestFailedLoadLeavesNoCleanMarker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, book, _ := segmented(t, vfs.OS(), dir, 5)
	stopWell(t, n)
	clean := filepath.Join(dir, checkpoint.CleanShutdownFile)
	if _, err := os.Stat(clean); err != nil {
		t.Fatal(err)
	}
	d := &disk{below: filepath.Join(dir, "reported-0"), err: syscall.EIO, only: func(op faultfs.Op) bool {
		return op == faultfs.ReadDir
	}}
	d.broken.Store(true)
	b, err := broker.Start(t.Context(), broker.Options{FS: faultfs.Wrap(vfs.OS(), d), Properties: map[string]string{
		"log.dirs": dir, "listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
	if err == nil {
		_ = node{b, nil}.stop(t) // its directory is offline
	}
	if _, err := os.Stat(clean); !os.IsNotExist(err) {
		t.Errorf("the clean marker after a start that failed: %v", err)
	}
	n = startNode(t, vfs.OS(), dir)
	lead(t, n, book)
	book.Check(t, n.Client)
	stopWell(t, n)
}

// A damaged producer snapshot is replaced by the one before and the log: a repeated batch is still recognised.
func TestDamagedSnapshotKeepsProducers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, book, p := segmented(t, vfs.OS(), dir, 8)
	last := addIdempotent(t, n, p, 8)
	stopWell(t, n)
	path := filepath.Join(dir, "reported-0", "00000000000000000009.snapshot")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	for i := 20; i < 30; i++ {
		damaged[i] ^= 0xff
	}
	if err := os.WriteFile(path, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	n = startNode(t, vfs.OS(), dir)
	lead(t, n, book)
	encoded, err := last.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Produce("reported", 0, encoded)
	if err != nil || got.Err() != nil || got.Base != 8 {
		t.Errorf("the last batch again: %+v %v %v", got, got.Err(), err)
	}
	book.Check(t, n.Client)
	stopWell(t, n)
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, whole) {
		t.Errorf("the snapshot was not made anew: %x, was %x: %v", after, whole, err)
	}
}

// Rolls take up neither maps nor descriptors (KAFKA-19390).
func TestRollsTakeUpNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, _, p := segmented(t, vfs.OS(), dir, 50)
	defer stopWell(t, n)
	mapped, files := processUse(t)
	for i := range 1500 {
		addIdempotent(t, n, p, int32(50+i))
	}
	mappedAfter, filesAfter := processUse(t)
	// A map for each roll would be 500; the heap of this process takes some itself.
	if mappedAfter > mapped+100 || filesAfter > files+openFiles {
		t.Errorf("500 rolls: maps %d, then %d; descriptors %d, then %d", mapped, mappedAfter, files, filesAfter)
	}
}

// processUse counts the memory maps and descriptors of this process.
func processUse(t *testing.T) (mapped, files int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n")), len(entries)
}
