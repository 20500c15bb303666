package inspect_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/internal/inspect"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// load copies a tree of a golden case into memory and returns the folder.
func load(t testing.TB, c golden.Case, tree golden.Tree) (*vfs.Mem, string) {
	t.Helper()
	fsys := vfs.NewMem()
	dir := "/data/" + c.PartitionName()
	c.CopyTo(t, fsys, tree, dir)
	return fsys, dir
}

func settings(t testing.TB, fsys vfs.FS, overrides map[string]string) *inspect.Settings {
	t.Helper()
	s, err := inspect.NewSettings(fsys, nil, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verify checks a folder and returns what it found.
func verify(t testing.TB, fsys vfs.FS, dir string) []inspect.Finding {
	t.Helper()
	targets, err := inspect.Resolve(fsys, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var found []inspect.Finding
	summary, err := inspect.Verify(context.Background(), fsys, targets, inspect.VerifyOptions{
		Settings: settings(t, fsys, nil), Report: func(f inspect.Finding) { found = append(found, f) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if int(summary.Found()) != len(found) {
		t.Errorf("the summary counts %d findings, %d were reported", summary.Found(), len(found))
	}
	return found
}

func texts(found []inspect.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s %s@%d offset %d: %s\n", f.Severity, f.Kind, filepath.Base(f.File), f.Pos, f.Offset, f.What)
	}
	return b.String()
}

// TestVerifySilent checks every folder that Kafka left whole: after a clean stop, and after a kill without damage.
func TestVerifySilent(t *testing.T) {
	n := 0
	for _, c := range golden.Cases(t) {
		tree := golden.Dir0
		if strings.Contains(c.Name, "-intact") {
			tree = golden.Before
		} else if strings.HasPrefix(c.Name, "10-") || !c.Has(tree) {
			continue
		}
		n++
		t.Run(c.Name, func(t *testing.T) {
			fsys, dir := load(t, c, tree)
			before := fsys.String()
			if found := verify(t, fsys, dir); len(found) > 0 {
				t.Errorf("found in a whole folder:\n%s", texts(found))
			}
			if fsys.String() != before {
				t.Error("the folder was changed")
			}
		})
	}
	if n < 20 {
		t.Errorf("only %d whole folders", n)
	}
}

// TestVerifyLogDir checks a whole log directory as Kafka left it.
func TestVerifyLogDir(t *testing.T) {
	dir := golden.Load(t, "13-data").TreePath(t, golden.Data)
	if found := verify(t, vfs.OS(), dir); len(found) > 0 {
		t.Errorf("found in a whole log directory:\n%s", texts(found))
	}
}

// named is the kind of finding that tells of each kind of damage, by the case's name without its first words.
var named = map[string]inspect.Kind{
	"flip-last-segment": inspect.BadChecksum, "flip-middle-segment": inspect.BadChecksum,
	"flip-below-recovery-point": inspect.BadChecksum, "flip-length-last": inspect.BadBatch,
	"garbage-tail": inspect.GarbageTail, "garbage-tail-negative-size": inspect.GarbageTail,
	"torn-tail": inspect.TornTail, "torn-header": inspect.TornTail, "zero-tail": inspect.ZeroTail,
	"index-zero-last": inspect.IndexZeros, "index-zero-filled": inspect.IndexZeros, "index-empty": inspect.IndexSparse,
	"index-garbage-5": inspect.IndexTorn, "index-garbage-8": inspect.IndexEntry,
	"index-wrong-position": inspect.IndexEntry,
	"missing-index":        inspect.IndexMissing, "missing-index-last": inspect.IndexMissing,
	"missing-all-indexes": inspect.IndexMissing,
	"missing-timeindex":   inspect.TimeMissing, "missing-timeindex-last": inspect.TimeMissing,
	"timeindex-backwards": inspect.TimeEntryWrong, "timeindex-garbage-7": inspect.TimeTorn,
	"timeindex-zero-filled": inspect.TimeZeros,
	"txnindex-truncated":    inspect.TxnTorn, "txnindex-missing": inspect.TxnMissing,
	"snapshots-missing": inspect.SnapshotMissing, "snapshot-flipped": inspect.SnapshotCorrupt,
	"snapshot-truncated": inspect.SnapshotCorrupt, "epoch-checkpoint-missing": inspect.EpochsMissing,
	"last-log-empty": inspect.SegmentEmpty, "last-log-missing": inspect.Orphan, "middle-log-missing": inspect.OffsetGap,
	"orphan-index": inspect.Orphan, "leftover-deleted-cleaned": inspect.Leftover, "leftover-swap": inspect.Leftover,
	"leftover-swap-and-cleaned": inspect.Leftover, "leftover-swap-index-only": inspect.Leftover,
	"leftover-swap-merged": inspect.Leftover, "strange-files": inspect.Strange,
}

// damageName is a 10-* case's name without "10-crash-" or "10-clean-".
func damageName(c golden.Case) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.Name, "10-crash-"), "10-clean-")
}

// TestVerifyFindsDamage checks that every damage is found and called by its name.
func TestVerifyFindsDamage(t *testing.T) {
	for _, c := range golden.Cases(t, "10-") {
		want, ok := named[damageName(c)]
		if !ok {
			if !strings.HasPrefix(damageName(c), "intact") {
				t.Errorf("%s: no kind is expected for this damage", c.Name)
			}
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			fsys, dir := load(t, c, golden.Before)
			found := verify(t, fsys, dir)
			if !slices.ContainsFunc(found, func(f inspect.Finding) bool { return f.Kind == want }) {
				t.Errorf("no %s among\n%s", want, texts(found))
			}
			for _, f := range found {
				if f.Breaks == "" || f.Repair == "" || f.What == "" || !strings.HasPrefix(f.File, dir) {
					t.Errorf("incomplete: %+v", f)
				}
			}
		})
	}
}

// TestVerifyInUse holds the lock of the log directory: an append under way is no finding.
func TestVerifyInUse(t *testing.T) {
	for _, name := range []string{"10-crash-torn-tail", "10-crash-zero-tail", "10-crash-torn-header"} {
		c := golden.Load(t, name)
		fsys, dir := load(t, c, golden.Before)
		lock, err := fsys.Lock("/data/.lock")
		if err != nil {
			t.Fatal(err)
		}
		if found := verify(t, fsys, dir); len(found) > 0 {
			t.Errorf("%s in use:\n%s", name, texts(found))
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		if found := verify(t, fsys, dir); len(found) == 0 {
			t.Errorf("%s not in use: nothing found", name)
		}
	}
}

// change makes one change to the bytes of a file.
type change struct {
	what string
	data func(old []byte) []byte
}

// TestVerifyGeneratedDamage changes files of a small folder in every kind of way: each change is found, or is one that
// harms nobody.
func TestVerifyGeneratedDamage(t *testing.T) {
	c := golden.Load(t, "10-clean-intact")
	base, dir := load(t, c, golden.Before)
	tried, step := 0, 1
	if testing.Short() {
		step = 4
	}
	eachChange(t, base, dir, 8, step, func(fsys vfs.FS, file, what string, changed []byte) {
		tried++
		if found := verify(t, fsys, dir); len(found) == 0 && !harmless(t, fsys, dir, file, changed) {
			t.Errorf("%s, %s: not found", file, what)
		}
	})
	if tried < 500/step {
		t.Errorf("only %d changes tried", tried)
	}
}

// eachChange calls a function with a file system for every step-th change of every file in a folder.
func eachChange(t *testing.T, base vfs.FS, dir string, seed uint64, step int,
	do func(fsys vfs.FS, file, what string, changed []byte)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, seed))
	entries, err := base.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if e.IsDir() {
			continue
		}
		old, err := vfs.ReadFile(base, name)
		if err != nil {
			t.Fatal(err)
		}
		for i, ch := range changes(rng, len(old)) {
			changed := ch.data(slices.Clone(old))
			if i%step != 0 || string(changed) == string(old) {
				continue
			}
			fsys := vfs.Overlay(base)
			replace(t, fsys, name, changed)
			do(fsys, e.Name(), ch.what, changed)
		}
	}
}

