package logdir

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/vfs"
)

// appendAt appends a record with a timestamp that lies ms from now.
func appendAt(t *testing.T, log *commitlog.Log, ms int64) {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1})
	if err := b.Append(testNow.UnixMilli()+ms, nil, []byte("v"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := log.AppendAsLeader(b.Bytes(), commitlog.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	log.UpdateHighWatermark(log.EndOffset())
}

// TestRetentionExplainsItself looks for old segments again and again: each cause is told once, and not too many at a
// time.
func TestRetentionExplainsItself(t *testing.T) {
	const topics = warningsAtOnce + 5
	fsys := vfs.NewMem()
	var text bytes.Buffer
	o := testOptions(fsys, &byHand{}, "/data")
	o.Logger = slog.New(slog.NewTextHandler(&text, nil))
	s := openSet(t, o)
	cfg := commitlog.DefaultConfig()
	cfg.RetentionMs = 60_000
	for i := range topics {
		log, err := s.Create(checkpoint.TopicPartition{Topic: fmt.Sprint("t", i), Partition: 3}, [16]byte{1}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		appendAt(t, log, 0)
		appendAt(t, log, 50*60_000)
	}
	warnings := func() (n int) {
		text.Reset()
		s.retain()
		for line := range strings.Lines(text.String()) {
			if !strings.Contains(line, "future") {
				continue
			}
			n++
			for _, want := range []string{"level=WARN", "topic=t", "partition=3", "segment=00000000000000000000.log", "offset=1",
				"timestamp=2026-09-24T02:36:49Z", "held_for=51m0s"} {
				if !strings.Contains(line, want) {
					t.Errorf("%s: no %s", line, want)
				}
			}
		}
		return n
	}
	for look, want := range []int{warningsAtOnce, topics - warningsAtOnce, 0, 0} {
		if got := warnings(); got != want {
			t.Errorf("look %d: %d warnings, want %d", look, got, want)
		}
	}
}
