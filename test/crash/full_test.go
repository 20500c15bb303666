package crash

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/ledger"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// fullDisk fails what needs room while it is broken: writes, of which the first half is written, and new files.
func fullDisk(d *disk) faultfs.Injector {
	return faultfs.Func(func(op faultfs.Op, name string) error {
		if op == faultfs.Open || op == faultfs.MkdirAll {
			if _, err := vfs.OS().Stat(name); !errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		return d.Inject(op, name)
	})
}

// A full disk refuses appends, each with a clear error, and no more: what is there can be read, and when there is room
// again, appends go on. Nothing acknowledged is lost.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := &disk{below: dir, err: syscall.ENOSPC, only: func(op faultfs.Op) bool {
		return op == faultfs.WriteAt || op == faultfs.Open || op == faultfs.MkdirAll
	}}
	n := startNode(t, faultfs.Wrap(vfs.OS(), fullDisk(d)), dir)
	n.CreateTopic(t, "filling", 2, "internal.segment.bytes", "4000", "index.interval.bytes", "0")
	book := ledger.New()
	for p := range int32(2) {
		book.Partition("filling", p)
	}
	lead(t, n, book)
	for round := range 4 {
		fill(t, n, book, 5+round) // each round finds the disk full at another place of a segment
		d.broken.Store(true)
		for _, p := range book.Partitions() {
			for range 3 {
				if got := add(t, n, p, "no room"); got.Code != kerr.KafkaStorageError.Code {
					t.Errorf("produce to %s on a full disk: %v", p.Name(), got.Err())
				}
			}
		}
		time.Sleep(120 * time.Millisecond) // checkpoints are due, and find no room
		book.Check(t, n.Client)
		d.broken.Store(false)
	}
	fill(t, n, book, 5)
	book.Check(t, n.Client)
	stopWell(t, n)
	n = startNode(t, vfs.OS(), dir)
	lead(t, n, book)
	book.Check(t, n.Client)
	stopWell(t, n)
}

// fill appends to every partition; all is taken.
func fill(t *testing.T, n node, book *ledger.Ledger, records int) {
	t.Helper()
	for _, p := range book.Partitions() {
		for range records {
			if got := add(t, n, p, "there is room"); got.Err() != nil {
				t.Fatalf("produce to %s: %v", p.Name(), got.Err())
			}
		}
	}
}

// A topic that is made while one of two disks is full has the partitions on the other at once, and the rest when there
// is room.
func TestPartitionsMadeOnAFullDisk(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	d := &disk{below: second, err: syscall.ENOSPC, only: func(op faultfs.Op) bool {
		return op == faultfs.WriteAt || op == faultfs.Open || op == faultfs.MkdirAll
	}}
	n := startNode(t, faultfs.Wrap(vfs.OS(), fullDisk(d)), first, second)
	d.broken.Store(true)
	request := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = "made", 4, 1
	request.Topics = append(request.Topics, made)
	if answer := ledger.Ask[*kmsg.CreateTopicsResponse](t, n.Client, request); answer.Topics[0].ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(answer.Topics[0].ErrorCode))
	}
	book := ledger.New()
	for _, p := range n.Metadata(t, "made")["made"].Partitions {
		book.Partition("made", p.Partition).Lead(p.LeaderEpoch)
	}
	refused := 0
	for _, p := range book.Partitions() {
		if got := add(t, n, p, "while it is full"); got.Code == kerr.KafkaStorageError.Code {
			refused++
		} else if got.Err() != nil {
			t.Errorf("produce to %s: %v", p.Name(), got.Err())
		}
	}
	if refused == 0 || refused == 4 {
		t.Errorf("%d of 4 partitions had no room", refused)
	}
	d.broken.Store(false)
	for _, p := range book.Partitions() {
		got := add(t, n, p, "when there is room")
		for deadline := time.Now().Add(30 * time.Second); got.Err() != nil && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
			got = add(t, n, p, "when there is room")
		}
		if got.Err() != nil {
			t.Errorf("produce to %s: %v", p.Name(), got.Err())
		}
	}
	book.Check(t, n.Client)
	stopWell(t, n)
	n = startNode(t, vfs.OS(), first, second)
	lead(t, n, book)
	book.Check(t, n.Client)
	stopWell(t, n)
}
