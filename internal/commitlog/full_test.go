package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tidemark/record"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// fullDisk refuses writes and new files from its n-th on, until there is room again. What a write got through with is
// half of its bytes.
type fullDisk struct {
	mem   *vfs.Mem
	n     int
	calls int
	room  bool
}

func (d *fullDisk) Inject(op faultfs.Op, name string) error {
	_, err := d.mem.Stat(name)
	if op != faultfs.WriteAt && !(op == faultfs.Open && errors.Is(err, fs.ErrNotExist) && strings.Contains(name, ".")) {
		return nil
	}
	if d.calls++; d.room || d.calls < d.n {
		return nil
	}
	return &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOSPC}
}

func (d *fullDisk) met() bool { return d.calls >= d.n }

// TestFullDisk fills the disk at every write of a run. The append for which there is no room fails, and changes
// nothing; reads, look-ups, retention and the move of the log start go on; with room again, so do appends. The log is
// whole after a clean stop and after a kill.
func TestFullDisk(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(smallConfig())
		disk := &fullDisk{mem: w.mem, room: true}
		w.fs = faultfs.Wrap(w.mem, disk)
		must(t, w.open())
		disk.room, disk.calls, disk.n = false, 0, n
		refused := appendUntilFull(t, w, n)
		if !disk.met() {
			if n < 60 {
				t.Errorf("only %d writes", n)
			}
			return
		}
		if refused {
			checkFull(t, w, n)
		}
		disk.room = true
		for i := range int64(4) {
			if _, err := w.append(record.None, 7, []row{{ts: 90000 + i, value: strings.Repeat("w", 200)}}); err != nil {
				t.Fatalf("write %d: append when there is room: %v", n, err)
			}
		}
		must(t, w.check())
		checkAfterFull(t, w, n)
	}
}

// appendUntilFull appends until an append is refused, which must be for the disk.
func appendUntilFull(t *testing.T, w *world, n int) bool {
	t.Helper()
	for i := range int64(20) {
		_, err := w.append(record.None, i%2*8-1, []row{{ts: 1000 + i*7%30, value: strings.Repeat("v", 150)}})
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrDiskFull) || !errors.Is(err, ErrFailed) {
			t.Fatalf("write %d: append to a full disk: %v", n, err)
		}
		return true
	}
	return false
}

func checkFull(t *testing.T, w *world, n int) {
	t.Helper()
	if err := w.check(); err != nil {
		t.Fatalf("write %d: the disk is full: %v", n, err)
	}
	if _, err := w.append(record.None, -1, []row{{ts: 1, value: "x"}}); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("write %d: a second append: %v", n, err)
	}
	if start := w.log.StartOffset() + 2; start < w.log.EndOffset() {
		if err := w.log.SetStartOffset(start); err != nil {
			t.Fatalf("write %d: delete records: %v", n, err)
		}
	}
	cfg := w.log.Config()
	cfg.RetentionBytes = 1000
	w.log.UpdateConfig(cfg)
	if _, err := w.log.DeleteOldSegments(w.clock()); err != nil {
		t.Fatalf("write %d: retention: %v", n, err)
	}
	if err := w.check(); err != nil {
		t.Fatalf("write %d: after retention: %v", n, err)
	}
}

// checkAfterFull opens the log again after a kill, and after a clean stop.
func checkAfterFull(t *testing.T, w *world, n int) {
	t.Helper()
	w.kill()
	if err := w.open(); err != nil {
		t.Fatalf("write %d: open after a kill: %v", n, err)
	}
	if err := w.check(); err != nil {
		t.Fatalf("write %d: after a kill: %v", n, err)
	}
	must(t, w.close())
	must(t, w.open())
	if err := w.check(); err != nil {
		t.Fatalf("write %d: after a clean stop: %v", n, err)
	}
	must(t, w.log.Abandon())
}

// TestFullDiskKeepsAborts aborts a transaction when there is no room for its index entry. Readers are told all the
// same, and the entry is in the index in the end.
func TestFullDiskKeepsAborts(t *testing.T) {
	w := newWorld(smallConfig())
	full := false
	w.fs = faultfs.Wrap(w.mem, faultfs.Func(func(op faultfs.Op, name string) error {
		if full && op == faultfs.WriteAt && strings.HasSuffix(name, ".txnindex") {
			return &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOSPC}
		}
		return nil
	}))
	must(t, w.open())
	for i := range int32(3) {
		full = i < 2
		must(t, abortOne(w.log, 5, i))
		if err := wantAborts(w.log, int(i)+1); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.close())
	must(t, w.open())
	if err := wantAborts(w.log, 3); err != nil {
		t.Error(err)
	}
	if n := w.log.o.Metrics.Segment.TxnIndexesRebuilt.Load(); n != 0 {
		t.Errorf("%d transaction indexes rebuilt", n)
	}
	must(t, w.log.Abandon())
}

// abortOne appends one record in a transaction, and its abort.
func abortOne(l *Log, pid int64, seq int32) error {
	o := record.DefaultBuilderOptions()
	o.ProducerID, o.BaseSequence, o.ProducerEpoch, o.Transactional = pid, seq, 0, true
	b := record.NewBuilder(o)
	if err := b.Append(1000, nil, []byte("gone"), nil); err != nil {
		return err
	}
	if _, err := l.AppendAsLeader(bytes.Clone(b.Bytes()), AppendOptions{}); err != nil {
		return err
	}
	m, err := record.EndTxnMarker(o, 1001, record.EndTxn{})
	if err != nil {
		return err
	}
	_, err = l.AppendAsLeader(m, AppendOptions{Origin: OriginCoordinator})
	l.UpdateHighWatermark(l.EndOffset())
	return err
}

func wantAborts(l *Log, n int) error {
	s, err := l.Read(0, ReadOptions{MaxBytes: 1 << 20, UpTo: l.EndOffset(), Isolation: ReadCommitted})
	if err != nil {
		return err
	}
	s.Release()
	var got, want []int64
	for i, a := range s.AbortedTxns {
		got, want = append(got, a.FirstOffset), append(want, int64(2*i))
	}
	if len(got) != n || !slices.Equal(got, want) {
		return fmt.Errorf("aborted transactions from %v, want %d", got, n)
	}
	return nil
}
