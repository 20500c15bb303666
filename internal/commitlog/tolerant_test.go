package commitlog_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestTolerantAnswers opens every golden directory, the damaged ones too, for reading only: it must open, answer as
// the same directory opened by a broker after a clean stop where that one opens, refuse changes and write nothing.
func TestTolerantAnswers(t *testing.T) {
	for _, c := range golden.Cases(t) {
		for _, tree := range []golden.Tree{golden.Dir0, golden.Before, golden.After} {
			if !c.Has(tree) {
				continue
			}
			t.Run(c.Name+"/"+string(tree), func(t *testing.T) {
				fsys := vfs.NewMem()
				dir := "/data/" + c.PartitionName()
				c.CopyTo(t, fsys, tree, dir)
				before := fsys.String()
				log, err := commitlog.OpenTolerant(commitlog.Options{
					FS: fsys, Dir: dir, Topic: c.Info.Topic, Config: commitlog.DefaultConfig(),
				})
				if err != nil {
					t.Fatal(err)
				}
				defer log.Abandon() //nolint:errcheck // read only
				compareTolerant(t, c, tree, fsys, dir, log)
				if err := log.Roll(); !errors.Is(err, commitlog.ErrReadOnly) {
					t.Errorf("roll: %v", err)
				}
				if after := fsys.String(); after != before {
					t.Errorf("the directory was changed:\n%s\nbefore:\n%s", after, before)
				}
			})
		}
	}
}

func compareTolerant(t *testing.T, c golden.Case, tree golden.Tree, fsys *vfs.Mem, dir string, log *commitlog.Log) {
	var times []int64
	if !c.Refused() {
		for _, q := range c.ListOffsets(t) {
			if q.Query >= 0 {
				times = append(times, q.Query)
			}
		}
	}
	answers := func(l *commitlog.Log) (out []commitlog.Found) {
		for _, ts := range times {
			f, _, err := l.OffsetForTime(ts, l.EndOffset(), nil)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
		}
		return out
	}
	got := answers(log)
	twin := fsys.CrashClone(rand.New(rand.NewPCG(1, 1)), 1)
	open, err := commitlog.Open(commitlog.Options{
		FS: twin, Dir: dir, Topic: c.Info.Topic, Config: commitlog.DefaultConfig(), Clean: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Abandon() //nolint:errcheck // thrown away
	want := answers(open)
	for i, ts := range times {
		if got[i] != want[i] && !(tree == golden.Before && want[i] == commitlog.Found{}) {
			t.Errorf("time %d: %+v, opened for writing %+v", ts, got[i], want[i])
		}
	}
}
