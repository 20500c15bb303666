package logdir

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/cleaner"
	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/vfs"
)

// appendKey appends one record with a key.
func appendKey(t *testing.T, log *commitlog.Log, key, value string) {
	t.Helper()
	b := record.NewBuilder(record.DefaultBuilderOptions())
	if err := b.Append(testNow.UnixMilli(), []byte(key), []byte(value), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := log.AppendAsLeader(bytes.Clone(b.Bytes()), commitlog.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	log.UpdateHighWatermark(log.EndOffset())
}

// compactedTopic makes a compacted partition with a dirty segment.
func compactedTopic(t *testing.T, s *Set, tp checkpoint.TopicPartition) *commitlog.Log {
	t.Helper()
	c := commitlog.DefaultConfig()
	c.CleanupPolicy, c.MinCleanableDirtyRatio = commitlog.CleanupCompact, 0
	log, err := s.Create(tp, [16]byte{1}, c)
	if err != nil {
		t.Fatal(err)
	}
	appendKey(t, log, "a", "1")
	appendKey(t, log, "a", "2")
	if err := log.Roll(); err != nil {
		t.Fatal(err)
	}
	return log
}

func TestCompactionOfASet(t *testing.T) {
	fsys := vfs.NewMem()
	hand := &byHand{}
	o := testOptions(fsys, hand, "/one", "/two")
	o.Settings.Cleaner = cleaner.Config{DedupeBufferBytes: 1 << 20, LoadFactor: 0.9}
	s := openSet(t, o)
	tps := []checkpoint.TopicPartition{{Topic: "a"}, {Topic: "b"}}
	for _, tp := range tps {
		compactedTopic(t, s, tp)
	}
	if _, err := s.Create(checkpoint.TopicPartition{Topic: "plain"}, [16]byte{1}, commitlog.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	rounds := 0
	for s.Cleaner().Pass(context.Background()) {
		rounds++
	}
	if rounds != 2 {
		t.Errorf("rounds: got %d, want 2", rounds)
	}
	line := func(tp checkpoint.TopicPartition) (at int64, ok bool) {
		d, _ := s.DirectoryOf(tp)
		if d.Path == "" {
			d.Path = "/one"
		}
		all, err := checkpoint.ReadOffsets(fsys, d.Path+"/cleaner-offset-checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		at, ok = all[tp]
		return at, ok
	}
	for _, tp := range tps {
		if at, ok := line(tp); at != 2 || !ok {
			t.Errorf("first dirty offset of %s: got %d, %v, want 2", tp, at, ok)
		}
	}
	// A topic made anew under the old name is dirty from its start.
	if err := s.Delete(tps[0]); err != nil {
		t.Fatal(err)
	}
	log := compactedTopic(t, s, tps[0])
	if !s.Cleaner().Pass(context.Background()) {
		t.Error("the new topic was not compacted")
	}
	slice, err := log.Read(0, commitlog.ReadOptions{MaxBytes: 1000, UpTo: 2})
	if err != nil {
		t.Fatal(err)
	}
	data, err := slice.Bytes()
	slice.Release()
	if h, herr := record.ParseHeader(data); err != nil || herr != nil || h.BaseOffset != 1 {
		t.Errorf("the first batch of the new topic has offset %d, want 1; %v %v", h.BaseOffset, err, herr)
	}
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenCleanerCheckpointTakesDirectoryOffline(t *testing.T) {
	fsys := vfs.NewMem()
	s := openSet(t, testOptions(fsys, &byHand{}, "/one", "/two"))
	tp := checkpoint.TopicPartition{Topic: "a"}
	compactedTopic(t, s, tp)
	d, _ := s.DirectoryOf(tp)
	if err := vfs.WriteFileAtomic(fsys, d.Path+"/cleaner-offset-checkpoint", []byte("junk")); err != nil {
		t.Fatal(err)
	}
	if s.Cleaner().Pass(context.Background()) {
		t.Error("compacted without knowing from where")
	}
	for _, one := range s.Directories() {
		if (one.Err != nil) != (one.Path == d.Path) {
			t.Errorf("%s: %v", one.Path, one.Err)
		}
	}
}

// TestDeletedWhileCompacted deletes a topic in the middle of its round: nothing fails for it.
func TestDeletedWhileCompacted(t *testing.T) {
	fsys := vfs.NewMem()
	hand := &waiting{asleep: make(chan struct{}, 10)}
	o := testOptions(fsys, hand, "/data")
	o.Settings.Cleaner = cleaner.Config{DedupeBufferBytes: 1 << 20, LoadFactor: 0.9, BytesPerSecond: 1}
	s := openSet(t, o)
	tp := checkpoint.TopicPartition{Topic: "a"}
	compactedTopic(t, s, tp)
	for len(hand.asleep) > 0 {
		<-hand.asleep
	}
	done := make(chan bool)
	go func() { done <- s.Cleaner().Pass(context.Background()) }()
	<-hand.asleep // the round waits for its throttle
	if err := s.Delete(tp); err != nil {
		t.Fatal(err)
	}
	if <-done {
		t.Error("the round came to its end")
	}
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Directories() {
		if d.Err != nil {
			t.Errorf("%s is offline: %v", d.Path, d.Err)
		}
	}
	folders, err := fsys.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if strings.HasSuffix(f.Name(), "-delete") {
			return
		}
	}
	t.Errorf("no -delete folder in %v", folders)
}

// waiting is a scheduler that runs nothing later, and tells when something waits for it.
type waiting struct{ asleep chan struct{} }

func (w *waiting) Background(task func()) { task() }
func (w *waiting) After(time.Duration, func()) {
	select {
	case w.asleep <- struct{}{}:
	default:
	}
}
func (w *waiting) Every(_, _ time.Duration, _ func()) {}
