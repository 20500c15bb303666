package inspect_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
	"tidemark/test/golden"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// repair mends a folder and returns what is left.
func repair(t testing.TB, fsys vfs.FS, dir string, apply bool) (*inspect.RepairSummary, []inspect.Action,
	[]inspect.Finding, error) {
	t.Helper()
	targets, err := inspect.Resolve(fsys, []string{dir})
	if err != nil {
		return nil, nil, nil, err
	}
	var actions []inspect.Action
	var left []inspect.Finding
	var overrides map[string]string
	if strings.Contains(dir, "missing-all-indexes") { // nothing in the folder tells
		overrides = map[string]string{"index.interval.bytes": "250"}
	}
	s, err := inspect.NewSettings(fsys, nil, overrides)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := inspect.Repair(context.Background(), fsys, targets, inspect.RepairOptions{
		Settings: s, Apply: apply,
		Report: func(a inspect.Action) { actions = append(actions, a) },
		Left:   func(f inspect.Finding) { left = append(left, f) },
	})
	return summary, actions, left, err
}

// cannotMend are the damages whose bytes are gone, with what is still found afterwards.
var cannotMend = map[string]inspect.Kind{
	"middle-log-missing": inspect.OffsetGap,
	"leftover-swap":      inspect.Leftover, "leftover-swap-and-cleaned": inspect.Leftover,
	"leftover-swap-index-only": inspect.Leftover,
	"leftover-swap-merged":     inspect.Leftover,
}

// restored are the damages after whose repair the files are again those of the undamaged folder, byte for byte.
var restored = []string{
	"flip-last-segment", "flip-middle-segment", "flip-below-recovery-point", "flip-length-last",
	"garbage-tail", "garbage-tail-negative-size", "zero-tail", "index-zero-last", "index-zero-filled", "index-empty",
	"index-garbage-5", "index-garbage-8", "index-wrong-position", "missing-index", "missing-timeindex",
	"timeindex-backwards",
	"timeindex-garbage-7", "timeindex-zero-filled", "txnindex-truncated", "snapshot-flipped", "snapshot-truncated",
	"missing-index-last", "missing-timeindex-last", "txnindex-missing", "snapshots-missing", "missing-all-indexes",
	"epoch-checkpoint-missing",
}

// TestRepairGolden mends every damaged folder of Kafka's: the dry run changes nothing, the repair leaves a folder in
// which nothing is found that could be mended, and where the bytes allow the files are those of the undamaged folder.
func TestRepairGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "10-") {
		t.Run(c.Name, func(t *testing.T) {
			fsys, dir := load(t, c, golden.Before)
			before := fsys.String()
			found := verify(t, fsys, dir)
			_, planned, _, err := repair(t, fsys, dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if fsys.String() != before {
				t.Fatal("the dry run changed the folder")
			}
			_, done, left, err := repair(t, fsys, dir, true)
			if err != nil {
				t.Fatal(err)
			}
			if len(done) != len(planned) {
				t.Errorf("%d actions planned, %d made", len(planned), len(done))
			}
			left = slices.DeleteFunc(left, func(f inspect.Finding) bool {
				return f.Severity == inspect.Note || f.Kind == cannotMend[damageName(c)]
			})
			if len(left) > 0 {
				t.Errorf("left of\n%s is\n%s", texts(found), texts(left))
			}
			if slices.Contains(restored, damageName(c)) {
				sameAsIntact(t, c, fsys, dir)
			}
		})
	}
}

