package logdir

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// byHand is a scheduler whose tasks run when a test says so.
type byHand struct {
	after []func()
	every []func()
}

func (s *byHand) Background(task func())                { task() }
func (s *byHand) After(_ time.Duration, task func())    { s.after = append(s.after, task) }
func (s *byHand) Every(_, _ time.Duration, task func()) { s.every = append(s.every, task) }
func (s *byHand) runAfter() {
	tasks := s.after
	s.after = nil
	for _, task := range tasks {
		task()
	}
}

var testNow = time.UnixMilli(1790214409427)

func testOptions(fsys vfs.FS, s Scheduler, dirs ...string) Options {
	random := rand.New(rand.NewPCG(1, uint64(len(dirs))))
	return Options{FS: fsys, Dirs: dirs, Settings: DefaultSettings(), Clock: func() time.Time { return testNow },
		NewID: func() (id [16]byte) {
			for i := range id {
				id[i] = byte(random.Uint32())
			}
			return id
		},
		Scheduler: s, Files: index.NewFileCache(fsys, 16), Pages: index.NewCache(1 << 20)}
}

// openSet opens, formats and loads a set in which every partition found is assigned.
func openSet(t *testing.T, o Options) *Set {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if err := s.Format("testcluster", 1); err != nil {
		t.Fatalf("format: %v", err)
	}
	all := func(checkpoint.TopicPartition, [16]byte) Assignment {
		return Assignment{Assigned: true, Config: commitlog.DefaultConfig()}
	}
	if err := s.Load(context.Background(), all); err != nil {
		t.Fatalf("load: %v", err)
	}
	return s
}

func appendOne(t *testing.T, log *commitlog.Log, value string) int64 {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1})
	if err := b.Append(testNow.UnixMilli(), nil, []byte(value), nil); err != nil {
		t.Fatal(err)
	}
	info, err := log.AppendAsLeader(b.Bytes(), commitlog.AppendOptions{})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return info.BaseOffset
}

func exists(t *testing.T, fsys vfs.FS, name string) bool {
	t.Helper()
	_, err := fsys.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestFolderNames(t *testing.T) {
	for _, c := range []struct {
		name, topic string
		partition   int32
		mark        string
		ok          bool
	}{
		{"a-0", "a", 0, "", true},
		{"my-topic.v1-12", "my-topic.v1", 12, "", true},
		{"gone-0.2af08171296f45338c56672857f2958d-delete", "gone", 0, deleteMark, true},
		{"ghost-3.6f7caada4be843dbaf633b7373e811e9-stray", "ghost", 3, strayMark, true},
		{"copy-3.6f7caada4be843dbaf633b7373e811e9-future", "copy", 3, futureMark, true},
		{"lost+found", "", 0, "", false},
		{"-1", "", 0, "", false},
		{"a-x", "", 0, "", false},
		{"a-delete", "", 0, deleteMark, false},
	} {
		tp, mark, ok := parseFolder(c.name)
		if ok != c.ok || ok && (tp.Topic != c.topic || tp.Partition != c.partition || mark != c.mark) {
			t.Errorf("parseFolder(%q): got %v %q %v, want %s-%d %q %v", c.name, tp, mark, ok, c.topic, c.partition,
				c.mark, c.ok)
		}
	}
	long := checkpoint.TopicPartition{Topic: strings.Repeat("x", 249), Partition: 7}
	if got := markedFolder(long, [16]byte{}, strayMark); len(got) != maxFolderName {
		t.Errorf("marked folder of a long topic has %d bytes, want %d", len(got), maxFolderName)
	}
}

func TestCleanStopAndStart(t *testing.T) {
	fsys := vfs.NewMem()
	s := openSet(t, testOptions(fsys, &byHand{}, "/data"))
	tp := checkpoint.TopicPartition{Topic: "a", Partition: 0}
	log, err := s.Create(tp, [16]byte{1}, commitlog.DefaultConfig())
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	for i := range 3 {
		if got := appendOne(t, log, "v"); got != int64(i) {
			t.Fatalf("offset: got %d, want %d", got, i)
		}
	}
	s.WriteHighWatermarks(func(checkpoint.TopicPartition) (int64, bool) { return 3, true })
	if err := s.Close(7); err != nil {
		t.Fatalf("close: %v", err)
	}
	points, err := vfs.ReadFile(fsys, "/data/recovery-point-offset-checkpoint")
	if err != nil || string(points) != "0\n1\na 0 3\n" {
		t.Errorf("recovery points: got %q, %v", points, err)
	}

	s = openSet(t, testOptions(fsys, &byHand{}, "/data"))
	if clean, epoch := s.CleanShutdown(); !clean || epoch != 7 {
		t.Errorf("clean shutdown: got %v, epoch %d, want true, 7", clean, epoch)
	}
	if exists(t, fsys, "/data/.kafka_cleanshutdown") {
		t.Error("clean marker is there while the set is open")
	}
	if hw := s.HighWatermark(tp); hw != 3 {
		t.Errorf("high watermark: got %d, want 3", hw)
	}
	log, err = s.Log(tp)
	if err != nil || log.EndOffset() != 3 {
		t.Fatalf("log after restart: end %v, error %v, want 3", log.EndOffset(), err)
	}
	if id, err := log.TopicID(); err != nil || id != [16]byte{1} {
		t.Errorf("topic id after restart: got %v, %v", id, err)
	}
}

func TestSecondSetIsRefused(t *testing.T) {
	fsys := vfs.NewMem()
	s := openSet(t, testOptions(fsys, &byHand{}, "/data"))
	if _, err := Open(testOptions(fsys, &byHand{}, "/data")); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second open: got %v, want ErrLocked", err)
	}
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
	again, err := Open(testOptions(fsys, &byHand{}, "/data"))
	if err != nil {
		t.Fatalf("open after close: %v", err)
	}
	_ = again.Close(-1)
}

