package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/internal/producerstate"
	"tidemark/record"
	"tidemark/vfs"
)

// replay feeds the batches of a log, in order, to a producer state.
type replay struct {
	m *producerstate.Manager
}

// newReplay begins with the state of the snapshot at an offset, of which the caller knows that it can be read, or
// with none when there is no such snapshot.
func newReplay(fsys vfs.FS, t Target, at int64, snapshot bool) (*replay, error) {
	var snapshots []int64
	if snapshot {
		snapshots = []int64{at}
	}
	m := producerstate.New(producerstate.Options{
		FS: vfs.Overlay(fsys), Dir: t.Dir, Topic: t.Topic, Partition: t.Partition, ExpirationMs: math.MaxInt64,
	}, snapshots)
	if at > 0 {
		if err := m.TruncateAndReload(0, at, 0); err != nil {
			return nil, err
		}
	}
	m.SetEndOffset(at)
	return &replay{m}, nil
}

// batch takes a batch in. When it ends a transaction, done tells which; aborted is its entry in the transaction index.
func (r *replay) batch(h record.Header, entry []byte) (done *producerstate.CompletedTxn, aborted index.AbortedTxn,
	err error) {
	if !h.HasProducerID() || h.Magic < 2 {
		r.m.SetEndOffset(h.NextOffset())
		return nil, aborted, nil
	}
	b, err := commitlog.ProducerBatch(h, entry)
	if err != nil {
		return nil, aborted, err
	}
	done, lastStable, err := r.m.Replay(b)
	if err != nil {
		return nil, aborted, err
	}
	r.m.UpdateHighWatermark(h.NextOffset())
	if done != nil {
		aborted = index.AbortedTxn{
			ProducerID: done.ProducerID, FirstOffset: done.FirstOffset, LastOffset: done.LastOffset,
			LastStableOffset: lastStable,
		}
	}
	return done, aborted, nil
}

// readSnapshot reads a producer snapshot. The error is the disk's, fs.ErrNotExist or *CorruptSnapshotError.
func readSnapshot(fsys vfs.FS, dir string, at int64) ([]producerstate.Entry, error) {
	name := filepath.Join(dir, producerstate.SnapshotName(at))
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	entries, err := producerstate.DecodeSnapshot(data)
	var corrupt *producerstate.CorruptSnapshotError
	if errors.As(err, &corrupt) {
		corrupt.Name = name
	}
	return entries, err
}

// sameProducer compares what two states know of one producer; what they differ in, "" when in nothing.
func sameProducer(a, b *producerstate.Entry) string {
	la, _ := a.LastBatch()
	lb, _ := b.LastBatch()
	switch {
	case a.ProducerEpoch != b.ProducerEpoch:
		return fmt.Sprintf("epoch %d, by the log %d", a.ProducerEpoch, b.ProducerEpoch)
	case la.LastSequence != lb.LastSequence:
		return fmt.Sprintf("last sequence %d, by the log %d", la.LastSequence, lb.LastSequence)
	case la.LastOffset != lb.LastOffset || la.OffsetDelta != lb.OffsetDelta:
		return fmt.Sprintf("last batch %d to %d, by the log %d to %d", la.BaseOffset(), la.LastOffset, lb.BaseOffset(),
			lb.LastOffset)
	case a.CurrentTxnFirstOffset != b.CurrentTxnFirstOffset:
		return fmt.Sprintf("open transaction from %d, by the log %d", a.CurrentTxnFirstOffset, b.CurrentTxnFirstOffset)
	case a.CoordinatorEpoch != b.CoordinatorEpoch:
		return fmt.Sprintf("coordinator epoch %d, by the log %d", a.CoordinatorEpoch, b.CoordinatorEpoch)
	}
	return ""
}

// isAbsent reports whether an error says that a file is not there.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