// changes are bit flips, cuts, swaps, zeros and insertions spread over n bytes.
func changes(rng *rand.Rand, n int) (out []change) {
	if n == 0 {
		return nil
	}
	for range min(n, 60) {
		at, bit := rng.IntN(n), byte(1)<<rng.IntN(8)
		out = append(out, change{fmt.Sprintf("bit %#x of byte %d flipped", bit, at),
			func(b []byte) []byte { b[at] ^= bit; return b }})
	}
	for range min(n, 8) {
		at, size := rng.IntN(n), 1+rng.IntN(40)
		end := min(n, at+size)
		other := rng.IntN(n)
		out = append(out,
			change{fmt.Sprintf("cut to %d bytes", at), func(b []byte) []byte { return b[:at] }},
			change{fmt.Sprintf("bytes %d to %d zero", at, end), func(b []byte) []byte { clear(b[at:end]); return b }},
			change{fmt.Sprintf("bytes %d to %d removed", at, end), func(b []byte) []byte { return slices.Delete(b, at, end) }},
			change{fmt.Sprintf("bytes %d to %d put in at %d", at, end, other), func(b []byte) []byte {
				return slices.Insert(b, other, slices.Clone(b[at:end])...)
			}})
	}
	return out
}

// harmless reports whether a changed file still leads every look-up right, or says what nobody can check.
func harmless(t *testing.T, fsys vfs.FS, dir, name string, data []byte) bool {
	log, err := vfs.ReadFile(fsys, filepath.Join(dir, strings.Split(name, ".")[0]+".log"))
	base, _ := strconv.ParseInt(strings.Split(name, ".")[0], 10, 64)
	switch {
	case name == "partition.metadata":
		return true // the id of a topic: only the cluster knows it
	case name == "leader-epoch-checkpoint":
		return strings.HasPrefix(string(data), "0\n2\n0 0\n") // the second epoch begins at the end of the log
	case err != nil:
		t.Fatal(err)
	case strings.HasSuffix(name, ".index"):
		return goodOffsets(data, log, base)
	case strings.HasSuffix(name, ".timeindex"):
		return goodTimes(data, log, base)
	}
	return false
}

