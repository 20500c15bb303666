package checkpoint

import (
	"errors"
	"slices"
	"testing"

	"tidemark/test/golden"
	"tidemark/vfs"
)

func openEpochs(t testing.TB, content string) *LeaderEpochs {
	t.Helper()
	l, err := OpenLeaderEpochs(disk, write(t, content))
	must(t, err)
	return l
}

func expectFile(t *testing.T, l *LeaderEpochs, want string) {
	t.Helper()
	if got := read(t, l.name); got != want {
		t.Errorf("file %q, want %q", got, want)
	}
}

func TestAssign(t *testing.T) {
	for _, c := range []struct {
		before  string
		epoch   int32
		start   int64
		changed bool
		after   []EpochEntry
	}{
		{"", 0, 0, true, []EpochEntry{{0, 0}}},
		{"0\n1\n0 0\n", 4, 40, true, []EpochEntry{{0, 0}, {4, 40}}},
		{"0\n1\n4 40\n", 4, 40, false, []EpochEntry{{4, 40}}},
		{"0\n1\n4 40\n", 4, 41, false, []EpochEntry{{4, 40}}},
		{"0\n1\n4 40\n", 4, 39, true, []EpochEntry{{4, 39}}},
		{"0\n2\n0 0\n4 40\n", 5, 40, true, []EpochEntry{{0, 0}, {5, 40}}}, // nothing was written in 4
		{"0\n3\n0 0\n4 40\n6 60\n", 5, 50, true, []EpochEntry{{0, 0}, {4, 40}, {5, 50}}},
		{"0\n3\n0 0\n4 40\n6 60\n", 7, 10, true, []EpochEntry{{0, 0}, {7, 10}}},
		{"0\n3\n1 10\n4 40\n6 60\n", 0, 0, true, []EpochEntry{{0, 0}}},
	} {
		l := openEpochs(t, c.before)
		changed, err := l.Assign(c.epoch, c.start)
		if err != nil || changed != c.changed || !slices.Equal(l.Entries(), c.after) {
			t.Errorf("%q: %v %v %v", c.before, changed, l.Entries(), err)
		}
		again, err := OpenLeaderEpochs(disk, l.name)
		if err != nil || !slices.Equal(again.Entries(), c.after) {
			t.Errorf("%q: file has %v %v", c.before, again.Entries(), err)
		}
	}
	for _, e := range []EpochEntry{{-1, 0}, {0, -1}} {
		if _, err := openEpochs(t, "").Assign(e.Epoch, e.StartOffset); err == nil {
			t.Errorf("%v: taken", e)
		}
	}
}

// Truncation changes the memory; Flush the file, once.
func TestTruncateEpochs(t *testing.T) {
	const before = "0\n3\n0 0\n4 40\n6 60\n"
	all := []EpochEntry{{0, 0}, {4, 40}, {6, 60}}
	for _, c := range []struct {
		op    func(*LeaderEpochs, int64) bool
		at    int64
		after []EpochEntry
	}{
		{(*LeaderEpochs).TruncateFromEnd, 61, all},
		{(*LeaderEpochs).TruncateFromEnd, 60, all[:2]},
		{(*LeaderEpochs).TruncateFromEnd, 40, all[:1]},
		{(*LeaderEpochs).TruncateFromEnd, 0, nil},
		{(*LeaderEpochs).TruncateFromEnd, -1, all},
		{(*LeaderEpochs).TruncateFromStart, 0, all},
		{(*LeaderEpochs).TruncateFromStart, 7, []EpochEntry{{0, 7}, {4, 40}, {6, 60}}},
		{(*LeaderEpochs).TruncateFromStart, 40, []EpochEntry{{4, 40}, {6, 60}}},
		{(*LeaderEpochs).TruncateFromStart, 99, []EpochEntry{{6, 99}}},
		{(*LeaderEpochs).TruncateFromStart, -1, all},
	} {
		l := openEpochs(t, before)
		changed := c.op(l, c.at)
		if changed == slices.Equal(all, c.after) || !slices.Equal(l.Entries(), c.after) {
			t.Errorf("at %d: %v %v, want %v", c.at, changed, l.Entries(), c.after)
		}
		expectFile(t, l, before)
		must(t, l.Flush())
		again, err := OpenLeaderEpochs(disk, l.name)
		if err != nil || !slices.Equal(again.Entries(), c.after) {
			t.Errorf("at %d: file has %v %v", c.at, again.Entries(), err)
		}
		must(t, disk.Remove(l.name))
		must(t, l.Flush())
		if _, err := disk.Stat(l.name); err == nil {
			t.Error("written without a change")
		}
	}
}

