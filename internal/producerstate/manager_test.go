package producerstate

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tidemark/vfs"
)

const day = 86400000

func newTest(t testing.TB) *Manager {
	t.Helper()
	return New(Options{FS: vfs.OS(), Dir: t.TempDir(), Topic: "orders", Partition: 3, ExpirationMs: day,
		MaxTxnTimeoutMs: 900000}, nil)
}

// data is a batch of n records from a producer.
func data(pid int64, epoch int16, seq int32, n int32, offset int64) Batch {
	return Batch{ProducerID: pid, ProducerEpoch: epoch, BaseSequence: seq, LastSequence: addSequence(seq, n-1),
		BaseOffset: offset, LastOffset: offset + int64(n) - 1, MaxTimestamp: 1000 + offset, SegmentBase: -1, Pos: -1}
}

func addSequence(seq, n int32) int32 {
	return int32((int64(seq) + int64(n)) % (math.MaxInt32 + 1))
}

func txn(b Batch) Batch {
	b.Transactional = true
	return b
}

func end(pid int64, epoch int16, offset int64, abort bool, coordinator int32) Batch {
	return Batch{ProducerID: pid, ProducerEpoch: epoch, BaseSequence: NoSequence, LastSequence: NoSequence,
		BaseOffset: offset, LastOffset: offset, Transactional: true, Control: true, SegmentBase: -1, Pos: -1,
		Marker: &Marker{Abort: abort, CoordinatorEpoch: coordinator, Timestamp: 5000 + offset}}
}

// appendAs does what a log does with one batch.
func appendAs(m *Manager, origin Origin, b Batch) error {
	u := m.Begin(origin)
	if err := u.Add(b); err != nil {
		return err
	}
	m.Apply(u)
	for _, c := range u.Completed() {
		if err := m.CompleteTxn(c); err != nil {
			return err
		}
	}
	m.SetEndOffset(b.LastOffset + 1)
	return nil
}

