package commitlog

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// The tests in this file are faults that people have reported about log brokers.

const t0 = 1_700_000_000_000

// threeSegments has segments 0, 3, 6 of single-record batches at t0+0, 10, 20, +1000, 1010, 1020, +2000, 2010, 2020.
func threeSegments(t *testing.T) *world {
	t.Helper()
	cfg := smallConfig()
	cfg.SegmentMs, cfg.IndexIntervalBytes, cfg.SegmentBytes = 100, 0, 1<<20
	w := newWorld(cfg)
	must(t, w.open())
	for i := range int64(9) {
		_, err := w.append(record.None, -1, []row{{ts: t0 + i/3*1000 + i%3*10, value: "v"}})
		must(t, err)
	}
	if bases := w.bases; len(bases) != 9 || len(w.log.view.Load().segments) != 3 {
		t.Fatalf("batches %v in %d segments", bases, len(w.log.view.Load().segments))
	}
	return w
}

func timeEntry(ts int64, rel int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(ts)), uint32(rel))
}

// TestDamagedTimeIndexHidesNothing has a time index that was never trimmed, goes back, or is empty. Kafka's look-ups
// pass over the segment then.
func TestDamagedTimeIndexHidesNothing(t *testing.T) {
	for name, content := range map[string][]byte{
		"never trimmed":  make([]byte, 10485756),
		"goes back":      append(timeEntry(t0+10, 1), timeEntry(5, 2)...),
		"empty":          {},
		"torn":           timeEntry(t0+10, 1)[:7],
		"points outside": timeEntry(5, -7),
	} {
		for _, clean := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				w := threeSegments(t)
				must(t, w.close())
				w.clean = clean
				must(t, vfs.WriteFileAtomic(w.mem, worldDir+"/"+segment.Name(0, ".timeindex"), content))
				must(t, w.open())
				must(t, w.check())
				must(t, w.log.Abandon())
			})
		}
	}
}

// TestStartBehindTheEnd has a log start offset in the checkpoint that no segment reaches.
func TestStartBehindTheEnd(t *testing.T) {
	w := threeSegments(t)
	must(t, w.close())
	before := files(t, w.mem, worldDir)
	w.start = 100
	must(t, w.open())
	if w.log.StartOffset() != 100 || w.log.EndOffset() != 100 {
		t.Errorf("start %d, end %d", w.log.StartOffset(), w.log.EndOffset())
	}
	checkLost(t, before, files(t, w.mem, worldDir))
	info, err := w.append(record.None, -1, []row{{ts: t0, value: "v"}})
	if err != nil || info.BaseOffset != 100 {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, w.log.Abandon())
}

// TestRecoveryPointBehindTheEnd has a recovery point that the log does not reach.
func TestRecoveryPointBehindTheEnd(t *testing.T) {
	w := threeSegments(t)
	w.kill()
	w.point = 500
	must(t, w.open())
	if w.log.EndOffset() != 9 || w.log.RecoveryPoint() != 9 {
		t.Errorf("end %d, recovery point %d", w.log.EndOffset(), w.log.RecoveryPoint())
	}
	must(t, w.check())
	must(t, w.log.Abandon())
}

// TestOffsetsThatGoBack has a log whose last batch repeats offsets, as a power loss may leave it.
func TestOffsetsThatGoBack(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	_, err := w.append(record.None, -1, []row{{ts: 1, value: "a"}, {ts: 2, value: "b"}})
	must(t, err)
	w.kill()
	name := worldDir + "/" + segment.Name(0, ".log")
	data, err := vfs.ReadFile(w.mem, name)
	must(t, err)
	twice := append(data, data...)
	record.Batch(twice[len(data):]).SetBaseOffset(1)
	must(t, vfs.WriteFileAtomic(w.mem, name, twice))
	must(t, w.open())
	if w.log.EndOffset() != 2 {
		t.Errorf("end %d", w.log.EndOffset())
	}
	must(t, w.check())
	checkLost(t, map[string]string{segment.Name(0, ".log"): string(twice)}, files(t, w.mem, worldDir))
	must(t, w.log.Abandon())
}

// TestFollowerLeapsAhead appends as a follower of a compacted log does: the next batch may be far away.
func TestFollowerLeapsAhead(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	send := func(base int64) error {
		b := record.Batch(newBatch(record.None, -1, 0, []row{{ts: t0, value: "v"}}))
		b.SetBaseOffset(base)
		b.SetLeaderEpoch(2)
		_, err := w.log.AppendAsFollower(b)
		return err
	}
	must(t, send(0))
	must(t, send(math.MaxInt32))
	must(t, send(3_000_000_000))
	var bases []int64
	for _, s := range w.log.view.Load().segments {
		bases = append(bases, s.BaseOffset())
	}
	if !slices.Equal(bases, []int64{0, 3_000_000_000}) {
		t.Errorf("segments %v", bases)
	}
	if err := send(5); !errors.Is(err, ErrUnexpectedOffset) {
		t.Errorf("got %v", err)
	}
	s, err := w.log.Read(7, ReadOptions{MaxBytes: 1, MinOneBatch: true, UpTo: w.log.EndOffset()})
	must(t, err)
	if data, err := s.Bytes(); err != nil || record.Batch(data).BaseOffset() != math.MaxInt32 {
		t.Errorf("a read in the gap gives %d bytes, %v", len(data), err)
	}
	s.Release()
	if epoch, end := w.log.EpochEnd(2); epoch != 2 || end != 3_000_000_001 {
		t.Errorf("epoch %d ends at %d", epoch, end)
	}
	must(t, w.log.Abandon())
}

