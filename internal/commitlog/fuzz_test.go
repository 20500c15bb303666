package commitlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/segment"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// FuzzOpen opens a log with any bytes in its .log, as after a crash and as after a clean stop. It must open, serve
// nothing but good batches, take an append, and have lost no byte but zeros at the end.
func FuzzOpen(f *testing.F) {
	for _, c := range golden.Cases(f, "01-", "05-", "06-transactions", "11-", "12-shapes") {
		logs, err := filepath.Glob(filepath.Join(c.TreePath(f, golden.Final), "*.log"))
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range logs[:1] {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data[:min(len(data), 3000)], false)
			f.Add(data[:min(len(data), 3000)], true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, clean bool) {
		if len(data) > 1<<16 {
			return
		}
		mem := vfs.NewMem()
		must(t, mem.MkdirAll(worldDir, 0o755))
		must(t, vfs.WriteFileAtomic(mem, filepath.Join(worldDir, segment.Name(0, ".log")), data))
		l, err := Open(Options{
			FS: mem, Dir: worldDir, Topic: "t", Config: DefaultConfig(), Clean: clean,
			Clock: func() time.Time { return time.UnixMilli(nowMs) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Abandon() }()
		l.UpdateHighWatermark(l.EndOffset())
		lookAround(t, l)
		checkKept(t, mem, data)
		end := l.EndOffset()
		info, err := l.AppendAsLeader(kv(0, []byte("k")), AppendOptions{})
		if err != nil || info.BaseOffset != end {
			t.Fatalf("append: %+v, %v", info, err)
		}
		s, err := l.Read(end, ReadOptions{MaxBytes: 100, MinOneBatch: true, UpTo: l.EndOffset()})
		// Offsets that go back are not noticed after a clean stop.
		if err != nil || s.SizeBytes != info.SizeBytes && !clean {
			t.Fatalf("read back: %d bytes, %v", s.SizeBytes, err)
		}
		s.Release()
	})
}

// lookAround reads the whole log and asks for times; records need not decode, as their batches may have been made up.
// A damaged batch with whole ones behind it stays, and is not served.
func lookAround(t *testing.T, l *Log) {
	for offset, n := l.StartOffset(), 0; offset < l.EndOffset() && n < 100; n++ {
		s, err := l.Read(offset, ReadOptions{MaxBytes: 1000, MinOneBatch: true, UpTo: l.EndOffset()})
		if errors.Is(err, ErrCorruptMessage) {
			offset++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		size := s.SizeBytes
		if _, err := s.Bytes(); err != nil {
			t.Fatal(err)
		}
		s.Release()
		if size == 0 {
			break
		}
		offset += max((l.EndOffset()-offset)/2, 1)
	}
	for _, ts := range []int64{0, 1, 1_700_000_000_000, 1 << 62} {
		if _, _, err := l.OffsetForTime(ts, l.EndOffset(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := l.MaxTimestamp(l.EndOffset()); err != nil {
		t.Fatal(err)
	}
}

// checkKept puts the log and what was cut from it together again.
func checkKept(t *testing.T, mem *vfs.Mem, data []byte) {
	var got []byte
	all := files(t, mem, worldDir)
	got = append(got, all[segment.Name(0, ".log")]...)
	for name, content := range all {
		if strings.HasPrefix(name, "cut-") {
			got = append(got, content...)
		}
	}
	if !bytes.Equal(bytes.TrimRight(got, "\x00"), bytes.TrimRight(data, "\x00")) {
		t.Fatalf("%d bytes of %d are left", len(got), len(data))
	}
}