// What a live broker answered: sequences 5…12 taken, 12 and 8 repeated, 7 too old,
// gaps and overlaps refused.
func TestSequences(t *testing.T) {
	m := newTest(t)
	for i := range int32(8) {
		must(t, appendAs(m, Client, data(9, 0, 5+i, 1, int64(i))))
	}
	for seq, offset := range map[int32]int64{12: 7, 8: 3} {
		s, ok := m.Duplicate(data(9, 0, seq, 1, 8))
		if !ok || s.BaseOffset() != offset || s.Timestamp != 1000+offset {
			t.Errorf("sequence %d: %+v %v", seq, s, ok)
		}
	}
	for name, b := range map[string]Batch{
		"too old": data(9, 0, 7, 1, 8), "gap": data(9, 0, 14, 1, 8), "overlap": data(9, 0, 12, 2, 8),
	} {
		if _, ok := m.Duplicate(b); ok {
			t.Errorf("%s: taken for a duplicate", name)
		}
		err := appendAs(m, Client, b)
		var e *OutOfOrderSequenceError
		if !errors.As(err, &e) || e.LastSequence != 12 || e.Sequence != b.BaseSequence || e.Offset != 8 || e.ProducerID != 9 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := m.Duplicate(data(9, 1, 12, 1, 8)); ok {
		t.Error("a batch of another epoch is no duplicate")
	}
	must(t, appendAs(m, Coordinator, data(9, 0, 50, 1, 8))) // no check of sequences
}

// A batch of four from 2147483646 covers …646, …647, 0, 1; 2 is next.
func TestSequenceWraps(t *testing.T) {
	m := newTest(t)
	must(t, appendAs(m, Client, data(1, 0, math.MaxInt32-1, 4, 0)))
	e, _ := m.Get(1)
	last, _ := e.LastBatch()
	if last.LastSequence != 1 || last.FirstSequence() != math.MaxInt32-1 {
		t.Errorf("%+v from %d", last, last.FirstSequence())
	}
	if _, ok := m.Duplicate(data(1, 0, math.MaxInt32-1, 4, 4)); !ok {
		t.Error("not found again")
	}
	must(t, appendAs(m, Client, data(1, 0, 2, 1, 4)))
	must(t, appendAs(m, Client, data(2, 0, math.MaxInt32, 1, 5)))
	must(t, appendAs(m, Client, data(2, 0, 0, 1, 6)))
}

func TestErrorTexts(t *testing.T) {
	m := newTest(t)
	must(t, appendAs(m, Client, data(7, 4, 0, 3, 0)))
	must(t, appendAs(m, Client, txn(data(8, 4, 0, 1, 3))))
	must(t, appendAs(m, Coordinator, end(8, 4, 4, true, 6)))
	must(t, appendAs(m, Client, txn(data(8, 4, 1, 1, 5))))
	v2 := end(8, 4, 9, true, 6)
	v2.Marker.TransactionVersion = 2
	for _, c := range []struct {
		origin Origin
		b      Batch
		want   string
	}{
		{Client, data(7, 4, 5, 1, 9), "Out of order sequence number for producer 7 at offset 9 in partition orders-3: " +
			"5 (incoming seq. number), 2 (current end sequence number)"},
		{Client, data(7, 5, 1, 1, 9), "Invalid sequence number for new epoch of producer 7at offset 9 " +
			"in partition orders-3: 5 (request epoch), 1 (seq. number), 4 (current producer epoch)"},
		{Client, data(7, 3, 3, 1, 9),
			"Epoch of producer 7 at offset 9 in orders-3 is 3, which is < the last seen epoch 4 (TV-1)"},
		{Coordinator, end(7, 3, 9, false, 0),
			"Epoch of producer 7 at offset 9 in orders-3 is 3, which is < the last seen epoch 4 (TV0)"},
		{Coordinator, v2, "Epoch of producer 8 at offset 9 in orders-3 is 4, which is <= the last seen epoch 4 (TV2)"},
		{Coordinator, end(8, 4, 9, false, 5),
			"Invalid coordinator epoch for producerId 8 at offset 9 in partition orders-3: " +
				"5 (zombie), 6 (current)"},
		{Client, data(8, 4, 2, 1, 9), "Expected transactional write from producer 8 at offset " +
			"(offset=9, segment=[-1:-1]) in partition orders-3"},
	} {
		if err := appendAs(m, c.origin, c.b); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	must(t, appendAs(m, Replication, data(7, 3, 77, 1, 9)))
	must(t, appendAs(m, Replication, end(8, 4, 10, false, 5)))
}

// A marker of transactions v2 has a larger epoch, or repeats one already written.
func TestMarkersOfV2(t *testing.T) {
	m := newTest(t)
	mark := func(epoch int16, offset int64) Batch {
		b := end(1, epoch, offset, false, 0)
		b.Marker.TransactionVersion = 2
		return b
	}
	must(t, appendAs(m, Client, txn(data(1, 0, 0, 1, 0))))
	must(t, appendAs(m, Coordinator, mark(1, 1)))
	must(t, appendAs(m, Coordinator, mark(1, 2)))
	if _, open := m.FirstUndecidedOffset(); open {
		t.Error("still open")
	}
	must(t, appendAs(m, Client, txn(data(1, 1, 0, 1, 3))))
	var e *InvalidProducerEpochError
	if err := appendAs(m, Coordinator, mark(1, 4)); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

// The batches of one append are checked one after the other, and nothing changes
// unless it is applied.
func TestUpdateIsAtomic(t *testing.T) {
	m := newTest(t)
	must(t, appendAs(m, Client, data(1, 0, 0, 2, 0)))
	u := m.Begin(Client)
	must(t, u.Add(data(1, 0, 2, 1, 2)))
	must(t, u.Add(data(1, 0, 3, 1, 3)))
	if err := u.Add(data(1, 0, 3, 1, 4)); err == nil {
		t.Error("taken twice")
	}
	e, _ := m.Get(1)
	if last, _ := e.LastBatch(); last.LastSequence != 1 || len(e.Batches()) != 1 {
		t.Errorf("%+v", e)
	}
	u = m.Begin(Client)
	must(t, u.Add(data(1, 0, 2, 1, 2)))
	must(t, u.Add(data(1, 1, 0, 1, 3)))
	m.Apply(u)
	e, _ = m.Get(1)
	if e.ProducerEpoch != 1 || len(e.Batches()) != 1 {
		t.Errorf("%+v: a new epoch forgets the batches before", e)
	}
}

// Offsets 0 A 1 B 2 plain 3 A 4 B 5 abort-A 6 commit-B, of a live broker.
func TestTransactions(t *testing.T) {
	m := newTest(t)
	const a, b = 100, 200
	for _, batch := range []Batch{
		txn(data(a, 0, 0, 1, 0)), txn(data(b, 0, 0, 1, 1)), txn(data(a, 0, 1, 1, 3)), txn(data(b, 0, 1, 1, 4)),
	} {
		must(t, appendAs(m, Client, batch))
	}
	unstable := func(want int64) {
		t.Helper()
		if got, ok := m.FirstUnstableOffset(); got != want || ok != (want != NoOffset) {
			t.Errorf("first unstable offset %d %v, want %d", got, ok, want)
		}
	}
	unstable(0)
	u := m.Begin(Coordinator)
	must(t, u.Add(end(a, 0, 5, true, 0)))
	m.Apply(u)
	want := CompletedTxn{ProducerID: a, FirstOffset: 0, LastOffset: 5, Aborted: true}
	if got := u.Completed(); !slices.Equal(got, []CompletedTxn{want}) {
		t.Fatalf("%+v", got)
	}
	if got := m.LastStableOffset(want); got != 1 {
		t.Errorf("last stable offset %d", got)
	}
	must(t, m.CompleteTxn(want))
	unstable(0) // decided, not replicated
	m.UpdateHighWatermark(5)
	unstable(0)
	m.UpdateHighWatermark(6)
	unstable(1)
	must(t, appendAs(m, Coordinator, end(b, 0, 6, false, 0)))
	unstable(1)
	m.UpdateHighWatermark(7)
	unstable(NoOffset)
	var unknown *UnknownTxnError
	if err := m.CompleteTxn(want); !errors.As(err, &unknown) || unknown.Txn != want {
		t.Errorf("%v", err)
	}
	// A marker without a transaction completes nothing, an emptied one changes nothing.
	u = m.Begin(Coordinator)
	must(t, u.Add(end(a, 0, 7, true, 0)))
	emptied := end(a, 0, 8, true, 0)
	emptied.Marker = nil
	must(t, u.Add(emptied))
	if len(u.Completed()) != 0 {
		t.Errorf("%+v", u.Completed())
	}
}

func TestHasLateTxn(t *testing.T) {
	m := newTest(t)
	must(t, appendAs(m, Client, txn(data(1, 0, 0, 1, 0)))) // at 1000 ms
	const limit = 1000 + 900000 + lateTxnBufferMs
	if m.HasLateTxn(limit) || !m.HasLateTxn(limit+1) {
		t.Error("wrong limit")
	}
}

func TestExpire(t *testing.T) {
	m := newTest(t)
	must(t, appendAs(m, Client, data(1, 0, 0, 1, 0)))      // 1000 ms
	must(t, appendAs(m, Client, data(2, 0, 0, 1, 5)))      // 1005 ms
	must(t, appendAs(m, Client, txn(data(3, 0, 0, 1, 6)))) // open
	if n := m.Expire(day + 1004); n != 1 || m.Len() != 2 {
		t.Errorf("%d removed", n)
	}
	if n := m.Expire(day + 1e6); n != 1 || m.Len() != 1 {
		t.Errorf("%d removed", n)
	}
	must(t, appendAs(m, Client, data(1, 0, 44, 1, 9))) // unknown again: starts anywhere
}

func snapshotFiles(t *testing.T, m *Manager) (out []int64) {
	t.Helper()
	entries, err := os.ReadDir(m.o.Dir)
	must(t, err)
	for _, e := range entries {
		if offset, ok := ParseSnapshotName(e.Name()); ok {
			out = append(out, offset)
		}
	}
	if !slices.Equal(out, m.Snapshots()) {
		t.Errorf("files %v, known %v", out, m.Snapshots())
	}
	return out
}

// snapshots writes one after each of n appends, at offsets 1…n.
func withSnapshots(t *testing.T, n int) *Manager {
	t.Helper()
	m := newTest(t)
	for i := range n {
		must(t, appendAs(m, Client, data(1, 0, int32(i), 1, int64(i))))
		if offset, taken, err := m.Snapshot(i%2 == 0); !taken || offset != int64(i+1) || err != nil {
			t.Fatal(offset, taken, err)
		}
		if _, taken, err := m.Snapshot(true); taken || err != nil {
			t.Fatal("taken twice", err)
		}
		must(t, SyncSnapshot(m.o.FS, m.o.Dir, int64(i+1)))
	}
	return m
}

func reopen(m *Manager) *Manager { return New(m.o, m.Snapshots()) }

func TestReload(t *testing.T) {
	m := reopen(withSnapshots(t, 6))
	must(t, m.TruncateAndReload(2, 5, 0))
	if got := snapshotFiles(t, m); !slices.Equal(got, []int64{3, 4, 5}) {
		t.Errorf("left %v", got)
	}
	e, ok := m.Get(1)
	last, _ := e.LastBatch()
	if m.EndOffset() != 5 || !ok || last.LastSequence != 4 || len(e.Batches()) != 1 {
		t.Errorf("end %d, %+v", m.EndOffset(), e)
	}
	if _, taken, err := m.Snapshot(true); taken || err != nil {
		t.Error("a snapshot of what is in one already", err)
	}
	must(t, appendAs(m, Client, data(1, 0, 5, 1, 5)))
	must(t, m.TruncateAndReload(2, 6, 0)) // already there
	if m.EndOffset() != 6 {
		t.Errorf("end %d", m.EndOffset())
	}
	m = reopen(m)
	must(t, m.TruncateAndReload(2, 5, 10*day)) // all producers expired
	if m.Len() != 0 || m.EndOffset() != 5 {
		t.Errorf("%d producers, end %d", m.Len(), m.EndOffset())
	}
	must(t, m.TruncateFully(9))
	if len(snapshotFiles(t, m)) != 0 || m.EndOffset() != 9 || !m.IsEmpty() {
		t.Errorf("end %d", m.EndOffset())
	}
}

// Damaged snapshots are deleted, and the newest good one serves.
func TestReloadSkipsDamaged(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"flipped":   func(p string) error { return flip(p, 20) },
		"truncated": func(p string) error { return os.Truncate(p, 30) },
		"empty":     func(p string) error { return os.Truncate(p, 0) },
		"version":   func(p string) error { return flip(p, 1) },
		"count":     func(p string) error { return flip(p, 6) },
		"missing":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			m := reopen(withSnapshots(t, 4))
			must(t, damage(m.path(4)))
			must(t, damage(m.path(3)))
			must(t, m.TruncateAndReload(0, 10, 0))
			if got := snapshotFiles(t, m); !slices.Equal(got, []int64{1, 2}) || m.EndOffset() != 2 {
				t.Errorf("left %v, end %d", got, m.EndOffset())
			}
		})
	}
}

