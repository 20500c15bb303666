package cleaner

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// FuzzRound compacts a segment of any bytes: it ends in a log that reads, or the partition is given up and its files
// are as they were; nothing panics.
func FuzzRound(f *testing.F) {
	for _, c := range golden.Cases(f, "05-codec-none", "06-transactions", "07-", "11-legacy-mixed", "12-shapes") {
		entries, err := os.ReadDir(c.TreePath(f, golden.Final))
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			name := c.TreePath(f, golden.Final) + "/" + e.Name()
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			if bytes.HasSuffix([]byte(name), []byte(".log")) && len(data) > 0 && len(data) < 4000 {
				f.Add(data, uint16(0))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, skew uint16) {
		if len(data) > 1<<16 {
			return
		}
		fuzzRound(t, withChecksums(data), int64(skew))
	})
}

// withChecksums makes the checksums of the batches of magic 2 right, so that what is in them is looked at.
func withChecksums(data []byte) []byte {
	data = bytes.Clone(data)
	for rest := data; len(rest) > 0; {
		h, entry, more, err := record.NextEntry(rest)
		if err != nil {
			break
		}
		if h.Magic == 2 {
			crc := crc32.Checksum(entry[21:], crc32.MakeTable(crc32.Castagnoli))
			binary.BigEndian.PutUint32(entry[17:], crc)
		}
		rest = more
	}
	return data
}

func fuzzRound(t *testing.T, data []byte, skew int64) {
	w := newWorld(t, smallLog())
	base := int64(0)
	if h, err := record.ParseHeader(data); err == nil && h.BaseOffset >= 0 && h.BaseOffset < 1<<50 {
		base = max(h.BaseOffset-skew, 0)
	}
	w.nowMs += skew
	name := worldDir + "/" + segment.Name(base, segment.LogSuffix)
	must(t, vfs.WriteFileAtomic(w.mem, name, data))
	log, err := commitlog.Open(commitlog.Options{FS: w.mem, Dir: worldDir, Topic: worldName.Topic, Config: w.cfg,
		Clock: w.clock, Files: index.NewFileCache(w.mem, 8), MaxDecompressedBytes: 1 << 20})
	if err != nil {
		return
	}
	w.log = log
	w.c = New(Options{FS: w.mem, Config: DefaultConfig(), Clock: w.clock, MaxDecompressedBytes: 1 << 20,
		Logs: func() []Partition { return []Partition{{Name: worldName, Log: w.log, Dir: worldRoot}} }})
	if log.Roll() != nil {
		return
	}
	log.UpdateHighWatermark(log.EndOffset())
	end := log.EndOffset()
	before, err := vfs.ReadFile(w.mem, name)
	must(t, err)
	done := w.c.Pass(context.Background())
	after, err := vfs.ReadFile(w.mem, name)
	must(t, err)
	if !done && !bytes.Equal(after, before) {
		t.Errorf("the log was changed though it was not compacted: %v", w.c.Uncleanable())
	}
	if log.EndOffset() != end {
		t.Errorf("log end: got %d, want %d", log.EndOffset(), end)
	}
	if done {
		checkCompacted(t, before, after)
	}
	must(t, log.Abandon())
}

// checkCompacted makes sure that every batch of the compacted bytes is whole, in order, and of offsets that were there.
func checkCompacted(t *testing.T, before, after []byte) {
	t.Helper()
	last := int64(-1)
	for rest := after; len(rest) > 0; {
		h, entry, more, err := record.NextEntry(rest)
		if err != nil || !record.ValidCRC(entry) || h.Magic != 2 {
			t.Fatalf("a batch of the compacted log is damaged: %v", err)
		}
		if h.BaseOffset <= last {
			t.Fatalf("offset %d after %d", h.BaseOffset, last)
		}
		last, rest = h.LastOffset, more
	}
	if len(after) > 0 && len(before) == 0 {
		t.Error("bytes from nothing")
	}
}
