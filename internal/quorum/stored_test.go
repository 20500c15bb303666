package quorum

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestReadImage reads what Kafka wrote, with and without its snapshots, and changes nothing.
func TestReadImage(t *testing.T) {
	for _, tt := range []struct {
		from, to  string
		topics    int
		snapshots bool // can be done without
	}{
		{filepath.Join(golden.Load(t, "13-data").Path, "data"), "/data", 4, false},
		{"../metadata/testdata/restarts", "/data/" + folder, 2, true},
		{"testdata/dynamic", "/data", 1, true},
	} {
		fsys := vfs.NewMem()
		copyFolder(t, fsys, tt.from, tt.to)
		before := fsys.String()
		image, err := ReadImage(fsys, "/data")
		if err != nil || fsys.String() != before {
			t.Fatalf("%s: %v, or the folder was changed", tt.from, err)
		}
		if image.NumTopics() != tt.topics || image.MetadataVersion() != 30 || image.Offset() < 10 {
			t.Errorf("%s: %d topics, metadata.version %d, offset %d", tt.from, image.NumTopics(), image.MetadataVersion(),
				image.Offset())
		}
		if !tt.snapshots {
			continue
		}
		removeSnapshots(t, fsys)
		again, err := ReadImage(fsys, "/data")
		must(t, err)
		if d := diffContent(again, image); d != "" || again.Offset() != image.Offset() {
			t.Errorf("%s: without snapshots, up to %d: %s", tt.from, again.Offset(), d)
		}
	}
}

// TestReadImageAsAStart compares the image with that of the quorum which wrote it: with snapshots, without, and with a
// batch that a kill cut off.
func TestReadImageAsAStart(t *testing.T) {
	fsys := vfs.NewMem()
	q := mustOpen(t, testOptions(fsys, newClock()))
	epoch := start(t, q, -1)
	create(t, q, "one", 3)
	if _, _, err := q.MaybeSnapshot(); err != nil {
		t.Fatal(err)
	}
	create(t, q, "two", 1)
	want := q.Image()
	stop(t, q, epoch)
	mustClose(t, q)
	log := filepath.Join("/data", folder, "00000000000000000000.log")
	for _, torn := range []bool{false, true} {
		if torn {
			appendTo(t, fsys, log, 30)
		}
		image, err := ReadImage(fsys, "/data")
		if err != nil {
			t.Fatal(err)
		}
		if image.NumTopics() != 2 || image.Topic("two").ID != want.Topic("two").ID ||
			image.Topic("one").NumPartitions() != 3 || image.Offset() < want.Offset() {
			t.Errorf("torn %v: %s", torn, diffContent(image, want))
		}
	}
	flip(t, fsys, log, 200)
	image, err := ReadImage(fsys, "/data")
	if err == nil || image == nil || image.NumTopics() == 2 {
		t.Errorf("damaged: %v, topics %d", err, image.NumTopics())
	}
	if _, err := ReadImage(fsys, "/other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no metadata log: %v", err)
	}
}

func appendTo(t *testing.T, fsys vfs.FS, name string, n int) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	data := make([]byte, n)
	_, err = f.ReadAt(data, 0) // the beginning of a batch
	must(t, err)
	_, err = f.WriteAt(data, info.Size())
	must(t, err)
	must(t, f.Close())
}

func flip(t *testing.T, fsys vfs.FS, name string, pos int64) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], pos)
	must(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], pos)
	must(t, err)
	must(t, f.Close())
}
