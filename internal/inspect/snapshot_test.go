package inspect_test

import (
	"path/filepath"
	"testing"

	"tidemark/internal/inspect"
	"tidemark/internal/producerstate"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestOnlySnapshot takes the one producer snapshot of a log of one segment away: after a stop in good order nothing
// else tells Kafka of the producers. A killed broker's log may be without.
func TestOnlySnapshot(t *testing.T) {
	for _, clean := range []bool{true, false} {
		fsys, dir := loadData(t), "/data/t-a-2"
		if err := vfs.WriteFileAtomic(fsys, "/data/.kafka_cleanshutdown", nil); err != nil {
			t.Fatal(err)
		}
		if !clean {
			if err := fsys.Remove("/data/.kafka_cleanshutdown"); err != nil {
				t.Fatal(err)
			}
		}
		var name string
		var old []byte
		entries, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if at, ok := producerstate.ParseSnapshotName(e.Name()); ok && at > 0 {
				name = filepath.Join(dir, e.Name())
				old = read(t, fsys, dir, e.Name())
				if err := fsys.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		found := verify(t, fsys, dir)
		if hasFinding(found, inspect.SnapshotMissing, name) != clean || len(found) > 1 {
			t.Errorf("clean %v: found:\n%s", clean, texts(found))
		}
		if _, _, left, err := repair(t, fsys, dir, true); err != nil || len(left) > 0 {
			t.Errorf("%v, left:\n%s", err, texts(left))
		}
		if clean && string(read(t, fsys, dir, filepath.Base(name))) != string(old) {
			t.Error("the snapshot is not the one that it was")
		}
	}
}

// TestLateSnapshot has a snapshot of a state that the log does not reach.
func TestLateSnapshot(t *testing.T) {
	fsys, dir := load(t, golden.Load(t, "10-clean-intact"), golden.Before)
	late := filepath.Join(dir, producerstate.SnapshotName(5000))
	data := read(t, fsys, dir, producerstate.SnapshotName(166))
	if err := vfs.WriteFileAtomic(fsys, late, data); err != nil {
		t.Fatal(err)
	}
	if found := verify(t, fsys, dir); len(found) != 1 || !hasFinding(found, inspect.Leftover, late) ||
		found[0].Severity != inspect.Note {
		t.Errorf("found:\n%s", texts(found))
	}
}