func flip(path string, at int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[at] ^= 0x10
	return os.WriteFile(path, b, 0o644)
}

func TestReloadOpenTransaction(t *testing.T) {
	m := newTest(t)
	must(t, appendAs(m, Client, txn(data(1, 0, 0, 1, 7))))
	_, _, err := m.Snapshot(true)
	must(t, err)
	m = reopen(m)
	must(t, m.TruncateAndReload(0, 20, 100*day))
	if first, ok := m.FirstUnstableOffset(); first != 7 || !ok {
		t.Errorf("%d %v", first, ok)
	}
}

func TestSnapshotRetention(t *testing.T) {
	for _, c := range []struct {
		bases, left []int64
	}{
		{[]int64{0, 2, 4}, []int64{2, 4, 6}}, // the newest, of a clean stop, stays
		{[]int64{0, 2, 6}, []int64{2, 6}},
		{[]int64{0}, []int64{6}},
		{nil, []int64{6}},
		{[]int64{9}, nil},
	} {
		m := reopen(withSnapshots(t, 6))
		must(t, m.RemoveStraySnapshots(c.bases))
		if got := snapshotFiles(t, m); !slices.Equal(got, c.left) {
			t.Errorf("segments %v: left %v, want %v", c.bases, got, c.left)
		}
	}
	m := withSnapshots(t, 4)
	must(t, m.DeleteSnapshotsBefore(3))
	path := m.TakeSnapshot(3)
	name, err := MarkDeleted(m.o.FS, path)
	if err != nil || filepath.Base(name) != "00000000000000000003.snapshot.deleted" {
		t.Error(path, name, err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
	if again := m.TakeSnapshot(3); again != "" {
		t.Error(again)
	}
	if gone, err := MarkDeleted(m.o.FS, path); gone != "" || err != nil {
		t.Error(gone, err)
	}
	if got := snapshotFiles(t, m); !slices.Equal(got, []int64{4}) {
		t.Errorf("left %v", got)
	}
	m.SetLogStartOffset(30)
	if m.EndOffset() != 30 {
		t.Errorf("end %d", m.EndOffset())
	}
}

func TestSnapshotNames(t *testing.T) {
	for name, want := range map[string]int64{
		"00000000000000000007.snapshot": 7, "09223372036854775807.snapshot": math.MaxInt64,
		"7.snapshot": -1, "00000000000000000007.snapshot.deleted": -1, "-0000000000000000007.snapshot": -1,
		".snapshot": -1, "99999999999999999999.snapshot": -1, "00000000000000000007.log": -1,
	} {
		if got, ok := ParseSnapshotName(name); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d %v", name, got, ok)
		}
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	for i, name := range goldenSnapshots(f) {
		if i%40 == 0 {
			b, err := os.ReadFile(name)
			must(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := DecodeSnapshot(b)
		var corrupt *CorruptSnapshotError
		if err != nil && !errors.As(err, &corrupt) {
			t.Fatal(err)
		}
		for i := range entries {
			s, _ := entries[i].LastBatch()
			_ = s.FirstSequence() // of damaged numbers it is any; it must not panic
		}
		again, err := DecodeSnapshot(EncodeSnapshot(entries))
		if err != nil || len(again) != len(entries) {
			t.Fatal(err)
		}
	})
}

// The rulers: sizes, and a snapshot of a live broker.
func TestRuler(t *testing.T) {
	if got := len(EncodeSnapshot(make([]Entry, 3))); got != snapshotHeaderSize+3*snapshotEntrySize {
		t.Errorf("%d bytes", got)
	}
	e := emptyEntry(0x15b3)
	e.setEpoch(3)
	e.addBatch(StoredBatch{LastSequence: 0, LastOffset: 10, OffsetDelta: 0})
	e.LastTimestamp = 0x1a22a7ae652
	const want = "00019220bd620000000100000000000015b3000300000000" +
		"000000000000000a00000000000001a22a7ae652ffffffffffffffffffffffff"
	if got := EncodeSnapshot([]Entry{e}); hexOf(got) != want {
		t.Errorf("%x", got)
	}
	if got := EncodeSnapshot(nil); hexOf(got) != "000148674bc700000000" {
		t.Errorf("%x", got)
	}
}
