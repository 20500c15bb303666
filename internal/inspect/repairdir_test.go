package inspect_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/checkpoint"
	"tidemark/internal/inspect"
	"tidemark/test/golden"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// loadData copies a whole log directory of Kafka's into memory.
func loadData(t *testing.T) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	golden.Load(t, "13-data").CopyTo(t, fsys, golden.Data, "/data")
	return fsys
}

func hasFinding(found []inspect.Finding, kind inspect.Kind, file string) bool {
	return slices.ContainsFunc(found, func(f inspect.Finding) bool { return f.Kind == kind && f.File == file })
}

// TestTopicIDs takes the id of a topic away, spoils it, and changes it: Kafka takes the first for a stray, does not
// open the second, and serves nothing with the third. The first two are mended from the metadata log.
func TestTopicIDs(t *testing.T) {
	name := "/data/t-a-1/partition.metadata"
	for what, content := range map[string]string{"missing": "", "spoiled": "version: 0\ntopic_id: ?", "another": "t-b-0"} {
		t.Run(what, func(t *testing.T) {
			fsys := loadData(t)
			want, err := vfs.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			switch what {
			case "missing":
				err = fsys.Remove(name)
			case "spoiled":
				err = vfs.WriteFileAtomic(fsys, name, []byte(content))
			default:
				var other []byte
				if other, err = vfs.ReadFile(fsys, "/data/"+content+"/partition.metadata"); err == nil {
					err = vfs.WriteFileAtomic(fsys, name, other)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			kind := inspect.MetadataWrong
			if what == "another" {
				kind = inspect.NotAssigned
			}
			if found := verify(t, fsys, "/data"); len(found) != 1 || !hasFinding(found, kind, name) {
				t.Errorf("found:\n%s", texts(found))
			}
			summary, _, left, err := repair(t, fsys, "/data", true)
			if err != nil {
				t.Fatal(err)
			}
			now, _ := vfs.ReadFile(fsys, name)
			if what == "another" {
				if summary.Actions > 0 || summary.Left != 1 || string(now) == string(want) {
					t.Errorf("the id of another topic was replaced: %+v", summary)
				}
			} else if len(left) > 0 || string(now) != string(want) {
				t.Errorf("%q is not %q; left:\n%s", now, want, texts(left))
			}
		})
	}
}

// TestUnassignedFolder has a folder of a topic that the cluster does not know; where nobody tells what the cluster
// knows, nothing is said of it.
func TestUnassignedFolder(t *testing.T) {
	fsys := loadData(t)
	if err := fsys.Rename("/data/t-b-1", "/data/ghost-1"); err != nil {
		t.Fatal(err)
	}
	if found := verify(t, fsys, "/data"); len(found) != 1 ||
		!hasFinding(found, inspect.NotAssigned, "/data/ghost-1/partition.metadata") {
		t.Errorf("found:\n%s", texts(found))
	}
	if err := fsys.RemoveAll("/data/__cluster_metadata-0"); err != nil {
		t.Fatal(err)
	}
	if found := verify(t, fsys, "/data"); len(found) != 0 {
		t.Errorf("without a metadata log:\n%s", texts(found))
	}
}

// TestRepairCheckpoints spoils the checkpoints of a log directory, over which Kafka does not start. What can be read of
// them is kept, except what would have a log begin behind its end.
func TestRepairCheckpoints(t *testing.T) {
	for name, want := range map[string]checkpoint.Offsets{
		checkpoint.RecoveryPointFile:  {},
		checkpoint.LogStartOffsetFile: {{Topic: "t-a", Partition: 0}: 3, {Topic: "gone", Partition: 0}: 7},
		checkpoint.HighWatermarkFile:  {{Topic: "t-a", Partition: 0}: 3, {Topic: "gone", Partition: 0}: 7},
		checkpoint.CleanerOffsetFile:  {{Topic: "t-a", Partition: 0}: 3, {Topic: "gone", Partition: 0}: 7},
	} {
		fsys, file := loadData(t), "/data/"+name
		broken := "0\n5\nt-a 0 3\nt-a 1 4000\nt-a zero 5\nt-a 2 -1\nt-b 0 1 2\ngone 0 7\nt-b 0 9"
		if err := vfs.WriteFileAtomic(fsys, file, []byte(broken)); err != nil {
			t.Fatal(err)
		}
		if found := verify(t, fsys, "/data"); len(found) != 1 || !hasFinding(found, inspect.CheckpointBad, file) {
			t.Errorf("found:\n%s", texts(found))
		}
		if summary, _, _, err := repair(t, fsys, "/data", false); err != nil || summary.Left != 0 || summary.Actions != 2 {
			t.Errorf("%s: dry run: %v, %+v", name, err, summary)
		}
		if _, _, left, err := repair(t, fsys, "/data", true); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, left:\n%s", name, err, texts(left))
		}
		got, err := checkpoint.ReadOffsets(fsys, file)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for tp, offset := range want {
			if got[tp] != offset {
				t.Errorf("%s: %s is %d, want %d", name, tp, got[tp], offset)
			}
		}
		if kept, err := vfs.ReadFile(fsys, "/data/cut-"+name); err != nil || string(kept) != broken {
			t.Errorf("%s: kept %q, %v", name, kept, err)
		}
	}
	fsys := loadData(t)
	if err := fsys.Remove("/data/" + checkpoint.LogStartOffsetFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if found := verify(t, fsys, "/data"); len(found) > 0 {
		t.Errorf("without a checkpoint, which Kafka makes:\n%s", texts(found))
	}
}

// TestNodeFiles spoils, and takes away, the files without which a node does not start. A new state of the quorum is
// made where there is none.
func TestNodeFiles(t *testing.T) {
	for _, tt := range []struct {
		file, content string
		remove, told  bool
	}{
		{file: "/data/meta.properties", content: "junk", told: true},
		{file: "/data/meta.properties", remove: true, told: true},
		{file: "/data/__cluster_metadata-0/quorum-state", content: "{", told: true},
		{file: "/data/__cluster_metadata-0/quorum-state", content: `{"leaderId":1}`, told: true},
		{file: "/data/__cluster_metadata-0/quorum-state", remove: true},
	} {
		fsys := loadData(t)
		err := vfs.WriteFileAtomic(fsys, tt.file, []byte(tt.content))
		if tt.remove {
			err = fsys.Remove(tt.file)
		}
		if err != nil {
			t.Fatal(err)
		}
		found := verify(t, fsys, "/data")
		if told := hasFinding(found, inspect.CheckpointBad, tt.file); told != tt.told || len(found) > 1 {
			t.Errorf("%s, %q: found:\n%s", tt.file, tt.content, texts(found))
		}
		if summary, _, _, err := repair(t, fsys, "/data", true); err != nil || summary.Actions > 0 {
			t.Errorf("%s, %q: %v, %+v", tt.file, tt.content, err, summary)
		}
	}
}

// TestDamageToLogDir changes the files of a log directory that are in no partition's folder, and those of its
// metadata log, in every kind of way: looking and mending never fail, a second repair has nothing to do, and no file
// of the other partitions is touched.
func TestDamageToLogDir(t *testing.T) {
	step := 6
	if testing.Short() {
		step = 24
	}
	for dir, seed := range map[string]uint64{"/data": 12, "/data/__cluster_metadata-0": 13} {
		base := loadData(t)
		want := partitionFiles(t, base)
		eachChange(t, base, dir, seed, step, func(fsys vfs.FS, file, what string, _ []byte) {
			verify(t, fsys, "/data")
			if _, _, _, err := repair(t, fsys, "/data", true); err != nil {
				t.Errorf("%s, %s: %v", file, what, err)
			}
			if _, again, _, err := repair(t, fsys, "/data", true); err != nil || len(again) > 0 {
				t.Errorf("%s, %s: again %v, %v", file, what, err, again)
			}
			if got := partitionFiles(t, fsys); got != want {
				t.Errorf("%s, %s: other files were changed", file, what)
			}
		})
	}
}

// partitionFiles describes the files of all partitions but that of the metadata.
func partitionFiles(t *testing.T, fsys vfs.FS) string {
	t.Helper()
	folders, err := fsys.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, folder := range folders {
		if !folder.IsDir() || folder.Name() == "__cluster_metadata-0" {
			continue
		}
		dir := filepath.Join("/data", folder.Name())
		files, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out.WriteString(dir + "/" + f.Name() + " " + hash(read(t, fsys, dir, f.Name())) + "\n")
		}
	}
	return out.String()
}

// TestMetadataLogIsNotCut spoils a batch of the metadata log beyond what its checksum can restore: what follows
// builds on it, so it stays where it is, unlike a batch that one flipped bit is wrong in.
func TestMetadataLogIsNotCut(t *testing.T) {
	name := "/data/__cluster_metadata-0/00000000000000000000.log"
	for _, bytesWrong := range []int{1, 9} {
		fsys := loadData(t)
		old := read(t, fsys, "/data/__cluster_metadata-0", filepath.Base(name))
		changed := slices.Clone(old)
		for i := range bytesWrong {
			changed[2000+i] ^= 4
		}
		replace(t, fsys, name, changed)
		_, _, left, err := repair(t, fsys, "/data", true)
		if err != nil {
			t.Fatal(err)
		}
		want := changed
		if bytesWrong == 1 {
			want = old
		}
		if string(read(t, fsys, "/data/__cluster_metadata-0", filepath.Base(name))) != string(want) {
			t.Errorf("%d bytes wrong: the log is not what it should be; left:\n%s", bytesWrong, texts(left))
		}
		if bytesWrong > 1 && !hasFinding(left, inspect.BadChecksum, name) {
			t.Errorf("left:\n%s", texts(left))
		}
	}
}

// TestRepairDirInterrupted lets every call of a repair of the directory's own files fail, and then loses what was not
// synced: a repair of what is left comes to the same end.
func TestRepairDirInterrupted(t *testing.T) {
	base := loadData(t)
	broken := "0\n1\nt-a 0 3\njunk\n"
	if err := vfs.WriteFileAtomic(base, "/data/"+checkpoint.HighWatermarkFile, []byte(broken)); err != nil {
		t.Fatal(err)
	}
	if err := base.Remove("/data/t-a-1/partition.metadata"); err != nil {
		t.Fatal(err)
	}
	base.SyncAll()
	rng := rand.New(rand.NewPCG(4, 4))
	mended := func(fsys *vfs.Mem) string {
		if _, _, left, err := repair(t, fsys, "/data", true); err != nil || len(left) > 0 {
			t.Fatalf("%v, left:\n%s", err, texts(left))
		}
		return string(read(t, fsys, "/data", checkpoint.HighWatermarkFile)) +
			string(read(t, fsys, "/data", "cut-"+checkpoint.HighWatermarkFile)) +
			string(read(t, fsys, "/data/t-a-1", checkpoint.PartitionMetadataFile))
	}
	want := mended(base.CrashClone(rng, 1))
	if !strings.Contains(want, broken) {
		t.Fatalf("what was cut is not kept: %q", want)
	}
	for n := int64(1); ; n += 7 {
		disk := base.CrashClone(rng, 1)
		if _, _, _, err := repair(t, faultfs.Wrap(disk, &faultfs.Nth{N: n, Sticky: true}), "/data", true); err == nil {
			break
		}
		if got := mended(disk.CrashClone(rng, 0.5)); got != want {
			t.Fatalf("call %d failed: the repair comes to another end: %q", n, got)
		}
	}
}
