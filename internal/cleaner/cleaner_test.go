package cleaner

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

func pass(w *world) bool {
	w.t.Helper()
	return w.c.Pass(context.Background())
}

func TestLastRecordOfEachKeyStays(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")}, kv{"b", value("1")}, kv{"c", value("1")})
	w.mustAppend(kv{"a", value("2")}, kv{"b", nil})
	w.mustAppend(kv{"c", value("2")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"a", value("3")})
	if !pass(w) {
		t.Fatal("nothing was compacted")
	}
	if got, want := show(rows(t, w.log)), "3:a=2 4:b! 5:c=2 6:a=3"; got != want {
		t.Errorf("records: got %s, want %s", got, want)
	}
	if w.dirty() != 6 {
		t.Errorf("first dirty offset: got %d, want 6", w.dirty())
	}
	all := batches(t, w.log)
	if h := all[0]; !h.HasDeleteHorizon() || h.BaseTimestamp() != w.nowMs+86400000 || h.LastOffsetDelta() != 1 {
		t.Errorf("the batch with the tombstone: horizon %v at %d, last offset delta %d",
			h.HasDeleteHorizon(), h.BaseTimestamp(), h.LastOffsetDelta())
	}
	if pass(w) {
		t.Error("a log without anything dirty was compacted")
	}

	w.nowMs += 86400001
	must(t, w.log.Roll())
	if !pass(w) {
		t.Fatal("nothing was compacted the second time")
	}
	if got, want := show(rows(t, w.log)), "5:c=2 6:a=3"; got != want {
		t.Errorf("records after the horizon: got %s, want %s", got, want)
	}
	if w.log.StartOffset() != 0 {
		t.Errorf("log start: got %d, want 0", w.log.StartOffset())
	}
}

func TestAbortedDataGoesAndMarkersFollow(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	txn := func(rows ...kv) {
		_, err := w.append(w.batchOptions(7, record.None, true), rows...)
		must(t, err)
	}
	txn(kv{"a", value("aborted")}) // 0
	must(t, w.end(7, false))       // 1
	txn(kv{"b", value("1")})       // 2
	must(t, w.end(7, true))        // 3
	txn(kv{"b", value("2")})       // 4
	must(t, w.end(7, true))        // 5
	// The round that takes a transaction's data leaves its marker as it is; the next one gives it a delete horizon.
	again := func(want string) {
		t.Helper()
		must(t, w.log.Roll())
		w.mustAppend(kv{"z", value("1")})
		if !pass(w) {
			t.Fatal("nothing was compacted")
		}
		got := slices.DeleteFunc(rows(t, w.log), func(r row) bool { return r.key == "z" })
		if show(got) != want {
			t.Errorf("records: got %s, want %s", show(got), want)
		}
	}
	again("1:marker 3:marker 4:b=2 5:marker")
	w.nowMs += 86400001
	again("1:marker 3:marker 4:b=2 5:marker")
	w.nowMs += 86400001
	again("4:b=2 5:marker")
	must(t, w.reopen(true))
	txn(kv{"b", value("3")}) // the sequence goes on
	must(t, w.end(7, true))
}

func TestOpenTransactionHoldsBack(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"a", value("2")})
	_, err := w.append(w.batchOptions(7, record.None, true), kv{"a", value("open")})
	must(t, err)
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	if !pass(w) || w.dirty() != 1 {
		t.Errorf("first dirty offset: got %d, want 1, the base of the segment with the open transaction", w.dirty())
	}
	must(t, w.end(7, true))
	if !pass(w) {
		t.Fatal("nothing was compacted when the transaction was over")
	}
	if got, want := show(rows(t, w.log)), "2:a=open 3:z=1 4:marker"; got != want {
		t.Errorf("records: got %s, want %s", got, want)
	}
}