// TestTrimmedInsideABatch asks for times and for the largest timestamp after DeleteRecords.
func TestTrimmedInsideABatch(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	_, err := w.append(record.None, -1, []row{{ts: t0}, {ts: t0 + 10}, {ts: t0 + 20}})
	must(t, err)
	_, err = w.append(record.None, -1, []row{{ts: t0 + 5}})
	must(t, err)
	must(t, w.log.SetStartOffset(2))
	for _, ts := range []int64{t0, t0 + 5} {
		f, ok, err := w.log.OffsetForTime(ts, 4, nil)
		if err != nil || !ok || f.Offset != 2 || f.Timestamp != t0+20 {
			t.Errorf("%d: %+v %v %v", ts, f, ok, err)
		}
	}
	if _, err := w.log.Read(1, ReadOptions{MaxBytes: 1, UpTo: 4}); !errors.As(err, new(*OffsetOutOfRangeError)) {
		t.Errorf("read below the start: %v", err)
	}
	must(t, w.log.SetStartOffset(3))
	f, ok, err := w.log.MaxTimestamp(4)
	if err != nil || !ok || f.Offset != 2 { // below the start: Kafka does not ask for it
		t.Errorf("largest: %+v %v %v", f, ok, err)
	}
	must(t, w.log.Abandon())
}

// TestSearchGoesOn has a first segment whose largest timestamp belongs to a record that was trimmed. Kafka answers
// "none" then, though a record behind it matches.
func TestSearchGoesOn(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	_, err := w.append(record.None, -1, []row{{ts: t0 + 100}, {ts: t0 + 10}})
	must(t, err)
	must(t, w.log.Roll())
	_, err = w.append(record.None, -1, []row{{ts: t0 + 50}})
	must(t, err)
	must(t, w.log.SetStartOffset(1))
	f, ok, err := w.log.OffsetForTime(t0+50, 3, nil)
	if err != nil || !ok || f.Offset != 2 {
		t.Errorf("%+v %v %v", f, ok, err)
	}
	must(t, w.log.Abandon())
}

// TestRetentionOfActiveSegment deletes the only segment, as it is too old, and one that a future time protects not.
func TestRetentionOfActiveSegment(t *testing.T) {
	w := newWorld(smallConfig())
	w.cfg.RetentionMs = 60000
	must(t, w.open())
	_, err := w.append(record.None, -1, []row{{ts: t0 - 600000}})
	must(t, err)
	n, err := w.log.DeleteOldSegments(time.UnixMilli(t0))
	if err != nil || n != 1 || w.log.StartOffset() != 1 || w.log.EndOffset() != 1 {
		t.Errorf("%d deleted, %v; start %d, end %d", n, err, w.log.StartOffset(), w.log.EndOffset())
	}
	must(t, w.log.Abandon())
}

// TestOffsetsBeyondTheIndexes has a segment whose last offsets are too far from its base for an index entry, as old
// brokers could leave it. They are served and found all the same, and the next append goes into a segment of its own.
func TestOffsetsBeyondTheIndexes(t *testing.T) {
	for _, clean := range []bool{true, false} {
		cfg := smallConfig()
		cfg.IndexIntervalBytes = 0
		w := newWorld(cfg)
		w.clean = clean
		var data []byte
		for i, base := range []int64{0, 2147483000, 2147483700, 2147483701} {
			rows := []row{{offset: base, ts: t0 + int64(i), value: "v"}}
			b := record.Batch(newBatch(record.None, -1, 0, rows))
			b.SetBaseOffset(base)
			b.SetLeaderEpoch(0)
			data = append(data, b...)
			w.acked, w.bases = append(w.acked, rows...), append(w.bases, base)
		}
		must(t, vfs.WriteFileAtomic(w.mem, worldDir+"/"+segment.Name(0, ".log"), data))
		must(t, w.open())
		if end := w.log.EndOffset(); end != 2147483702 {
			t.Fatalf("clean %v: the log ends at %d", clean, end)
		}
		must(t, w.check())
		info, err := w.append(record.None, -1, []row{{ts: t0 + 9, value: "v"}})
		if err != nil || info.BaseOffset != 2147483702 || w.log.ActiveBaseOffset() != 2147483702 {
			t.Errorf("clean %v: %+v, %v, in segment %d", clean, info, err, w.log.ActiveBaseOffset())
		}
		must(t, w.check())
		must(t, w.close())
		must(t, w.mem.Remove(worldDir+"/"+SealsFile))
		must(t, w.open())
		must(t, w.check())
		must(t, w.log.Abandon())
	}
}
