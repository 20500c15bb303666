package cleaner

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/vfs/faultfs"
)

// TestRetentionIsFaster lets retention remove a segment while its replacement is being offered: nothing is replaced,
// and nothing is left.
func TestRetentionIsFaster(t *testing.T) {
	cfg := smallLog()
	cfg.CleanupPolicy |= commitlog.CleanupDelete
	w := newWorld(t, cfg)
	watching := false
	deleted := make(chan struct{})
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, name string) error {
		if watching && op == faultfs.Rename && strings.HasSuffix(name, "00.log.cleaned") {
			watching = false
			must(t, w.log.SetStartOffset(2))
			go func() { // a part of it waits until the files of the log are left alone
				defer close(deleted)
				if n, err := w.log.DeleteOldSegments(w.clock()); n != 1 || err != nil {
					t.Errorf("%d segments deleted, %v", n, err)
				}
			}()
			for w.log.FirstBaseOffset() == 0 {
				runtime.Gosched()
			}
		}
		return nil
	}))
	must(t, w.open())
	for range 3 {
		w.mustAppend(kv{"a", value("1")}, kv{"b", value("1")})
		must(t, w.log.Roll())
	}
	w.mustAppend(kv{"z", value("1")})
	watching = true
	if pass(w) {
		t.Error("a round over segments that were gone came to its end")
	}
	if watching {
		t.Fatal("nothing was offered")
	}
	<-deleted
	if broken := w.c.Uncleanable(); len(broken) > 0 {
		t.Errorf("uncleanable: %v", broken)
	}
	w.tick()
	for _, name := range w.names() {
		if !strings.HasSuffix(name, ".log") && strings.Contains(name, ".log.") {
			t.Errorf("%s is left", name)
		}
	}
	if !pass(w) {
		t.Error("the next round did not come to its end")
	}
	if got, want := show(rows(t, w.log)), "4:a=1 5:b=1 6:z=1"; got != want {
		t.Errorf("records: got %s, want %s", got, want)
	}
	must(t, w.reopen(false))
	if got, want := show(rows(t, w.log)), "4:a=1 5:b=1 6:z=1"; got != want {
		t.Errorf("records after a start: got %s, want %s", got, want)
	}
}

// TestReadersAndWritersMeanwhile appends, reads and looks up while rounds go on: readers see whole
// batches, in order, and no failure.
func TestReadersAndWritersMeanwhile(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	const batches, keys = 600, 7
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for offset := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				offset = readSome(t, w.log, offset)
				if _, _, err := w.log.OffsetForTime(w.nowMs, w.log.EndOffset(), nil); err != nil {
					t.Errorf("look-up: %v", err)
				}
			}
		})
	}
	rounds := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				rounds <- n
				return
			default:
				if w.c.Pass(context.Background()) {
					n++
				}
			}
		}
	}()
	for i := range batches {
		b := record.NewBuilder(record.DefaultBuilderOptions())
		must(t, b.Append(w.nowMs, fmt.Appendf(nil, "%d", i%keys), fmt.Appendf(nil, "%d", i), nil))
		_, err := w.log.AppendAsLeader(bytes.Clone(b.Bytes()), commitlog.AppendOptions{})
		must(t, err)
		w.log.UpdateHighWatermark(w.log.EndOffset())
	}
	close(stop)
	if n := <-rounds; n == 0 {
		t.Error("no round came to its end")
	}
	readers.Wait()
	must(t, w.log.Roll())
	pass(w)
	if got := len(rows(t, w.log)); got != keys {
		t.Errorf("%d records are left, want %d", got, keys)
	}
	if broken := w.c.Uncleanable(); len(broken) > 0 {
		t.Errorf("uncleanable: %v", broken)
	}
}

// readSome reads a part of the log from an offset on and returns where to go on; from the start again at the end.
func readSome(t *testing.T, log *commitlog.Log, offset int64) int64 {
	s, err := log.Read(offset, commitlog.ReadOptions{MaxBytes: 500, MinOneBatch: true, UpTo: log.EndOffset(),
		Isolation: commitlog.ReadCommitted})
	if err != nil {
		t.Errorf("read at %d: %v", offset, err)
		return 0
	}
	defer s.Release()
	data, err := s.Bytes()
	if err != nil {
		t.Errorf("read at %d: %v", offset, err)
	}
	next := int64(0)
	for rest := data; len(rest) > 0; {
		h, entry, more, err := record.NextEntry(rest)
		if err != nil {
			break // cut by MaxBytes
		}
		if !record.ValidCRC(entry) || h.LastOffset < offset {
			t.Errorf("read at %d: a batch at offset %d", offset, h.BaseOffset)
		}
		next, rest = h.NextOffset(), more
	}
	return next
}
