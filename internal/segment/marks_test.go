package segment

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/record"
)

type rec struct{ offset, timestamp int64 }

// drawBatch makes a batch of any codec, its timestamps in any order, and returns its records.
func drawBatch(t *rapid.T, base int64) (record.Batch, []rec) {
	o := record.DefaultBuilderOptions()
	o.BaseOffset, o.LeaderEpoch = base, 3
	o.Codec = record.Codec(rapid.IntRange(0, 4).Draw(t, "codec"))
	b := record.NewBuilder(o)
	var list []rec
	ts := rapid.Int64Range(-1, 1000).Draw(t, "start")
	least := rapid.SampledFrom([]int64{-50, 0, 1}).Draw(t, "least step")
	for range rapid.IntRange(1, 400).Draw(t, "records") {
		ts = max(ts+rapid.Int64Range(least, 50).Draw(t, "step"), record.NoTimestamp)
		r := rec{base, ts}
		if err := b.AppendAt(r.offset, r.timestamp, nil, []byte("value"), nil); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
		base += 1 + rapid.Int64Range(0, 3).Draw(t, "gap")/3*2 // as compaction leaves them
	}
	batch := record.Batch(bytes.Clone(b.Bytes()))
	if rapid.IntRange(0, 4).Draw(t, "LogAppendTime") == 0 {
		batch.SetMaxTimestamp(ts, record.LogAppendTime)
		for i := range list {
			list[i].timestamp = ts
		}
	}
	return batch, list
}

func first(list []rec, wanted func(rec) bool) (rec, bool) {
	if i := slices.IndexFunc(list, wanted); i >= 0 {
		return list[i], true
	}
	return rec{}, false
}

// TestMarksAnswerAsRecordsDo looks up each time three times, without marks, while they are made and by them, and
// compares the answers with the first such record of a list.
func TestMarksAnswerAsRecordsDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		env := testEnv(t)
		env.MarkedBytes = 1
		s, err := Create(env, 0, Config{IndexIntervalBytes: 500, MaxIndexBytes: 1 << 16})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Release()
		var all []rec
		largest, next := int64(-1), int64(0)
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			batch, list := drawBatch(rt, next)
			add(t, s, batch)
			all, next, largest = append(all, list...), batch.NextOffset(), max(largest, batch.MaxTimestamp())
		}
		size, _ := s.Size()
		for range 20 {
			ts := rapid.Int64Range(-1, largest+1).Draw(rt, "ts")
			from := max(rapid.Int64Range(-next, next).Draw(rt, "from"), 0)
			want, some := first(all, func(r rec) bool { return r.timestamp >= ts && r.offset >= from })
			for turn := range 3 {
				f, ok, err := s.OffsetForTime(ts, from, size, nil)
				if err != nil || ok != some || ok && f != (Found{want.timestamp, want.offset, 3}) {
					rt.Fatalf("turn %d, time %d from %d: %+v %v %v, want %+v", turn, ts, from, f, ok, err, want)
				}
			}
		}
		want, some := first(all, func(r rec) bool { return r.timestamp == largest })
		for range 3 {
			f, ok, err := s.MaxTimestamp(size)
			if err != nil || ok != some || ok && f != (Found{want.timestamp, want.offset, 3}) {
				rt.Fatalf("largest: %+v %v %v, want %+v", f, ok, err, want)
			}
		}
	})
}