// goodOffsets holds an index against what a look-up needs: entries rise, and the batch at each position ends at or
// before the entry's offset.
func goodOffsets(data, log []byte, base int64) bool {
	last := map[int64]int64{}
	for _, b := range batches(log) {
		last[b.pos] = b.h.LastOffset
	}
	prev, prevPos := int64(-1), int64(-1)
	for ; len(data) >= 8; data = data[8:] {
		offset, pos := base+int64(binary.BigEndian.Uint32(data)), int64(binary.BigEndian.Uint32(data[4:]))
		end, ok := last[pos]
		if !ok || end > offset || offset <= prev || pos <= prevPos {
			return false
		}
		prev, prevPos = offset, pos
	}
	return len(data) == 0
}

// goodTimes holds a time index against what a look-up needs: no record before the batch of an entry is as new as it,
// the batch itself is, and the last entry has the largest timestamp.
func goodTimes(data, log []byte, base int64) bool {
	all, prev := batches(log), int64(-1)
	for ; len(data) >= 12; data = data[12:] {
		ts, offset := int64(binary.BigEndian.Uint64(data)), base+int64(binary.BigEndian.Uint32(data[8:]))
		for _, b := range all {
			if b.h.LastOffset < offset && b.h.MaxTimestamp >= ts ||
				b.h.BaseOffset <= offset && offset <= b.h.LastOffset && b.h.MaxTimestamp != ts {
				return false
			}
		}
		if ts <= prev {
			return false
		}
		prev = ts
	}
	for _, b := range all {
		if b.h.MaxTimestamp > prev {
			return false
		}
	}
	return len(data) == 0
}

type placed struct {
	h   record.Header
	pos int64
}

func batches(log []byte) (out []placed) {
	for pos := int64(0); ; {
		h, entry, rest, err := record.NextEntry(log)
		if err != nil {
			return out
		}
		out = append(out, placed{h, pos})
		pos, log = pos+int64(len(entry)), rest
	}
}

func replace(t *testing.T, fsys vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func hash(data []byte) string { return fmt.Sprintf("%d %x", len(data), sha256.Sum256(data)) }

// cutLate is a file system of a running broker that cuts an index at a roll: who opened it before sees the old length.
type cutLate struct {
	vfs.FS
	name string
	left int // how often
}

func (c *cutLate) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err == nil && name == c.name && c.left > 0 {
		c.left--
		return longer{f}, nil
	}
	return f, err
}

type longer struct{ vfs.File }

func (l longer) Stat() (fs.FileInfo, error) {
	info, err := l.File.Stat()
	return longerInfo{info}, err
}

type longerInfo struct{ fs.FileInfo }

func (l longerInfo) Size() int64 { return l.FileInfo.Size() + 800 }

// TestVerifyBesideRoll has an index cut between the look at its length and the reading.
func TestVerifyBesideRoll(t *testing.T) {
	base, dir := load(t, golden.Load(t, "10-clean-intact"), golden.Before)
	fsys := &cutLate{FS: base, name: filepath.Join(dir, "00000000000000000078.index"), left: 1}
	if found := verify(t, fsys, dir); len(found) > 0 || fsys.left > 0 {
		t.Errorf("found:\n%s", texts(found))
	}
}