// sameAsIntact compares the files with those of the undamaged folder. The indexes of the last segment of a killed
// broker are longer there, for appends to come.
func sameAsIntact(t *testing.T, c golden.Case, fsys vfs.FS, dir string) {
	t.Helper()
	intact := golden.Load(t, "10-crash-intact")
	if strings.HasPrefix(c.Name, "10-clean-") {
		intact = golden.Load(t, "10-clean-intact")
	}
	want, wantDir := load(t, intact, golden.Before)
	entries, err := want.ReadDir(wantDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "partition.metadata" ||
			e.Name() == "00000000000000000166.snapshot" && strings.Contains(c.Name, "snapshots") {
			continue
		}
		a, err := vfs.ReadFile(want, filepath.Join(wantDir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, e.Name()))
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.HasPrefix(e.Name(), "00000000000000000159.") && strings.HasSuffix(e.Name(), "index") {
			a, b = []byte(strings.TrimRight(string(a), "\x00")), []byte(strings.TrimRight(string(b), "\x00"))
			a = a[:min(len(a), len(b))]
			b = b[:len(a)]
		}
		if string(a) != string(b) {
			t.Errorf("%s: %d bytes differ from the %d of the undamaged folder:\n%x\n%x", e.Name(), len(b), len(a), b, a)
		}
	}
}