func TestEpochLookups(t *testing.T) {
	l := openEpochs(t, "0\n3\n2 20\n4 40\n6 60\n")
	for _, c := range []struct {
		epoch int32
		wantE int32
		want  int64
	}{{-1, -1, -1}, {0, 0, 20}, {1, 1, 20}, {2, 2, 40}, {3, 2, 40}, {4, 4, 60}, {5, 4, 60}, {6, 6, 99}, {7, -1, -1}} {
		if e, o := l.EndOffsetFor(c.epoch, 99); e != c.wantE || o != c.want {
			t.Errorf("EndOffsetFor(%d) = %d, %d", c.epoch, e, o)
		}
	}
	for offset, want := range map[int64]int32{19: -1, 20: 2, 39: 2, 40: 4, 1000: 6} {
		if e, ok := l.EpochForOffset(offset); e != want || ok != (want >= 0) {
			t.Errorf("EpochForOffset(%d) = %d %v", offset, e, ok)
		}
	}
	for epoch, want := range map[int32]EpochEntry{2: {}, 3: {2, 20}, 4: {2, 20}, 9: {6, 60}} {
		if e, ok := l.Previous(epoch); e != want || ok != (want != EpochEntry{}) {
			t.Errorf("Previous(%d) = %v %v", epoch, e, ok)
		}
	}
	first, _ := l.Earliest()
	last, _ := l.Latest()
	if first != (EpochEntry{2, 20}) || last != (EpochEntry{6, 60}) {
		t.Error(first, last)
	}
	if !l.Clear() {
		t.Error("not changed")
	}
	if _, ok := l.Latest(); ok {
		t.Error("not empty")
	}
	if e, o := l.EndOffsetFor(2, 99); e != -1 || o != -1 {
		t.Error(e, o)
	}
}

func TestMalformedEpochs(t *testing.T) {
	for content, line := range map[string]int{
		"0\n1\n0\n": 3, "0\n1\n-1 0\n": 3, "0\n1\n0 -1\n": 3, "0\n1\n0 0 0\n": 3, "x": 1,
	} {
		_, err := OpenLeaderEpochs(disk, write(t, content))
		var m *MalformedError
		if !errors.As(err, &m) || m.Line != line {
			t.Errorf("%q: %v", content, err)
		}
	}
	// Entries out of order are dropped as Assign would, and the file follows.
	l := openEpochs(t, "0\n3\n5 50\n4 40\n6 60\n")
	if want := []EpochEntry{{4, 40}, {6, 60}}; !slices.Equal(l.Entries(), want) {
		t.Errorf("%v", l.Entries())
	}
	must(t, l.Flush())
	expectFile(t, l, "0\n2\n4 40\n6 60\n")
}

// A write that failed is due again.
func TestFlushAgainAfterFailure(t *testing.T) {
	l := openEpochs(t, "0\n1\n0 0\n")
	good := l.name
	l.SetName(good + "/absent/file")
	if _, err := l.Assign(1, 5); err == nil {
		t.Fatal("no error")
	}
	l.SetName(good)
	must(t, l.Flush())
	expectFile(t, l, "0\n2\n0 0\n1 5\n")
}

// The answers of real Kafka to OffsetForLeaderEpoch.
func TestGoldenEpochEnds(t *testing.T) {
	n := 0
	for _, c := range golden.Cases(t) {
		if _, ok := c.Expect("epoch-end.tsv"); !ok || !c.Has(golden.Final) || c.Info.SameAs["epoch-end.tsv"] != "" {
			continue
		}
		l, err := OpenLeaderEpochs(vfs.OS(), c.TreePath(t, golden.Final)+"/"+LeaderEpochFile)
		must(t, err)
		logEnd := int64(-1)
		for _, e := range c.EpochEnds(t) {
			logEnd = max(logEnd, e.EndOffset)
		}
		for _, e := range c.EpochEnds(t) {
			epoch, end := l.EndOffsetFor(e.Query, logEnd)
			if e.Error == "NONE" && (epoch != e.LeaderEpoch || end != e.EndOffset) {
				t.Errorf("%s: epoch %d: %d, %d; want %+v", c.Name, e.Query, epoch, end, e)
			}
			n++
		}
	}
	if n < 100 {
		t.Errorf("only %d answers", n)
	}
}
