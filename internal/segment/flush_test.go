package segment

import (
	"errors"
	"testing"
)

// A flush together that meets an older failure of one segment leaves the others to be flushed.
func TestFlushTogetherKeepsDirt(t *testing.T) {
	good, bad := unsealed(t, 1), unsealed(t, 1)
	good.dirty.Store(true)
	failed := errors.New("disk")
	bad.dirty.err = failed
	syncs := 0
	sync := func() error { syncs++; return nil }
	if err := FlushTogether([]*Segment{good, bad}, sync); !errors.Is(err, failed) || syncs != 0 {
		t.Errorf("error %v, %d syncs", err, syncs)
	}
	if !good.dirty.Load() {
		t.Error("what was not made durable counts as clean")
	}
	if err := FlushTogether([]*Segment{good}, sync); err != nil || syncs != 1 || good.dirty.Load() {
		t.Errorf("alone: error %v, %d syncs, dirty %v", err, syncs, good.dirty.Load())
	}
}
