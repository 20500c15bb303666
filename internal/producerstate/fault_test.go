package producerstate

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// diskManager is the state of a partition on a disk that forgets nothing older.
func diskManager(t testing.TB, fsys vfs.FS, snapshots ...int64) *Manager {
	t.Helper()
	return New(Options{FS: fsys, Dir: "/p", ExpirationMs: day}, snapshots)
}

func partitionDisk(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	must(t, m.MkdirAll("/p", 0o755))
	m.SyncAll()
	return m
}

// replayTo takes in batches of one record, of two producers in turn, up to end.
func replayTo(t testing.TB, m *Manager, end int64) {
	t.Helper()
	for o := m.EndOffset(); o < end; o++ {
		_, _, err := m.Replay(data(o%2, 0, int32(o/2), 1, o))
		must(t, err)
	}
}

func stateBytes(m *Manager) []byte { return EncodeSnapshot(m.ActiveProducers()) }

// Whatever call fails, and whatever a power loss leaves of the snapshots, loading
// what is there and replaying the log gives the same state.
func TestSnapshotsSurvive(t *testing.T) {
	const end = 9
	rng := rand.New(rand.NewPCG(3, 4))
	truth := diskManager(t, partitionDisk(t))
	replayTo(t, truth, end)
	var disk *vfs.Mem
	fresh := func() vfs.FS { disk = partitionDisk(t); return disk }
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		err := writeSnapshots(t, diskManager(t, fsys), fsys)
		for _, keep := range []float64{0, 0.3, 0.7, 1} {
			clone := disk.CrashClone(rng, keep)
			var found []int64
			entries, rerr := clone.ReadDir("/p")
			must(t, rerr)
			for _, e := range entries {
				if offset, ok := ParseSnapshotName(e.Name()); ok {
					found = append(found, offset)
				}
			}
			m := diskManager(t, clone, found...)
			must(t, m.TruncateAndReload(0, end, 0))
			replayTo(t, m, end)
			if !bytes.Equal(stateBytes(m), stateBytes(truth)) {
				t.Errorf("keep %v, snapshots %v: %+v", keep, found, m.ActiveProducers())
			}
		}
		return err
	})
}

func writeSnapshots(t testing.TB, m *Manager, fsys vfs.FS) error {
	for _, end := range []int64{2, 5, 7} {
		replayTo(t, m, end)
		if _, _, err := m.Snapshot(false); err != nil {
			return err
		}
		if err := SyncSnapshot(fsys, "/p", end); err != nil {
			return err
		}
	}
	if err := m.RemoveStraySnapshots([]int64{0, 5}); err != nil {
		return err
	}
	if err := m.DeleteSnapshotsBefore(5); err != nil {
		return err
	}
	_, err := MarkDeleted(fsys, m.TakeSnapshot(5))
	return err
}

// A read error is not damage: nothing is deleted for it.
func TestReadErrorIsNotDamage(t *testing.T) {
	disk := partitionDisk(t)
	m := diskManager(t, disk)
	replayTo(t, m, 4)
	_, _, err := m.Snapshot(true)
	must(t, err)
	reads := func(op faultfs.Op, _ string) bool { return op == faultfs.ReadAt }
	failing := faultfs.Wrap(disk, &faultfs.Nth{N: 1, Match: reads})
	if err := diskManager(t, failing, 4).TruncateAndReload(0, 9, 0); err == nil {
		t.Error("no error")
	}
	m = diskManager(t, disk, 4)
	must(t, m.TruncateAndReload(0, 9, 0))
	if m.EndOffset() != 4 {
		t.Errorf("the snapshot is gone; end %d", m.EndOffset())
	}
}
