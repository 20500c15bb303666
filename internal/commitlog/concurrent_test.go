package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/record"
	"tidemark/vfs"
)

// TestReadersBesideChanges reads and looks up while the log is appended to, rolled, truncated, trimmed and flushed.
// Every record carries its offset in its value, unless a truncation put another one there: its timestamp tells which.
func TestReadersBesideChanges(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll(worldDir, 0o755))
	cfg := smallConfig()
	var background sync.WaitGroup
	l, err := Open(Options{
		FS: mem, Dir: worldDir, Topic: "t", Config: cfg, MarkedBytes: 1,
		Clock:      func() time.Time { return time.UnixMilli(nowMs) },
		Background: func(task func()) { background.Go(task) },
		After:      func(_ time.Duration, task func()) { background.Go(task) },
	})
	must(t, err)
	var done atomic.Bool
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for n := int64(i); !done.Load(); n++ {
				if err := readSomewhere(l, n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range int64(600) {
		must(t, change(l, i))
	}
	done.Store(true)
	readers.Wait()
	must(t, l.Close())
	background.Wait()
}

// change is the i-th change of the log.
func change(l *Log, i int64) error {
	batch := newBatch(record.Codec(i%5), -1, 0, []row{{ts: i, value: fmt.Sprint("turn ", i)}, {ts: i, value: "second"}})
	if _, err := l.AppendAsLeader(batch, AppendOptions{}); err != nil {
		return err
	}
	l.UpdateHighWatermark(l.EndOffset())
	switch {
	case i%41 == 40:
		return l.TruncateTo(max(l.EndOffset()-7, l.StartOffset()))
	case i%29 == 28:
		return l.SetStartOffset(max(l.EndOffset()-60, 0))
	case i%31 == 30:
		_, err := l.DeleteOldSegments(time.UnixMilli(nowMs))
		return err
	case i%17 == 16:
		return l.Flush()
	}
	return nil
}

// readSomewhere reads from a place in the log, keeps the slice for a while, and looks up a time.
func readSomewhere(l *Log, n int64) error {
	start, end := l.StartOffset(), l.EndOffset()
	if end <= start {
		return nil
	}
	s, err := l.Read(start+n*7919%(end-start), ReadOptions{MaxBytes: 400, MinOneBatch: true, UpTo: end})
	var outside *OffsetOutOfRangeError
	if errors.As(err, &outside) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	defer s.Release()
	first, err := s.Bytes()
	if err != nil {
		return fmt.Errorf("read bytes: %w", err)
	}
	if err := wholeBatches(first); err != nil {
		return err
	}
	if _, _, err := l.OffsetForTime(n%600, l.EndOffset(), nil); err != nil {
		return fmt.Errorf("look up: %w", err)
	}
	if _, _, err := l.MaxTimestamp(l.EndOffset()); err != nil {
		return fmt.Errorf("max timestamp: %w", err)
	}
	again, err := s.Bytes()
	if err != nil || !bytes.Equal(first, again) {
		return fmt.Errorf("the bytes of a slice in flight have changed (%v)", err)
	}
	return nil
}

func wholeBatches(data []byte) error {
	for {
		_, entry, rest, err := record.NextEntry(data)
		if errors.Is(err, record.ErrShort) {
			return nil
		}
		if err != nil {
			return err
		}
		if !record.ValidCRC(entry) {
			return errors.New("a batch with a wrong checksum was served")
		}
		data = rest
	}
}
