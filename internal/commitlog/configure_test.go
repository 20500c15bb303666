package commitlog

import (
	"errors"
	"testing"

	"tidemark/record"
)

// TestProducerSettingsChange: they hold for the next append, and for the next look for producers to forget.
func TestProducerSettingsChange(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	transactional := func(pid int64) []byte {
		o := record.DefaultBuilderOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = pid, 0, 0, true
		b := record.NewBuilder(o)
		must(t, b.Append(t0, []byte("k"), []byte("v"), nil))
		return b.Bytes()
	}
	_, err := w.log.AppendAsLeader(transactional(1), AppendOptions{})
	must(t, err)
	w.log.ConfigureProducers(1000, true)
	if _, err := w.log.AppendAsLeader(transactional(2), AppendOptions{}); !errors.Is(err, ErrInvalidTxnState) {
		t.Errorf("transactions are to be verified: %v", err)
	}
	w.log.ConfigureProducers(1000, false)
	_, err = w.log.AppendAsLeader(transactional(3), AppendOptions{})
	must(t, err)

	_, err = w.append(record.None, 7, []row{{ts: t0}})
	must(t, err)
	known := func() bool {
		for _, p := range w.log.ActiveProducers() {
			if p.ProducerID == 7 {
				return true
			}
		}
		return false
	}
	w.nowMs = t0 + 5000
	w.log.ConfigureProducers(10_000, false)
	if w.log.ExpireProducers(w.clock()); !known() {
		t.Error("forgotten before its time")
	}
	w.log.ConfigureProducers(1000, false)
	if w.log.ExpireProducers(w.clock()); known() {
		t.Error("still known")
	}
	must(t, w.log.Abandon())
}
