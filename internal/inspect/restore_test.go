package inspect_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestRepairRestores mends folders with changes of every kind in one file. No batch that is still there is lost or
// moved, a file beside the logs gets back the bytes that Kafka gave it, and a second repair finds nothing to do.
func TestRepairRestores(t *testing.T) {
	step := 18
	if testing.Short() {
		step = 54
	}
	for name, tree := range map[string]golden.Tree{
		"10-crash-intact": golden.Before, "10-clean-intact": golden.Before, "06-transactions-all-decided": golden.Dir0,
		"07-compacted": golden.Dir0,
	} {
		t.Run(name, func(t *testing.T) {
			base, dir := load(t, golden.Load(t, name), tree)
			each := step
			if strings.HasPrefix(name, "0") {
				each *= 3 // more files
			}
			eachChange(t, base, dir, 11, each, func(fsys vfs.FS, file, what string, changed []byte) {
				if file == "partition.metadata" {
					return // the id of a topic: only the cluster knows it
				}
				found := verify(t, fsys, dir)
				if _, _, left, err := repair(t, fsys, dir, true); err != nil {
					t.Fatalf("%s, %s: %v, left:\n%s", file, what, err, texts(left))
				}
				if _, again, _, err := repair(t, fsys, dir, true); err != nil || len(again) > 0 {
					t.Errorf("%s, %s: again %v, %v", file, what, again, err)
				}
				c := restored1{file: file, what: what, found: found, compacted: name == "07-compacted"}
				c.old, c.now = read(t, base, dir, file), read(t, fsys, dir, file)
				c.changed = changed
				c.check(t)
			})
		})
	}
}

func read(t *testing.T, fsys vfs.FS, dir, file string) []byte {
	t.Helper()
	data, err := vfs.ReadFile(fsys, filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// restored1 is one file before it was changed, changed, and mended.
type restored1 struct {
	file, what        string
	old, changed, now []byte
	found             []inspect.Finding
	compacted         bool
}

func (c *restored1) check(t *testing.T) {
	t.Helper()
	switch {
	case strings.HasSuffix(c.file, ".log"):
		c.checkLog(t)
	case len(c.found) == 0: // harmless: TestVerifyGeneratedDamage
	case c.compacted && !strings.HasSuffix(c.file, ".index") && !strings.HasSuffix(c.file, ".timeindex"):
		// made from records that are gone
	case c.file == "leader-epoch-checkpoint" && !bytes.HasSuffix(c.changed, []byte("\n5 166\n")):
		// an epoch in which nothing was written stands nowhere else
	default:
		old, now := c.old, c.now
		if strings.HasSuffix(c.file, "index") { // the last segment's have room for more in the folder of a killed broker
			old, now = bytes.TrimRight(old, "\x00"), bytes.TrimRight(now, "\x00")
			old = old[:min(len(old), len(now))] // and get a last entry when they are closed
			now = now[:len(old)]
		}
		if !bytes.Equal(old, now) {
			t.Errorf("%s, %s: not the bytes that it had, of %d %d\n%s", c.file, c.what, len(c.old), len(c.now), texts(c.found))
		}
	}
}

// checkLog looks for the batches that the change left whole.
func (c *restored1) checkLog(t *testing.T) {
	t.Helper()
	for rest := c.old; len(rest) > 0; {
		_, entry, behind, err := record.NextEntry(rest)
		if err != nil {
			t.Fatal(err)
		}
		rest = behind
		if bytes.Contains(c.changed, entry) && !bytes.Contains(c.now, entry) {
			t.Errorf("%s, %s: a whole batch is lost\n%s", c.file, c.what, texts(c.found))
			return
		}
	}
}

// TestRepairKeepsWhatALengthHides spoils a batch so that it seems to reach over the next ones: those stay, and a wrong
// length is restored.
func TestRepairKeepsWhatALengthHides(t *testing.T) {
	c := golden.Load(t, "10-clean-intact")
	for what, spoil := range map[string]func(b []byte, pos, size int) []byte{
		"length":  func(b []byte, pos, _ int) []byte { b[pos+10] ^= 2; return b },
		"missing": func(b []byte, pos, size int) []byte { return append(b[:pos+size-9], b[pos+size:]...) },
	} {
		fsys, dir := load(t, c, golden.Before)
		name := filepath.Join(dir, "00000000000000000000.log")
		old := read(t, fsys, dir, "00000000000000000000.log")
		all := batches(old)
		at := all[2]
		changed := spoil(bytes.Clone(old), int(at.pos), int(at.h.SizeBytes))
		replace(t, fsys, name, changed)
		_, _, left, err := repair(t, fsys, dir, true)
		if err != nil {
			t.Fatal(err)
		}
		now := batches(read(t, fsys, dir, "00000000000000000000.log"))
		want := len(all) - 1
		if what == "length" {
			want = len(all)
		}
		if len(now) != want {
			t.Errorf("%s: %d batches of %d, left:\n%s", what, len(now), len(all), texts(left))
		}
	}
}

// TestRepairPutsOffsetsRight spoils base offsets, which no checksum covers: where only one can have been there it is
// there again, and one that may be right is not touched.
func TestRepairPutsOffsetsRight(t *testing.T) {
	c := golden.Load(t, "10-clean-intact")
	file := "00000000000000000078.log"
	for what, tt := range map[string]struct {
		spoil    func(entry []byte)
		restored bool
	}{
		"zeros":           {func(b []byte) { clear(b[:8]) }, true},
		"one bit":         {func(b []byte) { b[6] ^= 8 }, true},
		"zeros and a bit": {func(b []byte) { clear(b[:12]); b[70] ^= 1 }, true},
	} {
		fsys, dir := load(t, c, golden.Before)
		old := read(t, fsys, dir, file)
		changed := bytes.Clone(old)
		tt.spoil(changed[batches(old)[3].pos:])
		replace(t, fsys, filepath.Join(dir, file), changed)
		_, _, left, err := repair(t, fsys, dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(read(t, fsys, dir, file), old) != tt.restored {
			t.Errorf("%s: restored %v, left:\n%s", what, !tt.restored, texts(left))
		}
	}
}

// TestCatGoesOnBehindDamage takes bytes out of a batch: all records but its own are printed, and exported.
func TestCatGoesOnBehindDamage(t *testing.T) {
	fsys, dir := load(t, golden.Load(t, "10-clean-intact"), golden.Before)
	cfg := commitlog.DefaultConfig()
	offsets := func(dir string) (out []int64) {
		err := inspect.Cat(fsys, target(t, fsys, dir), cfg, inspect.CatOptions{Control: true, Warn: func(string) {}},
			func(r inspect.Record) error {
				out = append(out, r.Offset)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := offsets(dir)
	file := "00000000000000000000.log"
	old := read(t, fsys, dir, file)
	at := batches(old)[5]
	end := int(at.pos) + int(at.h.SizeBytes)
	replace(t, fsys, filepath.Join(dir, file), append(bytes.Clone(old[:end-9]), old[end:]...))
	want = slices.DeleteFunc(want, func(o int64) bool { return o >= at.h.BaseOffset && o <= at.h.LastOffset })
	if got := offsets(dir); !slices.Equal(got, want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	copied, err := inspect.Export(fsys, target(t, fsys, dir), cfg, inspect.Range{}, "/out",
		time.UnixMilli(1_796_000_000_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := offsets(copied.Dir); !slices.Equal(got, want) || copied.Left == 0 {
		t.Errorf("%d records were exported, want %d; %d left out", len(got), len(want), copied.Left)
	}
}
