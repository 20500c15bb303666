package replica

import (
	"fmt"

	"tidemark/internal/commitlog"
	"tidemark/record"
)

// AppendOptions describe an append on the leader.
type AppendOptions struct {
	Origin commitlog.Origin
	// AllInSync refuses the append when fewer replicas are in sync than min.insync.replicas (acks=all).
	AllInSync bool
	// LeaderEpoch is the epoch in which the caller believes this broker leads; NoEpoch: any.
	LeaderEpoch int32
	// Verification allows a transactional batch to begin a transaction in the partition; see
	// [Partition.BeginVerification].
	Verification *Verification
	// TransactionVersion is the version of the transaction that a marker ends.
	TransactionVersion int16
}

// Append appends one magic-2 batch, which is rewritten in place, to the leader's log and moves the high watermark.
// The caller that wants it on all in-sync replicas waits until the high watermark is above AppendInfo.LastOffset.
//
// Errors: ErrNotLeader, ErrFencedLeaderEpoch, ErrUnknownLeaderEpoch, ErrNotEnoughReplicas, *logdir.OfflineError,
// and those of commitlog.Log.AppendAsLeader.
func (p *Partition) Append(batch []byte, o AppendOptions) (commitlog.AppendInfo, error) {
	info, err := p.appendLocked(batch, o)
	if err == nil && !info.Duplicate {
		p.advance()
	}
	return info, err
}

func (p *Partition) appendLocked(batch []byte, o AppendOptions) (commitlog.AppendInfo, error) {
	refused := commitlog.AppendInfo{BaseOffset: -1, LastOffset: -1, LogAppendTime: -1, LogStartOffset: -1}
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(o.LeaderEpoch)
	if err != nil {
		return refused, err
	}
	if o.AllInSync && !p.state.enoughInSync() {
		return refused, ErrNotEnoughReplicas
	}
	c := commitlog.AppendOptions{LeaderEpoch: p.state.LeaderEpoch, Origin: o.Origin,
		TransactionVersion: o.TransactionVersion}
	if len(batch) >= record.HeaderSize && record.Batch(batch).IsTransactional() {
		return p.appendTransactional(log, batch, o, c)
	}
	return log.AppendAsLeader(batch, c)
}

// Replicated tells whether all in-sync replicas have the records up to an offset, inclusive. The error ends the wait
// for it.
//
// Errors: ErrNotLeader, *logdir.OfflineError, ErrUnknownPartition when the partition was deleted; with true
// ErrTooFewAfterAppend when by now fewer replicas are in sync than min.insync.replicas.
func (p *Partition) Replicated(offset int64) (bool, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, err := p.leaderLog(NoEpoch); err != nil {
		return false, err
	}
	switch {
	case p.hw.Load() <= offset:
		return false, nil
	case !p.state.enoughInSync():
		return true, ErrTooFewAfterAppend
	}
	return true, nil
}

// HighWatermarkOffset stands for the high watermark in DeleteRecords.
const HighWatermarkOffset = -1

// DeleteRecords moves the log start offset of the leader's log up to an offset, at most to the high watermark, and
// returns where it is then. Segments below it are deleted with the next look for old ones; followers take it over
// with their next fetch.
//
// Errors: ErrNotLeader, *logdir.OfflineError, ErrNotDeletable, *commitlog.OffsetOutOfRangeError and those of
// commitlog.Log.SetStartOffset.
func (p *Partition) DeleteRecords(offset int64) (int64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(NoEpoch)
	if err != nil {
		return -1, err
	}
	if !log.Config().CleanupPolicy.Delete() {
		return -1, ErrNotDeletable
	}
	mark := p.hw.Load()
	if offset == HighWatermarkOffset {
		offset = mark
	}
	if offset < 0 || offset > mark {
		return -1, &commitlog.OffsetOutOfRangeError{Requested: offset, Start: log.StartOffset(), End: mark}
	}
	if err := log.SetStartOffset(offset); err != nil {
		return -1, err
	}
	return log.StartOffset(), nil
}

// AppendFetched appends batches fetched from the leader, verbatim, and takes over the leader's high watermark and
// log start offset as far as the log reaches.
//
// Errors: ErrNotLeader when this broker leads the partition itself; those of commitlog.Log.AppendAsFollower.
func (p *Partition) AppendFetched(batches []byte, leaderHighWatermark, leaderLogStart int64) error {
	err := p.appendFetched(batches, leaderHighWatermark, leaderLogStart)
	if err == nil {
		p.notify()
	}
	return err
}

func (p *Partition) appendFetched(batches []byte, leaderHighWatermark, leaderLogStart int64) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.offline != nil {
		return p.offline
	}
	if p.state.Leader == p.nodeID {
		return fmt.Errorf("append fetched batches to %s: %w", p.Name(), ErrNotLeader)
	}
	if len(batches) > 0 {
		if _, err := p.log.AppendAsFollower(batches); err != nil {
			return err
		}
	}
	p.hwMu.Lock()
	defer p.hwMu.Unlock()
	if mark := min(leaderHighWatermark, p.log.EndOffset()); mark > p.hw.Load() {
		p.setHighWatermark(p.log, mark)
	}
	if leaderLogStart > p.log.StartOffset() {
		return p.log.SetStartOffset(leaderLogStart)
	}
	return nil
}

// TruncateDiverging cuts the log of a follower where it left the leader's history: diverging is the leader's
// largest epoch not above the follower's last, with its end offset there. It returns the new log end offset, from
// which to fetch next.
func (p *Partition) TruncateDiverging(diverging EpochEnd) (int64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.offline != nil {
		return 0, p.offline
	}
	if p.state.Leader == p.nodeID {
		return 0, fmt.Errorf("truncate %s: %w", p.Name(), ErrNotLeader)
	}
	to := diverging.EndOffset
	if epoch, end := p.log.EpochEnd(diverging.Epoch); epoch >= 0 {
		to = min(to, end)
	}
	to = min(to, p.log.EndOffset())
	if err := p.log.TruncateTo(to); err != nil {
		return 0, err
	}
	p.hwMu.Lock()
	defer p.hwMu.Unlock()
	if to < p.hw.Load() {
		p.setHighWatermark(p.log, to)
	}
	return p.log.EndOffset(), nil
}