// TestRepairAnswers mends folders whose records are all there and compares the look-ups with Kafka's answers about the
// undamaged folder.
func TestRepairAnswers(t *testing.T) {
	for _, c := range golden.Cases(t, "10-crash-", "10-clean-") {
		if !slices.Contains(restored, damageName(c)) {
			continue
		}
		fsys, dir := load(t, c, golden.Before)
		if _, _, _, err := repair(t, fsys, dir, true); err != nil {
			t.Fatal(err)
		}
		intact := golden.Load(t, "10-crash-intact")
		if strings.HasPrefix(c.Name, "10-clean-") {
			intact = golden.Load(t, "10-clean-intact")
		}
		log, err := commitlog.Open(commitlog.Options{
			FS: fsys, Dir: dir, Topic: c.Info.Topic, Config: commitlog.DefaultConfig(), Clean: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range intact.ListOffsets(t) {
			if q.Query < 0 || q.Isolation != 0 {
				continue
			}
			found, ok, err := log.OffsetForTime(q.Query, log.EndOffset(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				found = commitlog.Found{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
			}
			if found.Offset != q.Offset || found.Timestamp != q.Timestamp {
				t.Errorf("%s: time %d gives %+v, Kafka says offset %d, time %d", c.Name, q.Query, found, q.Offset, q.Timestamp)
			}
		}
		if err := log.Abandon(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepairGenerated mends folders with changes of every kind: it never fails, what is left is never worse, and a
// second repair finds nothing to do.
func TestRepairGenerated(t *testing.T) {
	c := golden.Load(t, "10-clean-intact")
	base, dir := load(t, c, golden.Before)
	eachChange(t, base, dir, 9, 12, func(fsys vfs.FS, file, what string, _ []byte) {
		found := verify(t, fsys, dir)
		if _, _, _, err := repair(t, fsys, dir, true); err != nil {
			t.Fatalf("%s, %s: %v", file, what, err)
		}
		_, again, left, err := repair(t, fsys, dir, true)
		if err != nil {
			t.Fatalf("%s, %s: %v", file, what, err)
		}
		if len(again) > 0 {
			t.Errorf("%s, %s: a second repair still has to do %s: %s\nfound:\n%sleft:\n%s", file, what, again[0].File,
				again[0].What, texts(found), texts(left))
		}
		for _, f := range left {
			if f.Severity == inspect.Error && f.Kind != inspect.MetadataWrong {
				t.Errorf("%s, %s: left:\n%s\nof\n%s", file, what, texts(left), texts(found))
			}
		}
	})
}

// TestRepairInUse refuses a directory in use, and one on a full disk, before anything is changed.
func TestRepairInUse(t *testing.T) {
	c := golden.Load(t, "10-crash-flip-middle-segment")
	fsys, dir := load(t, c, golden.Before)
	before := fsys.String()
	lock, err := fsys.Lock("/data/.lock")
	if err != nil {
		t.Fatal(err)
	}
	locked := fsys.String()
	if _, _, _, err := repair(t, fsys, dir, true); !errors.Is(err, inspect.ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if fsys.String() != locked || before == locked {
		t.Error("the folder was changed")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	var full *inspect.SpaceError
	if _, _, _, err := repair(t, fullDisk{fsys}, dir, true); !errors.As(err, &full) || full.Need == 0 {
		t.Errorf("full disk: %v", err)
	}
	if fsys.String() != locked {
		t.Error("the folder on the full disk was changed")
	}
}

// TestRepairLogDir mends a partition of a log directory that was closed in good order: the lock that the repair itself
// takes must not make it look in use, and zeros behind index entries are damage there.
func TestRepairLogDir(t *testing.T) {
	tails := []string{"10-crash-garbage-tail", "10-crash-zero-tail", "10-crash-torn-tail", "10-crash-flip-length"}
	for _, c := range golden.Cases(t, tails...) {
		fsys, dir := load(t, c, golden.Before)
		for _, name := range []string{checkpoint.CleanShutdownFile, checkpoint.RecoveryPointFile} {
			if err := vfs.WriteFileAtomic(fsys, "/data/"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		seals := filepath.Join(dir, commitlog.SealsFile)
		if err := vfs.WriteFileAtomic(fsys, seals, []byte("of segments as they were")); err != nil {
			t.Fatal(err)
		}
		summary, actions, left, err := repair(t, fsys, dir, true)
		if err != nil || summary.Left > 0 || len(actions) < 4 {
			t.Errorf("%s: %v, %d actions, left:\n%s", c.Name, err, len(actions), texts(left))
		}
		if _, err := fsys.Stat(seals); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: seals of the old segments are still there: %v", c.Name, err)
		}
		if found := verify(t, fsys, "/data"); len(found) > 0 {
			t.Errorf("%s: found afterwards:\n%s", c.Name, texts(found))
		}
	}
}

// fullDisk has a megabyte left.
type fullDisk struct{ vfs.FS }

func (fullDisk) FreeBytes(string) (int64, bool, error) { return 1 << 20, true, nil }

// TestRepairInterrupted lets every call of a repair fail, and then loses what was not synced. A repair of what is left
// must come to the same end, with every byte of the log still there, in the log or in a cut file.
func TestRepairInterrupted(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 3
	}
	for _, name := range []string{"10-crash-flip-length-last", "10-crash-torn-tail"} {
		c := golden.Load(t, name)
		base, dir := load(t, c, golden.Before)
		if name == "10-crash-torn-tail" { // also a batch in the middle that cannot be restored
			log := filepath.Join(dir, "00000000000000000078.log")
			data, err := vfs.ReadFile(base, log)
			if err != nil {
				t.Fatal(err)
			}
			copy(data[1399+70:], "damage in many bytes")
			replace(t, base, log, data)
			base.SyncAll()
		}
		rng := rand.New(rand.NewPCG(3, 3))
		want := repaired(t, base.CrashClone(rng, 1), dir)
		for n := int64(1); ; n += step {
			disk := base.CrashClone(rng, 1)
			fault := &faultfs.Nth{N: n, Sticky: true}
			if _, _, _, err := repair(t, faultfs.Wrap(disk, fault), dir, true); err == nil {
				if n < 20 {
					t.Errorf("%s: only %d calls", name, n)
				}
				break
			}
			after := disk.CrashClone(rng, 0.5)
			if got := repaired(t, after, dir); got != want {
				t.Fatalf("%s, call %d failed: the repair comes to another end:\n%s\nwanted\n%s", name, n, got, want)
			}
		}
	}
}

// repaired mends a folder and describes it: names, sizes and contents of all files.
func repaired(t *testing.T, fsys *vfs.Mem, dir string) string {
	t.Helper()
	_, _, left, err := repair(t, fsys, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if f.Severity == inspect.Error {
			t.Fatalf("left:\n%s\n%s", texts(left), fsys.String())
		}
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		data, err := vfs.ReadFile(fsys, filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(e.Name() + " " + hash(data) + "\n")
	}
	return out.String()
}
