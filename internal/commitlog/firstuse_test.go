package commitlog

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestIntactIndexesAreKept opens folders that Kafka closed in good order: what is looked over at the first use, offset
// and time look-ups and reads of both isolation levels, finds nothing to rebuild.
func TestIntactIndexesAreKept(t *testing.T) {
	for _, c := range golden.Cases(t, "01-", "02-", "03-", "04-", "05-", "06-", "07-", "08-", "09-", "11-", "12-",
		"10-clean-intact") {
		tree := golden.Final
		if !c.Has(golden.Dir0) {
			tree = golden.After
		}
		t.Run(c.Name, func(t *testing.T) {
			mem := vfs.NewMem()
			c.CopyTo(t, mem, tree, goldenDir(c))
			o := Options{
				FS: mem, Dir: goldenDir(c), Topic: c.Info.Topic, Config: DefaultConfig(), Clean: true, Metrics: new(Metrics),
			}
			l := openGolden(t, o)
			defer func() { _ = l.Abandon() }()
			for offset := l.StartOffset(); offset < l.EndOffset(); {
				s, err := l.Read(offset, ReadOptions{
					MaxBytes: 1, MinOneBatch: true, UpTo: l.EndOffset(), Isolation: ReadCommitted,
				})
				if err != nil {
					t.Fatal(err)
				}
				data, err := s.Bytes()
				s.Release()
				if err != nil || len(data) == 0 {
					break
				}
				h, err := record.ParseHeader(data)
				if err != nil {
					t.Fatal(err)
				}
				offset = h.NextOffset()
			}
			if _, _, err := l.MaxTimestamp(l.EndOffset()); err != nil {
				t.Fatal(err)
			}
			m := &o.Metrics.Segment
			if n := m.IndexesRebuilt.Load() + m.TxnIndexesRebuilt.Load() + m.Damages.Load(); n != 0 {
				t.Errorf("%d indexes and %d transaction indexes rebuilt, %d damages found",
					m.IndexesRebuilt.Load(), m.TxnIndexesRebuilt.Load(), m.Damages.Load())
			}
		})
	}
}

// unsealedWorld has three segments of three batches, the last one active, as Kafka would have left them: without seals.
func unsealedWorld(t *testing.T) *world {
	t.Helper()
	w := threeSegments(t)
	must(t, w.close())
	must(t, w.mem.Remove(worldDir+"/"+SealsFile))
	must(t, w.open())
	return w
}

func scrubAll(t *testing.T, l *Log) {
	t.Helper()
	for done := false; !done; {
		var err error
		if _, done, err = l.Scrub(100); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScrubSeals proves every segment and seals it; the next opening takes the seals, unless they are void.
func TestScrubSeals(t *testing.T) {
	w := unsealedWorld(t)
	if n, total := w.log.Proven(); n != 0 || total != 3 {
		t.Errorf("%d of %d proven at the start", n, total)
	}
	scrubAll(t, w.log)
	if n := w.log.o.Metrics.Seals.Load(); n != 2 {
		t.Errorf("%d segments sealed", n)
	}
	must(t, w.check())
	must(t, w.close())

	for _, c := range []struct {
		name, file string
		at         int64
		void       int64
	}{
		{name: "nothing", file: ""},
		{name: "log, first header", file: segment.Name(0, segment.LogSuffix), at: 20, void: 1},
		{name: "log, last header", file: segment.Name(0, segment.LogSuffix), at: 150, void: 1},
		{name: "offset index", file: segment.Name(3, segment.IndexSuffix), at: 3, void: 1},
		{name: "time index", file: segment.Name(3, segment.TimeSuffix), at: 11, void: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := w.crash(rand.New(rand.NewPCG(1, 1)), 1)
			after.clean = true
			if c.file != "" {
				must(t, after.spoil(command{"spoil", map[string]string{
					"file": c.file, "at": strconv.FormatInt(c.at, 10), "xor": "1",
				}}))
			}
			must(t, after.open())
			scrubAll(t, after.log)
			m := after.log.o.Metrics
			if m.Segment.SealsVoid.Load() != c.void || m.Seals.Load() != c.void {
				t.Errorf("%d seals void, %d made", m.Segment.SealsVoid.Load(), m.Seals.Load())
			}
			got, err := after.readAround()
			must(t, err)
			if lost := m.Segment.Damages.Load(); int(lost)+len(got) != 9 {
				t.Errorf("%d records, %d damages", len(got), lost)
			}
			must(t, after.checkTimes(got))
			must(t, after.log.Abandon())
		})
	}
}

// TestSealsRememberDamage has a batch with a flipped bit, which a scrub finds: the next opening knows of it by the
// seal.
func TestSealsRememberDamage(t *testing.T) {
	w := unsealedWorld(t)
	must(t, w.spoil(command{"spoil", map[string]string{
		"file": segment.Name(3, segment.LogSuffix), "at": "130", "xor": "4",
	}}))
	scrubAll(t, w.log)
	must(t, w.close())
	must(t, w.open())
	if _, err := w.log.Read(4, ReadOptions{MaxBytes: 1, MinOneBatch: true, UpTo: 9}); !errors.Is(err, ErrCorruptMessage) {
		t.Errorf("read of the damaged batch: %v", err)
	}
	if n := w.log.o.Metrics.Segment.Damages.Load(); n != 1 {
		t.Errorf("%d damages known", n)
	}
	got, err := w.readAround()
	must(t, err)
	if len(got) != 8 {
		t.Errorf("%d records are served", len(got))
	}
	must(t, w.checkTimes(got))
	must(t, w.log.Abandon())
}

// TestRecoverySealsAnew has an old seal of a segment that recovery finds damaged: it must not be taken later.
func TestRecoverySealsAnew(t *testing.T) {
	w := threeSegments(t) // sealed at the roll
	w.kill()
	must(t, w.spoil(command{"spoil", map[string]string{
		"file": segment.Name(3, segment.LogSuffix), "at": "130", "xor": "4",
	}}))
	must(t, w.open())
	must(t, w.close())
	must(t, w.open())
	_, err := w.log.Read(4, ReadOptions{MaxBytes: 1, MinOneBatch: true, UpTo: 9})
	if !errors.Is(err, ErrCorruptMessage) {
		t.Errorf("read of the damaged batch: %v", err)
	}
	must(t, w.log.Abandon())
}
