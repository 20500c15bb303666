package replica

import (
	"errors"
	"math"

	"tidemark/internal/commitlog"
)

// errDiverging ends the wait of a follower whose log diverges; its next read tells where.
var errDiverging = errors.New("log diverges")

// ReadRequest asks for the batches from an offset on.
type ReadRequest struct {
	Offset           int64
	LeaderEpoch      int32 // the caller's; NoEpoch: not checked
	LastFetchedEpoch int32 // leader epoch of the record before Offset; NoEpoch: not checked
	MaxBytes         int
	MinOneBatch      bool
	Isolation        commitlog.Isolation
	// Replica is Consumer, or the id of the follower that asks: it reads to the log end, and its log end is Offset.
	Replica int32
}

// EpochEnd is a leader epoch and the offset at which it ends, exclusive; (-1, -1) when not known.
type EpochEnd struct {
	Epoch     int32
	EndOffset int64
}

// ReadResult is the answer to a ReadRequest. Slice must be released.
type ReadResult struct {
	Slice            commitlog.Slice
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	// Diverging, when set, says that the caller's log left this one's history there; Slice is empty.
	Diverging *EpochEnd
}

// Read reads from the leader's log.
//
// Errors: ErrNotLeader, ErrFencedLeaderEpoch, ErrUnknownLeaderEpoch, *logdir.OfflineError,
// *commitlog.OffsetOutOfRangeError and those of commitlog.Log.Read.
func (p *Partition) Read(r ReadRequest) (ReadResult, error) {
	result, err := p.read(r)
	if err == nil && r.Replica >= 0 && result.Diverging == nil {
		p.reported(r.Replica, r.Offset)
	}
	return result, err
}

func (p *Partition) read(r ReadRequest) (ReadResult, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(r.LeaderEpoch)
	if err != nil {
		return ReadResult{}, err
	}
	if r.Replica >= 0 && !p.state.isReplica(r.Replica) {
		return ReadResult{}, ErrUnknownPartition
	}
	result := ReadResult{HighWatermark: p.hw.Load(), LogStartOffset: log.StartOffset()}
	result.LastStableOffset = log.LastStableOffset(result.HighWatermark)
	result.Diverging, err = diverging(log, r)
	if err != nil || result.Diverging != nil {
		return result, err
	}
	result.Slice, err = log.Read(r.Offset, commitlog.ReadOptions{
		MaxBytes: r.MaxBytes, MinOneBatch: r.MinOneBatch, Isolation: r.Isolation,
		UpTo: bound(log, r.Replica, r.Isolation, result)})
	return result, err
}

// Readable tells how many bytes Read would give, without a read where that can be told: with measure false any
// positive number stands for "some". A reader behind the active segment always has enough.
//
// Errors: as Read; also when the caller's log diverges. The answer to the reader is due then.
func (p *Partition) Readable(r ReadRequest, measure bool) (int64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(r.LeaderEpoch)
	if err != nil {
		return 0, err
	}
	marks := ReadResult{HighWatermark: p.hw.Load()}
	marks.LastStableOffset = log.LastStableOffset(marks.HighWatermark)
	upTo := bound(log, r.Replica, r.Isolation, marks)
	d, err := diverging(log, r)
	switch {
	case err != nil:
		return 0, err
	case r.Offset > log.EndOffset() || r.Offset < log.StartOffset():
		return 0, &commitlog.OffsetOutOfRangeError{Requested: r.Offset, Start: log.StartOffset(), End: log.EndOffset()}
	case d != nil:
		return 0, errDiverging
	case r.Offset >= upTo:
		return 0, nil
	case !measure:
		return 1, nil
	case r.Offset < log.ActiveBaseOffset():
		return math.MaxInt32, nil
	}
	slice, err := log.Read(r.Offset, commitlog.ReadOptions{MaxBytes: r.MaxBytes, UpTo: upTo})
	if err != nil {
		return 0, err
	}
	defer slice.Release()
	return int64(slice.SizeBytes), nil
}

// bound is the offset below which a reader sees records.
func bound(log *commitlog.Log, replica int32, isolation commitlog.Isolation, r ReadResult) int64 {
	switch {
	case replica >= 0:
		return log.EndOffset()
	case isolation == commitlog.ReadCommitted:
		return r.LastStableOffset
	default:
		return r.HighWatermark
	}
}

// diverging compares the caller's last record with this log's history. An epoch that this log has never reached says
// nothing of where the caller's log left it: *commitlog.OffsetOutOfRangeError, as for an offset below the log start.
//
// Kafka: Partition.readRecords (KIP-595).
func diverging(log *commitlog.Log, r ReadRequest) (*EpochEnd, error) {
	if r.LastFetchedEpoch == NoEpoch {
		return nil, nil
	}
	epoch, end := log.EpochEnd(r.LastFetchedEpoch)
	switch {
	case epoch < 0 || end < 0 || r.Offset < log.StartOffset():
		return nil, &commitlog.OffsetOutOfRangeError{Requested: r.Offset, Start: log.StartOffset(), End: log.EndOffset()}
	case epoch == r.LastFetchedEpoch && end >= r.Offset:
		return nil, nil
	}
	return &EpochEnd{Epoch: epoch, EndOffset: end}, nil
}

// EpochEnd is the largest leader epoch not above epoch and where it ends.
//
// Errors: ErrNotLeader, ErrFencedLeaderEpoch, ErrUnknownLeaderEpoch, *logdir.OfflineError.
func (p *Partition) EpochEnd(callerEpoch, epoch int32) (EpochEnd, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(callerEpoch)
	if err != nil {
		return EpochEnd{Epoch: -1, EndOffset: -1}, err
	}
	e, end := log.EpochEnd(epoch)
	return EpochEnd{Epoch: e, EndOffset: end}, nil
}
