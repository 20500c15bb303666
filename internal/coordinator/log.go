package coordinator

import (
	"fmt"

	"tidemark/internal/commitlog"
	"tidemark/internal/replica"
)

// Log is the log of one partition, as a coordinator needs it. [PartitionLog] makes one of a replica.
type Log interface {
	// Bounds are the offsets of the first record and after the last.
	Bounds() (start, end int64, err error)
	// Read appends the bytes of batches from an offset on, at least one whole batch; the last may be cut.
	Read(dst []byte, offset int64, maxBytes int) ([]byte, error)
	// Append appends one batch, which is rewritten in place, and returns the offsets of its first and last record.
	Append(batch []byte, o AppendOptions) (base, last int64, err error)
	HighWatermark() int64
	// Watch has moved called at each movement of the high watermark, until stop; moved must not block.
	Watch(moved func()) (stop func())
}

// AppendOptions describe an append of a coordinator.
type AppendOptions struct {
	// Verification is that of a transactional batch of a client; nil for others.
	Verification *replica.Verification
	// TransactionVersion is the version of the transaction that a marker ends.
	TransactionVersion int16
}

// PartitionLog is the log of a partition that this broker leads in a leader epoch. Appends fail when it leads no
// longer, or in a later epoch.
func PartitionLog(p *replica.Partition, leaderEpoch int32) Log {
	return partitionLog{p, leaderEpoch}
}

type partitionLog struct {
	*replica.Partition
	epoch int32
}

func (l partitionLog) Bounds() (start, end int64, err error) {
	log, err := l.Log()
	if err != nil {
		return 0, 0, err
	}
	return log.StartOffset(), log.EndOffset(), nil
}

func (l partitionLog) Read(dst []byte, offset int64, maxBytes int) ([]byte, error) {
	log, err := l.Log()
	if err != nil {
		return dst, err
	}
	slice, err := log.Read(offset, commitlog.ReadOptions{MaxBytes: maxBytes, MinOneBatch: true, UpTo: log.EndOffset()})
	if err != nil {
		return dst, fmt.Errorf("read %s at %d: %w", l.Name(), offset, err)
	}
	defer slice.Release()
	return slice.AppendTo(dst)
}

func (l partitionLog) Append(batch []byte, o AppendOptions) (base, last int64, err error) {
	info, err := l.Partition.Append(batch, replica.AppendOptions{Origin: commitlog.OriginCoordinator, AllInSync: true,
		LeaderEpoch: l.epoch, Verification: o.Verification, TransactionVersion: o.TransactionVersion})
	return info.BaseOffset, info.LastOffset, err
}

func (l partitionLog) Watch(moved func()) (stop func()) {
	w := &replica.Watcher{Moved: moved}
	l.Partition.Watch(w)
	return func() { l.Unwatch(w) }
}
