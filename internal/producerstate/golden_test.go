package producerstate

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// goldenSnapshots lists the snapshots of all cases.
func goldenSnapshots(t testing.TB) (out []string) {
	t.Helper()
	err := filepath.WalkDir(golden.Dir(), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, SnapshotSuffix) {
			out = append(out, p)
		}
		return err
	})
	if err != nil || len(out) < 300 {
		t.Fatalf("%d snapshots in %s: %v", len(out), golden.Dir(), err)
	}
	return out
}

// Every snapshot that is whole is encoded again to the same bytes.
func TestGoldenBytes(t *testing.T) {
	damaged := 0
	for _, name := range goldenSnapshots(t) {
		data, err := os.ReadFile(name)
		must(t, err)
		entries, err := DecodeSnapshot(data)
		if err != nil {
			damaged++
			if !strings.Contains(name, "10-crash-snapshot-") || !strings.Contains(name, "dir-before") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !bytes.Equal(EncodeSnapshot(entries), data) {
			t.Errorf("%s: other bytes", name)
		}
	}
	if damaged != 2 {
		t.Errorf("%d damaged snapshots, want the flipped and the truncated one", damaged)
	}
}

// Every snapshot reads as Kafka's own dump says.
func TestGoldenDumps(t *testing.T) {
	files := 0
	for _, c := range golden.Cases(t) {
		const kind = "dump-snapshot.txt"
		if _, ok := c.Expect(kind); !ok || c.Info.SameAs[kind] != "" {
			continue
		}
		for _, part := range strings.Split(c.ExpectText(t, kind), "Dumping ")[1:] {
			files++
			name, want, _ := strings.Cut(part, "\n")
			data, err := os.ReadFile(filepath.Join(c.Path, name))
			must(t, err)
			entries, err := DecodeSnapshot(data)
			must(t, err)
			if got := dump(entries); got != want {
				t.Errorf("%s/%s:\ngot\n%s\nwant\n%s", c.Name, name, got, want)
			}
		}
	}
	if files < 100 {
		t.Errorf("only %d files were compared", files)
	}
}

func dump(entries []Entry) string {
	var b strings.Builder
	for i := range entries {
		e := &entries[i]
		open := "OptionalLong.empty"
		if e.CurrentTxnFirstOffset >= 0 {
			open = fmt.Sprintf("OptionalLong[%d]", e.CurrentTxnFirstOffset)
		}
		fmt.Fprintf(&b, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d ",
			e.ProducerID, e.ProducerEpoch, e.CoordinatorEpoch, open, e.LastTimestamp)
		if s, ok := e.LastBatch(); ok {
			fmt.Fprintf(&b, "firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				s.FirstSequence(), s.LastSequence, s.LastOffset, s.OffsetDelta, s.Timestamp)
		}
		b.WriteByte('\n')
	}
	return strings.ReplaceAll(b.String(), " \n", "\n") // the tool's blank at the end is not kept in the case
}

// logBatches decodes what producer state needs from a log file.
func logBatches(t testing.TB, name string) (out []Batch) {
	t.Helper()
	f, err := vfs.OS().Open(name)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	for s := record.NewScanner(f, 0, info.Size()); s.Next(); {
		h := s.Header()
		if !h.HasProducerID() {
			continue
		}
		b := Batch{
			ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, BaseSequence: h.BaseSequence,
			LastSequence: h.LastSequence(), BaseOffset: h.BaseOffset, LastOffset: h.LastOffset,
			MaxTimestamp: h.MaxTimestamp, Transactional: h.IsTransactional(), Control: h.IsControl(),
		}
		if b.Control {
			entry, err := s.Batch()
			must(t, err)
			b.Marker = marker(t, entry)
		}
		out = append(out, b)
	}
	return out
}

func marker(t testing.TB, entry []byte) *Marker {
	t.Helper()
	it, err := record.NewIterator(entry, record.IterOptions{})
	must(t, err)
	defer it.Close()
	if !it.Next() {
		must(t, it.Err())
		return nil
	}
	r := it.Record()
	return &Marker{
		Abort:            binary.BigEndian.Uint16(r.Key[2:]) == 0,
		CoordinatorEpoch: int32(binary.BigEndian.Uint32(r.Value[2:])),
		Timestamp:        r.Timestamp,
	}
}

// segmentBases lists the base offsets of the logs in a folder.
func segmentBases(t testing.TB, dir string) (out []int64) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	must(t, err)
	for _, l := range logs {
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(l), ".log"), 10, 64)
		must(t, err)
		out = append(out, base)
	}
	slices.Sort(out)
	return out
}

