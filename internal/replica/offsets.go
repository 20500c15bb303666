package replica

import (
	"tidemark/internal/commitlog"
)

// The special timestamps of ListOffsets.
const (
	Latest                = -1
	Earliest              = -2
	MaxTimestamp          = -3 // KIP-734
	EarliestLocal         = -4 // KIP-405
	LatestTiered          = -5 // KIP-1005
	EarliestPendingUpload = -6 // KIP-1023
	// DebugReplica is the replica id of a tool that may ask a follower.
	DebugReplica = -2
)

// OffsetQuery asks for the offset of a point in time.
type OffsetQuery struct {
	Timestamp   int64 // ms, or a special one
	LeaderEpoch int32 // the caller's; NoEpoch: not checked
	Replica     int32 // Consumer, DebugReplica, or a broker
	Isolation   commitlog.Isolation
	Trace       *commitlog.Trace // filled by a look-up by time; may be nil
}

// noOffset is the answer "none".
var noOffset = commitlog.Found{Timestamp: -1, Offset: -1, LeaderEpoch: -1}

// ListOffset answers an OffsetQuery; all of -1 when there is no such offset. What lies at or above the bound (high
// watermark, last stable offset, or log end for replicas) is not found.
//
// Errors: ErrNotLeader, ErrFencedLeaderEpoch, ErrUnknownLeaderEpoch, ErrOffsetNotAvailable, *logdir.OfflineError,
// and those of the log's look-ups.
func (p *Partition) ListOffset(q OffsetQuery) (commitlog.Found, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(q.LeaderEpoch)
	if q.Replica == DebugReplica {
		log, err = p.anyLog(q.LeaderEpoch)
	}
	if err != nil {
		return noOffset, err
	}
	marks := ReadResult{HighWatermark: p.hw.Load()}
	marks.LastStableOffset = log.LastStableOffset(marks.HighWatermark)
	upTo := bound(log, q.Replica, q.Isolation, marks)
	if q.Replica != Consumer {
		upTo = log.EndOffset()
	}
	switch q.Timestamp {
	case Latest:
		if p.lagsBehindEpoch(q.Replica, marks.HighWatermark) {
			return noOffset, ErrOffsetNotAvailable
		}
		return commitlog.Found{Timestamp: -1, Offset: upTo, LeaderEpoch: p.state.LeaderEpoch}, nil
	case Earliest, EarliestLocal:
		return commitlog.Found{Timestamp: -1, Offset: log.StartOffset(), LeaderEpoch: log.StartEpoch()}, nil
	case LatestTiered, EarliestPendingUpload:
		return noOffset, nil
	}
	return p.lookUp(log, q, upTo, marks.HighWatermark)
}

// lookUp answers a query that needs the time index.
func (p *Partition) lookUp(log *commitlog.Log, q OffsetQuery, upTo, hw int64) (commitlog.Found, error) {
	var found commitlog.Found
	var ok bool
	var err error
	if q.Timestamp == MaxTimestamp {
		found, ok, err = log.MaxTimestamp(upTo)
	} else {
		found, ok, err = log.OffsetForTime(q.Timestamp, upTo, q.Trace)
	}
	switch {
	case err != nil:
		return noOffset, err
	case ok:
		return found, nil
	case p.lagsBehindEpoch(q.Replica, hw):
		return noOffset, ErrOffsetNotAvailable
	default:
		return noOffset, nil
	}
}

// lagsBehindEpoch tells whether a consumer must wait: the new leader does not yet know which records of its
// predecessors all replicas have. The caller holds mu.
func (p *Partition) lagsBehindEpoch(replica int32, hw int64) bool {
	return replica == Consumer && p.epochStart > hw
}

// LegacyOffsets answers ListOffsets version 0: at most n offsets, newest first, see commitlog.Log.LegacyOffsets.
//
// Errors: ErrNotLeader, *logdir.OfflineError, one of the disk.
func (p *Partition) LegacyOffsets(timestamp int64, n int, replica int32) ([]int64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, err := p.leaderLog(NoEpoch)
	if err != nil {
		return nil, err
	}
	hw := p.hw.Load()
	if replica != Consumer {
		hw = log.EndOffset()
	}
	return log.LegacyOffsets(timestamp, n, hw)
}