// steps is a batch of n records, one millisecond and so many bytes each.
func steps(t testing.TB, base, ts int64, n, size int, codec record.Codec) record.Batch {
	t.Helper()
	o := record.DefaultBuilderOptions()
	o.BaseOffset, o.Codec = base, codec
	b := record.NewBuilder(o)
	for i := range n {
		if err := b.Append(ts+int64(i), nil, make([]byte, size), nil); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.Clone(b.Bytes())
}

// newMarked makes a segment with a batch of 1 000 records, from offset and time 0 on, of which marks were made.
func newMarked(t testing.TB, codec record.Codec) *Segment {
	t.Helper()
	s, err := Create(testEnv(t), 0, Config{IndexIntervalBytes: 500, MaxIndexBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	add(t, s, steps(t, 0, 0, 1000, 1000, codec))
	for range 2 {
		wantFound(t, s, 500, 500)
	}
	if n := s.env.Metrics.Marked.Load(); n != 0 {
		t.Fatalf("%d answers by marks that were not made yet", n)
	}
	wantFound(t, s, 501, 501)
	if n := s.env.Metrics.Marked.Load(); n != 1 {
		t.Fatalf("%d answers by marks", n)
	}
	return s
}

func wantFound(t testing.TB, s *Segment, ts, want int64) {
	t.Helper()
	size, err := s.Size()
	if err != nil {
		t.Fatal(err)
	}
	f, ok, err := s.OffsetForTime(ts, 0, size, nil)
	if err != nil || ok != (want >= 0) || ok && f.Offset != want {
		t.Errorf("time %d: %+v %v %v, want offset %d", ts, f, ok, err, want)
	}
}

// TestMarksSaveReading counts what look-ups read of a batch of a MiB.
func TestMarksSaveReading(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Zstd} {
		s := newMarked(t, codec)
		size, _ := s.Size()
		var way Way
		if _, ok, err := s.OffsetForTime(999, 0, size, &way); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if way.BatchesDecoded != 0 || way.BytesScanned > 2048 {
			t.Errorf("%v: %+v", codec, way)
		}
	}
}

// TestMarksGoWithTheBatch puts another batch in the place of one with marks: after a truncation, after an append that
// is undone, and behind the segment's back. The last one has other times, too.
func TestMarksGoWithTheBatch(t *testing.T) {
	other := steps(t, 0, 5, 1000, 1000, record.None)
	for name, change := range map[string]func(s *Segment) error{
		"truncated": func(s *Segment) error {
			if err := s.Truncate(0, 0); err != nil {
				return err
			}
			add(t, s, other)
			return nil
		},
		"undone": func(s *Segment) error {
			if err := s.Undo(Mark{}, 0); err != nil {
				return err
			}
			add(t, s, other)
			return nil
		},
		"overwritten": func(s *Segment) error {
			_, err := s.files().log.WriteAt(other, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMarked(t, record.None)
			edition := s.notes.Edition()
			if err := change(s); err != nil {
				t.Fatal(err)
			}
			if name != "overwritten" && s.notes.Edition() == edition {
				t.Error("the notes were not cleared")
			}
			for range 3 {
				wantFound(t, s, 500, 495)
			}
		})
	}
}

// TestMarksOfDamage: a batch without a right checksum, or that cannot be decoded to its end, gets no marks; look-ups
// answer as often as they are asked as they do the first time.
func TestMarksOfDamage(t *testing.T) {
	good := steps(t, 1000, 1000, 1000, 1000, record.None)
	cut := steps(t, 0, 0, 1000, 1000, record.None)
	cut[len(cut)-1] = 9 // the last record now has headers that are not there
	cut.SetMaxTimestamp(-5, record.CreateTime)
	cut.SetMaxTimestamp(999, record.CreateTime) // computes the checksum
	flipped := steps(t, 0, 0, 1000, 1000, record.None)
	flipped[500_000] ^= 1
	for name, c := range map[string]struct {
		batch record.Batch
		wants map[int64]int64
	}{
		"wrong checksum": {flipped, map[int64]int64{100: 1000, 900: 1000}},
		"cut record":     {cut, map[int64]int64{100: 100, 998: 998, 999: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			env := testEnv(t)
			s, err := Create(env, 0, Config{IndexIntervalBytes: 500, MaxIndexBytes: 1 << 16})
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, c.batch)
			add(t, s, good)
			if err := s.Finish(); err != nil {
				t.Fatal(err)
			}
			s.Release()
			s = Open(env, 0, Config{IndexIntervalBytes: 500, MaxIndexBytes: 1 << 16}, HasIndex|HasTime)
			defer s.Release()
			for range 4 {
				for ts, want := range c.wants {
					wantFound(t, s, ts, want)
				}
			}
		})
	}
}

// TestMarksAreBounded: a batch of more steps than may be kept is decoded each time.
func TestMarksAreBounded(t *testing.T) {
	env := testEnv(t)
	s, err := Create(env, 0, Config{IndexIntervalBytes: 500, MaxIndexBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	n := int64(maxMarks / 2)
	add(t, s, steps(t, 0, 0, int(n), 0, record.Snappy))
	for _, ts := range []int64{n - 1, n - 1, n - 1, 5} {
		wantFound(t, s, ts, ts)
	}
	if got := env.Metrics.Marked.Load(); got != 0 || env.Pages.Stats().SizeBytes > 4096 {
		t.Errorf("%d answers by marks, cache %+v", got, env.Pages.Stats())
	}
}

// TestMarkBlocks has every number of steps around the borders of blocks.
func TestMarkBlocks(t *testing.T) {
	for n := range 3*markBlock + 2 {
		var m marker
		for i := range int64(n) {
			m.add(10*i, 100+3*i)
			m.add(10*i+1, 100+3*i) // no step
		}
		marks := m.marks(make([]byte, record.HeaderSize))
		for ts := int64(98); ts < 104+3*int64(n); ts++ {
			want := max((ts-100+2)/3, 0)
			timestamp, offset, ok := marks.first(ts)
			if ok != (want < int64(n)) || ok && (timestamp != 100+3*want || offset != 10*want) {
				t.Fatalf("%d steps, time %d: %d %d %v, want step %d", n, ts, timestamp, offset, ok, want)
			}
		}
	}
}
