package logdir

import (
	"context"
	"strings"
	"testing"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/vfs"
)

// TestScrubIsRateLimited scrubs segments without seals: each step reads what the rate allows, and at the end all are
// proven.
func TestScrubIsRateLimited(t *testing.T) {
	fsys, hand := vfs.NewMem(), &byHand{}
	o := testOptions(fsys, hand, "/d")
	o.Settings.ScrubBytesPerSecond = 4 << 20
	s := openSet(t, o)
	tp := checkpoint.TopicPartition{Topic: "t"}
	log, err := s.Create(tp, [16]byte{1}, commitlog.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		for range 6 {
			appendOne(t, log, strings.Repeat("v", 500_000))
		}
		if err := log.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove("/d/t-0/" + commitlog.SealsFile); err != nil {
		t.Fatal(err)
	}
	s, err = Open(o)
	if err != nil {
		t.Fatal(err)
	}
	all := func(checkpoint.TopicPartition, [16]byte) Assignment {
		return Assignment{Assigned: true, Config: commitlog.DefaultConfig()}
	}
	if err := s.Load(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	if proven, unproven := s.Proven(); proven > 1 || unproven < 6 {
		t.Errorf("%d proven, %d unproven at the start", proven, unproven)
	}
	s.scrub()
	steps := 1
	for last := int64(0); s.Scrubbed().Running; steps++ {
		if n := s.Scrubbed().BytesRead - last; n > 1<<20+600_000 {
			t.Fatalf("a step read %d bytes", n)
		}
		last = s.Scrubbed().BytesRead
		hand.runAfter()
	}
	if steps < 10 {
		t.Errorf("%d steps for 18 MB at 1 MiB a step", steps)
	}
	if proven, unproven := s.Proven(); unproven > 1 {
		t.Errorf("%d proven, %d unproven at the end", proven, unproven)
	}
	if err := s.Close(-1); err != nil {
		t.Fatal(err)
	}
}