// Replaying the logs from the start gives every snapshot that Kafka left, byte
// for byte: at each segment's base, and at the end.
func TestGoldenReplay(t *testing.T) {
	compared := 0
	for _, c := range golden.Cases(t, "01-", "02-", "03-", "04-", "05-", "06-", "10-crash-intact", "12-") {
		t.Run(c.Name, func(t *testing.T) { compared += replayCase(t, c.TreePath(t, golden.Final)) })
	}
	if compared < 40 {
		t.Errorf("only %d snapshots were compared", compared)
	}
}

func replayCase(t *testing.T, dir string) (compared int) {
	m := New(Options{FS: vfs.OS(), Dir: t.TempDir(), ExpirationMs: math.MaxInt64}, nil)
	check := func(end int64) {
		t.Helper()
		want, err := os.ReadFile(filepath.Join(dir, SnapshotName(end)))
		if os.IsNotExist(err) {
			return
		}
		must(t, err)
		compared++
		m.SetEndOffset(end)
		if got := EncodeSnapshot(m.ActiveProducers()); !bytes.Equal(got, want) {
			entries, _ := DecodeSnapshot(want)
			t.Errorf("snapshot at %d:\ngot\n%s\nwant\n%s", end, dump(m.ActiveProducers()), dump(entries))
		}
	}
	for _, base := range segmentBases(t, dir) {
		check(base)
		for _, b := range logBatches(t, filepath.Join(dir, fmt.Sprintf("%020d.log", base))) {
			_, _, err := m.Replay(b)
			must(t, err)
		}
	}
	check(lastSnapshot(t, dir))
	return compared
}

func lastSnapshot(t *testing.T, dir string) (last int64) {
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if offset, ok := ParseSnapshotName(e.Name()); ok {
			last = offset
		}
	}
	return last
}

// The transactions that a replay completes are those of Kafka's transaction
// indexes, last stable offset included, and afterwards its listing of producers
// agrees.
func TestGoldenTransactions(t *testing.T) {
	for _, c := range golden.Cases(t, "06-transactions", "13-") {
		_, hasListing := c.Expect("producers.tsv")
		if !c.Has(golden.Final) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			dir := c.TreePath(t, golden.Final)
			m := New(Options{FS: vfs.OS(), Dir: dir, ExpirationMs: math.MaxInt64}, nil)
			var got []string
			for _, base := range segmentBases(t, dir) {
				for _, b := range logBatches(t, filepath.Join(dir, fmt.Sprintf("%020d.log", base))) {
					done, lastStable, err := m.Replay(b)
					must(t, err)
					if done != nil && done.Aborted {
						got = append(got, fmt.Sprintf("version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d",
							done.ProducerID, done.FirstOffset, done.LastOffset, lastStable))
					}
				}
			}
			var want []string
			for _, line := range strings.Split(c.ExpectText(t, "dump-txnindex.txt"), "\n") {
				if strings.HasPrefix(line, "version") {
					want = append(want, line)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if hasListing {
				comparePublished(t, c, m)
			}
		})
	}
}

func comparePublished(t *testing.T, c golden.Case, m *Manager) {
	t.Helper()
	want := c.Producers(t)
	if len(want) != m.Len() {
		t.Errorf("%d producers, want %d", m.Len(), len(want))
	}
	for _, p := range want {
		e, ok := m.Get(p.ProducerID)
		last, _ := e.LastBatch()
		if !ok || e.ProducerEpoch != p.Epoch || last.LastSequence != p.LastSequence ||
			e.LastTimestamp != p.LastTimestamp || e.CurrentTxnFirstOffset != p.CurrentTxnStart ||
			e.CoordinatorEpoch != p.CoordinatorEpoch {
			t.Errorf("producer %+v: %+v", p, e)
		}
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