func TestLastBatchOfProducerStaysAsHeader(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	for range 3 {
		_, err := w.append(w.batchOptions(5, record.None, false), kv{"a", value("x")}, kv{"b", value("x")})
		must(t, err)
	}
	w.mustAppend(kv{"a", value("last")}, kv{"b", value("last")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	pass(w)
	all := batches(t, w.log)
	if len(all) != 3 || all[0].Count() != 0 || all[0].ProducerID() != 5 || all[0].LastOffset() != 5 ||
		len(all[0]) != record.HeaderSize {
		t.Fatalf("batches: got %d, the first %v", len(all), all[0].Header())
	}
	must(t, w.reopen(false))
	if e, ok := w.log.Producer(5); !ok {
		t.Error("the producer is not known after a restart")
	} else if b, _ := e.LastBatch(); b.LastSequence != 5 {
		t.Errorf("last sequence: got %d, want 5", b.LastSequence)
	}
}

func TestDamagedLogIsGivenUpWithTheReason(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")})
	w.mustAppend(kv{"a", value("2")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	f, err := w.mem.OpenFile(worldDir+"/00000000000000000000.log", 2, 0)
	must(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], 70)
	must(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], 70)
	must(t, err)
	must(t, f.Close())
	before := w.names()
	if pass(w) {
		t.Fatal("a damaged log was compacted")
	}
	broken := w.c.Uncleanable()
	if len(broken) != 1 || broken[0].Name != worldName || !strings.Contains(broken[0].Reason.Error(), "wrong checksum") {
		t.Errorf("uncleanable: got %v", broken)
	}
	if !strings.Contains(w.out.String(), "wrong checksum") {
		t.Errorf("the reason was not logged: %s", w.out.String())
	}
	if got := w.names(); !equalStrings(got, before) {
		t.Errorf("files: got %v, want %v", got, before)
	}
	if pass(w) {
		t.Error("it was tried again")
	}
	if _, err := w.log.AppendAsLeader(bytes.Clone(oneRecord("a", "3")), commitlog.AppendOptions{}); err != nil {
		t.Errorf("append: %v", err)
	}
}

func equalStrings(a, b []string) bool { return strings.Join(a, "|") == strings.Join(b, "|") }

func oneRecord(key, value string) []byte {
	b := record.NewBuilder(record.DefaultBuilderOptions())
	_ = b.Append(1_700_000_000_000, []byte(key), []byte(value), nil)
	return b.Bytes()
}

func TestSegmentsAreGrouped(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	for i := range 40 {
		w.mustAppend(kv{"k", value("%0100d", i)})
	}
	must(t, w.log.Roll())
	before, err := w.log.Segments()
	must(t, err)
	pass(w)
	after, err := w.log.Segments()
	must(t, err)
	if len(before) < 5 || len(after) != len(before) { // full ones do not go together, whatever stays of them
		t.Fatalf("segments: %d before, %d after", len(before), len(after))
	}
	w.mustAppend(kv{"k", value("more")})
	must(t, w.log.Roll())
	pass(w)
	if after, err = w.log.Segments(); err != nil || len(after) != 2 {
		t.Errorf("segments after the second round: got %d, %v, want 2", len(after), err)
	}
	if got, want := show(rows(t, w.log)), "40:k=more"; got != want {
		t.Errorf("records: got %s, want %s", got, want)
	}
	w.tick()
	for _, name := range w.names() {
		if strings.HasSuffix(name, ".deleted") || strings.HasSuffix(name, ".swap") || strings.HasSuffix(name, ".cleaned") {
			t.Errorf("%s is left", name)
		}
	}
	w.mustAppend(kv{"k", value("active")})
	for _, clean := range []bool{true, false} {
		must(t, w.reopen(clean))
		if got := show(rows(t, w.log)); got != "40:k=more 41:k=active" {
			t.Errorf("records after a restart: got %s", got)
		}
	}
	if w.out.Len() > 0 {
		t.Errorf("warnings: %s", w.out.String())
	}
}

func TestFullMapEndsTheRound(t *testing.T) {
	w := newWorld(t, smallLog())
	must(t, w.open())
	cfg := DefaultConfig()
	cfg.DedupeBufferBytes, cfg.LoadFactor = 5*slotBytes, 1
	w.c.Configure(cfg)
	for i := range 20 {
		w.mustAppend(kv{"old", value("%d", i)}, kv{string(rune('a' + i)), value("%d", i)})
	}
	must(t, w.log.Roll())
	rounds := 0
	for ; pass(w); rounds++ {
		if rounds > 30 {
			t.Fatal("no end")
		}
	}
	if rounds < 4 {
		t.Errorf("rounds: got %d, want 4 at least", rounds)
	}
	got := rows(t, w.log)
	if w.dirty() != 40 || len(got) < 21 || show(got[len(got)-2:]) != "38:old=19 39:t=19" {
		t.Errorf("first dirty offset %d, records %s", w.dirty(), show(got))
	}
}

func TestLags(t *testing.T) {
	cfg := smallLog()
	cfg.MinCompactionLagMs = 1000
	w := newWorld(t, cfg)
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")}, kv{"a", value("2")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	if pass(w) {
		t.Error("compacted before min.compaction.lag.ms")
	}
	w.nowMs += 1002
	if !pass(w) {
		t.Error("not compacted after min.compaction.lag.ms")
	}

	cfg = smallLog()
	cfg.MinCleanableDirtyRatio, cfg.MaxCompactionLagMs = 1, 1000
	w = newWorld(t, cfg)
	must(t, w.open())
	w.mustAppend(kv{"a", value("1")}, kv{"a", value("2")})
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	if pass(w) {
		t.Error("compacted below the dirty ratio")
	}
	w.nowMs += 1002
	if !pass(w) {
		t.Error("not compacted after max.compaction.lag.ms")
	}
	if got, want := show(rows(t, w.log)), "1:a=2 2:z=1"; got != want {
		t.Errorf("records: got %s, want %s", got, want)
	}
	// A change of the configs takes effect with the next pass.
	cfg.MaxCompactionLagMs = 1 << 62
	w.log.UpdateConfig(cfg)
	w.mustAppend(kv{"a", value("3")})
	must(t, w.log.Roll())
	if pass(w) {
		t.Error("compacted below the dirty ratio")
	}
	cfg.MinCleanableDirtyRatio = 0.01
	w.log.UpdateConfig(cfg)
	if !pass(w) {
		t.Error("not compacted above the new dirty ratio")
	}
}

// TestOverflowedSegmentIsSplit has a segment as old brokers made them, with offsets that its base cannot tell in 31
// bits.
//
// Kafka: it is split first, and then compacted.
func TestOverflowedSegmentIsSplit(t *testing.T) {
	w := newWorld(t, smallLog())
	far := int64(1<<31 + 10)
	var data []byte
	for _, base := range []int64{0, far, far + 1} {
		o := record.DefaultBuilderOptions()
		o.BaseOffset, o.LeaderEpoch = base, 0
		b := record.NewBuilder(o)
		must(t, b.Append(w.nowMs, value("key %d", min(base, far)), value("%d", base), nil))
		data = append(data, b.Bytes()...)
	}
	must(t, vfs.WriteFileAtomic(w.mem, worldDir+"/"+segment.Name(0, segment.LogSuffix), data))
	must(t, w.open())
	must(t, w.log.Roll())
	w.mustAppend(kv{"z", value("1")})
	if !pass(w) {
		t.Fatalf("nothing was compacted: %v", w.c.Uncleanable())
	}
	want := "0:key 0=0 2147483659:key 2147483658=2147483659 2147483660:z=1"
	for _, clean := range []bool{true, false} {
		if got := show(rows(t, w.log)); got != want {
			t.Errorf("records: got %s, want %s", got, want)
		}
		segments, err := w.log.Segments()
		must(t, err)
		if len(segments) != 3 || segments[1].BaseOffset != far+1 {
			t.Errorf("segments: got %+v", segments)
		}
		must(t, w.reopen(clean))
	}
}
