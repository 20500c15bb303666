package quorum

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"tidemark/internal/auth"
	"tidemark/internal/commitlog"
	"tidemark/internal/controller"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// TestFullDisk refuses commands while the disk has no room, whatever write of a command finds it full, and takes them
// when there is room again. What was refused is not in the image, then or after a restart.
func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	var free atomic.Int64 // writes that still succeed
	free.Store(1 << 40)
	full := faultfs.Func(func(op faultfs.Op, name string) error {
		if op == faultfs.WriteAt && free.Add(-1) < 0 {
			return &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOSPC}
		}
		return nil
	})
	c := newClock()
	q := mustOpen(t, testOptions(faultfs.Wrap(mem, full), c))
	start(t, q, -1)
	want := 0
	for room := range int64(3) {
		for _, partitions := range []int32{1, 9000} { // the latter are several batches
			end := q.EndOffset()
			free.Store(room)
			result, err := Ask[controller.CreateTopicsResult](context.Background(), q, controller.CreateTopics{
				Topics: []controller.NewTopic{{Name: fmt.Sprintf("refused-%d-%d", room, partitions), Partitions: partitions,
					ReplicationFactor: 1}}}, auth.Anonymous)
			free.Store(1 << 40)
			if err == nil {
				if e := result.Topics[0].Err; e != nil {
					t.Fatal(e)
				}
				want++
				continue
			}
			if !errors.Is(err, commitlog.ErrDiskFull) || IsFailure(err) {
				t.Fatalf("room for %d writes, %d partitions: %v", room, partitions, err)
			}
			if partitions == 1 && q.EndOffset() != end {
				t.Errorf("the log was %d long and is %d", end, q.EndOffset())
			}
			create(t, q, fmt.Sprintf("taken-%d-%d", room, partitions), 1)
			want++
		}
	}
	if q.Image().NumTopics() < want {
		t.Errorf("%d topics, want %d", q.Image().NumTopics(), want)
	}
	before := q.Image()
	mustClose(t, q)
	q = mustOpen(t, testOptions(mem, c))
	if d := diffContent(withoutControllers(t, q.Image()), withoutControllers(t, before)); d != "" {
		t.Error(d)
	}
	mustClose(t, q)
}
