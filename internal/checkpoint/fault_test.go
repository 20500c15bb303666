package checkpoint

import (
	"maps"
	"math/rand/v2"
	"testing"

	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// freshDisk is an empty disk whose folder /d survives.
func freshDisk(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	must(t, m.MkdirAll("/d", 0o755))
	m.SyncAll()
	return m
}

// Whatever call fails, and whatever a power loss then leaves, a checkpoint is the
// old one or the new one; after success the new one.
func TestCheckpointSurvives(t *testing.T) {
	const name = "/d/" + RecoveryPointFile
	before, after := Offsets{{"a", 0}: 1}, Offsets{{"a", 0}: 2, {"b", 1}: 3}
	rng := rand.New(rand.NewPCG(1, 2))
	var disk *vfs.Mem
	fresh := func() vfs.FS {
		disk = freshDisk(t)
		must(t, WriteOffsets(disk, name, before))
		return disk
	}
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		err := WriteOffsets(fsys, name, after)
		for _, keep := range []float64{0, 0.5, 1} {
			got, rerr := ReadOffsets(disk.CrashClone(rng, keep), name)
			must(t, rerr)
			if !maps.Equal(got, after) && (err == nil || !maps.Equal(got, before)) {
				t.Errorf("write: %v; then the disk has %v", err, got)
			}
		}
		return err
	})
}

// A mark that was taken does not come back after a power loss.
func TestCleanShutdownIsTakenOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var disk *vfs.Mem
	fresh := func() vfs.FS {
		disk = freshDisk(t)
		must(t, WriteCleanShutdown(disk, "/d", 7))
		return disk
	}
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		got, err := TakeCleanShutdown(fsys, "/d")
		if err != nil {
			return err
		}
		if got != (CleanShutdown{true, 7}) {
			t.Errorf("%+v", got)
		}
		for range 10 {
			again, err := TakeCleanShutdown(disk.CrashClone(rng, 0.5), "/d")
			if err != nil || again.Found {
				t.Errorf("%+v %v", again, err)
			}
		}
		return nil
	})
}

// An epoch that was assigned is on the disk.
func TestAssignedEpochSurvives(t *testing.T) {
	const name = "/d/" + LeaderEpochFile
	rng := rand.New(rand.NewPCG(1, 2))
	var disk *vfs.Mem
	fresh := func() vfs.FS { disk = freshDisk(t); return disk }
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		l, err := OpenLeaderEpochs(fsys, name)
		if err != nil {
			return err
		}
		for epoch := range int32(3) {
			if _, err := l.Assign(epoch, int64(epoch)*10); err != nil {
				return err
			}
			again, err := OpenLeaderEpochs(disk.CrashClone(rng, 0.5), name)
			must(t, err)
			if last, ok := again.Latest(); !ok || last.Epoch != epoch {
				t.Errorf("epoch %d was assigned, the disk has %v", epoch, again.Entries())
			}
		}
		return nil
	})
}
