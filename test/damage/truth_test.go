package damage

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/test/ledger"
)

// batch is one batch of the log as it was before any damage.
type batch struct {
	header  record.Header
	bytes   []byte
	records []ledger.Record
}

// wholeLog reads the batches of an undamaged folder, in order.
func wholeLog(t *testing.T, c golden.Case) []batch {
	t.Helper()
	dir := c.TreePath(t, golden.Before)
	var out []batch
	for _, name := range logNames(t, dir) {
		rest, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for len(rest) > 0 {
			b := batch{}
			if b.header, b.bytes, rest, err = record.NextEntry(rest); err != nil || !record.ValidCRC(b.bytes) {
				t.Fatalf("%s: %s is damaged: %v", c.Name, name, err)
			}
			b.records = decode(t, b.bytes)
			out = append(out, b)
		}
	}
	return out
}

func decode(t *testing.T, entry []byte) []ledger.Record {
	t.Helper()
	it, err := record.NewIterator(entry, record.IterOptions{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	h := it.Header()
	var out []ledger.Record
	for it.Next() {
		r := it.Record()
		out = append(out, ledger.Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: bytes.Clone(r.Key),
			Value: bytes.Clone(r.Value), Epoch: h.LeaderEpoch, Control: h.IsControl()})
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}

// logNames are the names of a folder's .log files, in order.
func logNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") {
			out = append(out, e.Name())
		}
	}
	return out
}

// truth is what a server that finds every intact batch of a folder answers.
type truth struct {
	book      *ledger.Partition // the records of intact batches; Aborted is set
	stable    int64             // last stable offset by the intact batches
	recalled  int64             // last stable offset of who recalls the damaged batches, from a snapshot
	committed map[int64]bool    // offsets that read_committed delivers
	aborted   map[int64]bool    // offsets of aborted transactions, in lost batches as well
}

// findTruth looks which batches of the undamaged log are, byte for byte, still in the folder.
func findTruth(t *testing.T, dir string, whole []batch) *truth {
	t.Helper()
	content, swapped := effective(t, dir)
	tr := &truth{book: &ledger.Partition{}}
	var left, ended []batch // intact; those and the damaged ones
	for _, b := range whole {
		switch {
		case bytes.Contains(content, b.bytes):
			left, ended = append(left, b), append(ended, b)
		case !swapped(b.header.BaseOffset):
			ended = append(ended, b)
		}
	}
	first := left[0].header.BaseOffset
	tr.book.Start = first
	for _, b := range left {
		for _, r := range b.records {
			tr.book.Add(r)
		}
		tr.book.End = b.header.NextOffset()
	}
	tr.committed, _, tr.stable = decide(left)
	_, tr.aborted, tr.recalled = decide(ended)
	for i, r := range tr.book.Records {
		tr.book.Records[i].Aborted = tr.aborted[r.Offset]
	}
	return tr
}

// effective is the content of the folder's logs, one after the other, with a completed replacement (.swap) in the place
// of what it replaces. A .swap at or behind a .cleaned file is not complete (storage of Kafka 4.3.1, loading a log).
// swapped tells whether an offset lies in the range of such a replacement.
func effective(t *testing.T, dir string) (all []byte, swapped func(offset int64) bool) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	cleaned, content := int64(1)<<62, make(map[int64][]byte)
	var swaps []int64
	for _, e := range entries {
		base, err := strconv.ParseInt(strings.SplitN(e.Name(), ".", 2)[0], 10, 64)
		if err != nil {
			continue
		}
		switch _, kind, _ := strings.Cut(e.Name(), "."); {
		case strings.HasSuffix(kind, ".cleaned"):
			cleaned = min(cleaned, base)
		case kind == "log.swap":
			swaps = append(swaps, base)
		case kind == "log":
			content[base] = readFile(t, filepath.Join(dir, e.Name()))
		}
	}
	var ranges [][2]int64
	for _, base := range swaps {
		if base < cleaned {
			ranges = append(ranges, swapIn(t, content, base, readFile(t, filepath.Join(dir, logName(base)+".swap"))))
		}
	}
	bases := make([]int64, 0, len(content))
	for base := range content {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	for _, base := range bases {
		all = append(all, content[base]...)
	}
	return all, func(offset int64) bool {
		return slices.ContainsFunc(ranges, func(r [2]int64) bool { return offset >= r[0] && offset < r[1] })
	}
}

// swapIn replaces the logs in the range of a replacement, and returns the range of offsets up to the next log.
func swapIn(t *testing.T, content map[int64][]byte, base int64, replacement []byte) [2]int64 {
	t.Helper()
	end, rest := base, replacement
	for len(rest) > 0 {
		h, _, next, err := record.NextEntry(rest)
		if err != nil {
			t.Fatal(err)
		}
		end, rest = h.NextOffset(), next
	}
	for old := range content {
		if old >= base && old < end {
			delete(content, old)
		}
	}
	content[base] = replacement
	next := int64(1) << 62
	for other := range content {
		if other > base {
			next = min(next, other)
		}
	}
	return [2]int64{base, next}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func logName(base int64) string {
	digits := strconv.FormatInt(base, 10)
	return strings.Repeat("0", 20-len(digits)) + digits + ".log"
}

// decide follows the transactions of a log: what is committed below the last stable offset, what was aborted, and that
// offset.
func decide(log []batch) (committed, aborted map[int64]bool, stable int64) {
	committed, aborted = make(map[int64]bool), make(map[int64]bool)
	open := make(map[int64][]int64) // offsets of open transactions by producer
	for _, b := range log {
		h := b.header
		stable = h.NextOffset()
		switch {
		case h.IsControl():
			into := committed
			if isAbort(b) {
				into = aborted
			}
			for _, offset := range open[h.ProducerID] {
				into[offset] = true
			}
			delete(open, h.ProducerID)
		case h.IsTransactional():
			for _, r := range b.records {
				open[h.ProducerID] = append(open[h.ProducerID], r.Offset)
			}
		default:
			for _, r := range b.records {
				committed[r.Offset] = true
			}
		}
	}
	for _, offsets := range open {
		stable = min(stable, offsets[0])
	}
	for offset := range committed {
		if offset >= stable {
			delete(committed, offset)
		}
	}
	return committed, aborted, stable
}

// isAbort tells what a marker decided: its key is version and type, 0 for abort.
func isAbort(b batch) bool {
	return len(b.records) == 1 && cmp.Compare(string(b.records[0].Key), "\x00\x00\x00\x00") == 0
}