func TestDirectoriesOfTwoNodesAreRefused(t *testing.T) {
	fsys := vfs.NewMem()
	for i, dir := range []string{"/one", "/two"} {
		s, err := Open(testOptions(fsys, &byHand{}, dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Format("cluster", int32(i+1)); err != nil {
			t.Fatal(err)
		}
		_ = s.Close(-1)
	}
	_, err := Open(testOptions(fsys, &byHand{}, "/one", "/two"))
	if err == nil || !strings.Contains(err.Error(), "node 2 of cluster cluster") {
		t.Errorf("got %v, want an error that names node 2", err)
	}
	// Nothing stays locked after a refusal.
	if s, err := Open(testOptions(fsys, &byHand{}, "/one")); err != nil {
		t.Errorf("open after refusal: %v", err)
	} else {
		_ = s.Close(-1)
	}
}

func TestPartitionsSpreadOverDirectories(t *testing.T) {
	fsys := vfs.NewMem()
	s := openSet(t, testOptions(fsys, &byHand{}, "/one", "/two"))
	for i := range 6 {
		if _, err := s.Create(checkpoint.TopicPartition{Topic: "a", Partition: int32(i)}, [16]byte{1},
			commitlog.DefaultConfig()); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range s.Directories() {
		if d.Partitions != 3 {
			t.Errorf("partitions in %s: got %d, want 3", d.Path, d.Partitions)
		}
	}
}

func TestDeletedPartitionWaitsAndGoes(t *testing.T) {
	fsys := vfs.NewMem()
	hand := &byHand{}
	s := openSet(t, testOptions(fsys, hand, "/data"))
	tp := checkpoint.TopicPartition{Topic: "gone", Partition: 0}
	log, err := s.Create(tp, [16]byte{1}, commitlog.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	appendOne(t, log, "still readable")
	slice, err := log.Read(0, commitlog.ReadOptions{MaxBytes: 1000, UpTo: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(tp); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if _, err := s.Log(tp); !errors.Is(err, ErrUnknownPartition) {
		t.Errorf("log of a deleted partition: got %v, want ErrUnknownPartition", err)
	}
	folders, _ := fsys.ReadDir("/data")
	marked := ""
	for _, f := range folders {
		if strings.HasPrefix(f.Name(), "gone-0.") && strings.HasSuffix(f.Name(), "-delete") {
			marked = f.Name()
		}
	}
	if marked == "" {
		t.Fatalf("no -delete folder in %v", folders)
	}
	hand.runAfter()
	if exists(t, fsys, filepath.Join("/data", marked)) {
		t.Error("deleted folder is still there after its delay")
	}
	if b, err := slice.Bytes(); err != nil || len(b) == 0 {
		t.Errorf("a read in flight lost its bytes: %d bytes, %v", len(b), err)
	}
	slice.Release()
}

func TestUnassignedPartitionIsStrandedNotRemoved(t *testing.T) {
	fsys := vfs.NewMem()
	s := openSet(t, testOptions(fsys, &byHand{}, "/data"))
	log, err := s.Create(checkpoint.TopicPartition{Topic: "ghost", Partition: 0}, [16]byte{9}, commitlog.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	appendOne(t, log, "kept")
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
	s, err = Open(testOptions(fsys, &byHand{}, "/data"))
	if err != nil {
		t.Fatal(err)
	}
	none := func(checkpoint.TopicPartition, [16]byte) Assignment {
		return Assignment{Config: commitlog.DefaultConfig()}
	}
	if err := s.Load(context.Background(), none); err != nil {
		t.Fatalf("load: %v", err)
	}
	entries, _ := fsys.ReadDir("/data")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "ghost-0.") && strings.HasSuffix(e.Name(), "-stray") {
			if data, err := vfs.ReadFile(fsys, filepath.Join("/data", e.Name(), "00000000000000000000.log")); err != nil ||
				len(data) == 0 {
				t.Errorf("stray log: %d bytes, %v", len(data), err)
			}
			return
		}
	}
	t.Errorf("no stray folder in %v", entries)
}

func TestForeignFolderStopsLoading(t *testing.T) {
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/data/lost+found", 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(testOptions(fsys, &byHand{}, "/data"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Load(context.Background(), nil)
	var name *NameError
	if !errors.As(err, &name) || name.Name != "lost+found" {
		t.Errorf("got %v, want *NameError for lost+found", err)
	}
}

func TestBrokenCheckpointTakesDirectoryOffline(t *testing.T) {
	fsys := vfs.NewMem()
	s := openSet(t, testOptions(fsys, &byHand{}, "/one", "/two"))
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.OpenFile("/one/recovery-point-offset-checkpoint", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("junk"), 0); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	s = openSet(t, testOptions(fsys, &byHand{}, "/one", "/two"))
	dirs := s.Directories()
	if dirs[0].Err == nil || dirs[1].Err != nil {
		t.Errorf("directories: got errors %v and %v, want only the first offline", dirs[0].Err, dirs[1].Err)
	}
	for i := range 2 {
		if _, err := s.Create(checkpoint.TopicPartition{Topic: "b", Partition: int32(i)}, [16]byte{1},
			commitlog.DefaultConfig()); err != nil {
			t.Errorf("create beside a failed directory: %v", err)
		}
	}
}
