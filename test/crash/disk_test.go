package crash

import (
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/broker"
	"tidemark/test/ledger"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// disk is an injector that fails what changes files below a path while it is broken.
type disk struct {
	below  string
	broken atomic.Bool
	err    error
	only   func(op faultfs.Op) bool
}

// Inject fails the call, when it is its turn.
func (d *disk) Inject(op faultfs.Op, name string) error {
	if d.broken.Load() && d.only(op) && strings.HasPrefix(name, d.below) {
		return &fs.PathError{Op: string(op), Path: name, Err: d.err}
	}
	return nil
}

// node is a broker in this process over a file system that may fail.
type node struct {
	*broker.Broker
	*ledger.Client
}

// openFiles is how many log and index files a node may have open.
const openFiles = 200

func startNode(t *testing.T, fsys vfs.FS, dirs ...string) node {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Options{FS: fsys, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Properties: map[string]string{"log.dirs": strings.Join(dirs, ","), "listeners": "PLAINTEXT://127.0.0.1:0",
			"tidemark.admin.listener": "", "log.flush.offset.checkpoint.interval.ms": "50",
			"replica.high.watermark.checkpoint.interval.ms": "50", "log.initial.task.delay.ms": "10",
			"tidemark.open.files": strconv.Itoa(openFiles)}})
	if err != nil {
		t.Fatal(err)
	}
	return node{b, ledger.Dial(t, b.Addresses()[0])}
}

// stop ends a broker; with a failed disk it may say so, but it must end.
func (n node) stop(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	begin := time.Now()
	err := n.Stop(ctx)
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the stop took %v", took)
	}
	return err
}

// add produces a batch and notes it when it was taken.
func add(t *testing.T, n node, p *ledger.Partition, value string) ledger.Produced {
	t.Helper()
	b := ledger.Batch{ProducerID: -1, Records: []ledger.Record{{Timestamp: time.Now().UnixMilli(), Value: []byte(value)}}}
	encoded, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Produce(p.Topic, p.ID, encoded)
	if err != nil {
		t.Fatalf("produce to %s: %v", p.Name(), err)
	}
	if got.Code == 0 {
		p.Added(b, got)
	}
	return got
}

func lead(t *testing.T, n node, book *ledger.Ledger) {
	t.Helper()
	for topic, partitions := range book.Topics() {
		n.WaitLed(t, topic, partitions)
		for _, p := range n.Metadata(t, topic)[topic].Partitions {
			book.Partition(topic, p.Partition).Lead(p.LeaderEpoch)
		}
	}
}

// A failed disk takes its log directory offline: its partitions answer KAFKA_STORAGE_ERROR, the others go on, the
// broker stops, and nothing acknowledged is lost.
func TestDiskFailure(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	d := &disk{below: dirs[1], err: syscall.EIO, only: func(op faultfs.Op) bool { return op.Mutates() }}
	n := startNode(t, faultfs.Wrap(vfs.OS(), d), dirs...)
	n.CreateTopic(t, "events", 4)
	book := ledger.New()
	for p := range int32(4) {
		book.Partition("events", p)
	}
	lead(t, n, book)
	for _, p := range book.Partitions() {
		for range 5 {
			if got := add(t, n, p, "before"); got.Err() != nil {
				t.Fatal(got.Err())
			}
		}
	}
	book.Check(t, n.Client)

	d.broken.Store(true)
	lost := 0
	for _, p := range book.Partitions() {
		on := folderIn(t, dirs[1], p)
		for range 3 {
			got := add(t, n, p, "after")
			if want := wantCode(on); got.Code != want {
				t.Errorf("produce to %s, on the failed disk %v: %v", p.Name(), on, got.Err())
			}
		}
		if on {
			lost++
			checkOffline(t, n, p)
		} else if got := n.FetchOne(t, p.Topic, p.ID, p.End-1, 1<<20, 0); got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
			t.Errorf("fetch from %s, on the good disk: %v", p.Name(), kerr.ErrorForCode(got.ErrorCode))
		}
	}
	if lost == 0 || lost == 4 {
		t.Fatalf("%d of 4 partitions on the failed disk", lost)
	}
	t.Logf("stop: %v", n.stop(t))

	d.broken.Store(false)
	n = startNode(t, faultfs.Wrap(vfs.OS(), d), dirs...)
	lead(t, n, book)
	book.Check(t, n.Client)
	if err := n.stop(t); err != nil {
		t.Error(err)
	}
}

func folderIn(t *testing.T, dir string, p *ledger.Partition) bool {
	t.Helper()
	_, err := vfs.OS().Stat(filepath.Join(dir, p.Name()))
	return err == nil
}

func wantCode(failed bool) int16 {
	if failed {
		return kerr.KafkaStorageError.Code
	}
	return 0
}

// checkOffline asks a partition on a failed disk until it answers so: who failed may be told a moment later.
func checkOffline(t *testing.T, n node, p *ledger.Partition) {
	t.Helper()
	want := kerr.KafkaStorageError.Code
	var fetch, list int16
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		fetch = n.FetchOne(t, p.Topic, p.ID, 0, 1<<20, 0).ErrorCode
		_, list = n.ForTime(t, p.Topic, p.ID, -1, 0)
		if fetch == want && list == want {
			return
		}
	}
	t.Errorf("%s is on a failed disk: fetch %v, list offsets %v", p.Name(), kerr.ErrorForCode(fetch),
		kerr.ErrorForCode(list))
}
