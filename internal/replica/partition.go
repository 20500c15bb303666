package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/metadata"
)

// NoEpoch is a leader epoch that a caller does not know; it is not checked.
const NoEpoch = -1

// Consumer is the replica id of a client that is not a broker.
const Consumer = -1

// Partition is one partition of which this broker has a replica.
type Partition struct {
	Topic   string
	TopicID metadata.UUID
	ID      int32

	nodeID int32

	mu    sync.RWMutex // guards what follows up to hwMu
	state State
	log   *commitlog.Log
	// offline is why there is no log; nil: there is.
	offline error
	// config is what the log is made with when there is room for it.
	config TopicConfig
	// epochStart is the log end offset at which this broker became leader of the epoch.
	epochStart int64

	hwMu      sync.Mutex // guards followers and the movement of hw
	followers map[int32]*follower
	hw        atomic.Int64

	watchMu  sync.Mutex
	watchers map[*Watcher]struct{}

	verifyMu      sync.Mutex // taken after mu; guards verifications together with the appends that end them
	verifications map[int64]*Verification
}

// State is what the cluster says of a partition.
type State struct {
	Leader         int32 // broker id; -1: none
	LeaderEpoch    int32
	PartitionEpoch int32
	Replicas       []int32
	ISR            []int32
	// MinInSyncReplicas is the topic's min.insync.replicas; what counts is never more than there are replicas.
	MinInSyncReplicas int
}

// follower is what the leader knows of another replica.
type follower struct {
	logEnd int64 // -1: has not fetched in this epoch
}

func newPartition(topic string, id metadata.UUID, partition, nodeID int32) *Partition {
	return &Partition{Topic: topic, TopicID: id, ID: partition, nodeID: nodeID,
		state:    noState(),
		watchers: map[*Watcher]struct{}{}}
}

// noState is what is known of a partition before the cluster said something.
func noState() State { return State{Leader: -1, LeaderEpoch: -1, PartitionEpoch: -1} }

// Name is the topic and partition.
func (p *Partition) Name() checkpoint.TopicPartition {
	return checkpoint.TopicPartition{Topic: p.Topic, Partition: p.ID}
}

// State is what the cluster said of the partition last; its slices must not be changed.
func (p *Partition) State() State {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state
}

// Log is the partition's log.
//
// Errors: *logdir.OfflineError when its directory failed.
func (p *Partition) Log() (*commitlog.Log, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.log, p.offline
}

// HighWatermark is the offset below which every record is on all in-sync replicas.
func (p *Partition) HighWatermark() int64 { return p.hw.Load() }

// open gives the partition its log, with the high watermark of the last checkpoint.
func (p *Partition) open(log *commitlog.Log, highWatermark int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log, p.offline = log, nil
	p.setHighWatermark(log, min(max(highWatermark, log.StartOffset()), log.EndOffset()))
}

// fail takes the partition offline; those who wait are woken.
func (p *Partition) fail(cause error) {
	p.mu.Lock()
	p.offline = cause
	p.mu.Unlock()
	p.notify()
}

// apply takes on the role that the cluster gives this broker.
//
// Becoming leader of a new epoch writes the epoch with the log end offset into leader-epoch-checkpoint and forgets
// what was known of the followers. Becoming follower does not truncate: that waits for the leader's answer to the
// first fetch (KIP-595, diverging epoch).
func (p *Partition) apply(s State) error {
	p.mu.Lock()
	if p.offline != nil {
		p.state = s
		p.mu.Unlock()
		return nil
	}
	if s.LeaderEpoch < p.state.LeaderEpoch {
		p.mu.Unlock()
		return nil
	}
	newEpoch := s.LeaderEpoch > p.state.LeaderEpoch
	p.state = s
	leads := s.Leader == p.nodeID
	if newEpoch {
		p.dropVerifications()
	}
	if leads && newEpoch {
		if err := p.log.AssignEpoch(s.LeaderEpoch); err != nil {
			p.mu.Unlock()
			return err
		}
		p.epochStart = p.log.EndOffset()
	}
	p.trackFollowers(s, leads, newEpoch)
	p.mu.Unlock()
	if leads {
		p.advance()
	}
	p.notify()
	return nil
}

func (p *Partition) trackFollowers(s State, leads, newEpoch bool) {
	p.hwMu.Lock()
	defer p.hwMu.Unlock()
	if !leads {
		p.followers = nil
		return
	}
	known := p.followers
	p.followers = map[int32]*follower{}
	for _, id := range s.Replicas {
		switch {
		case id == p.nodeID:
		case !newEpoch && known[id] != nil:
			p.followers[id] = known[id]
		default:
			p.followers[id] = &follower{logEnd: -1}
		}
	}
}

// leaderLog is the log if this broker leads the partition and the caller's leader epoch fits. The caller holds mu.
func (p *Partition) leaderLog(callerEpoch int32) (*commitlog.Log, error) {
	if p.offline != nil {
		return nil, p.offline
	}
	if p.state.Leader != p.nodeID {
		if err := p.checkEpoch(callerEpoch); err != nil {
			return nil, err
		}
		return nil, ErrNotLeader
	}
	return p.log, p.checkEpoch(callerEpoch)
}

// anyLog is the log whatever the role; the leader epoch must fit.
func (p *Partition) anyLog(callerEpoch int32) (*commitlog.Log, error) {
	if p.offline != nil {
		return nil, p.offline
	}
	return p.log, p.checkEpoch(callerEpoch)
}

func (p *Partition) checkEpoch(caller int32) error {
	switch {
	case caller == NoEpoch || caller == p.state.LeaderEpoch:
		return nil
	case caller < p.state.LeaderEpoch:
		return ErrFencedLeaderEpoch
	default:
		return ErrUnknownLeaderEpoch
	}
}

// advance moves the high watermark to the smallest log end offset of the in-sync replicas and wakes those who
// wait. The log end may have moved without it, which wakes them too.
func (p *Partition) advance() {
	p.mu.RLock()
	log, isr := p.log, p.state.ISR
	if p.offline != nil || p.state.Leader != p.nodeID {
		p.mu.RUnlock()
		return
	}
	p.hwMu.Lock()
	mark := log.EndOffset()
	for _, id := range isr {
		if f := p.followers[id]; f != nil {
			mark = min(mark, f.logEnd)
		}
	}
	if mark > p.hw.Load() {
		p.setHighWatermark(log, mark)
	}
	p.hwMu.Unlock()
	p.mu.RUnlock()
	p.notify()
}

func (p *Partition) setHighWatermark(log *commitlog.Log, mark int64) {
	p.hw.Store(mark)
	log.UpdateHighWatermark(mark)
}

// reported notes how far a follower is: it asks for the offset after its last.
func (p *Partition) reported(replica int32, logEnd int64) {
	p.hwMu.Lock()
	f := p.followers[replica]
	moved := f != nil && logEnd > f.logEnd
	if moved {
		f.logEnd = logEnd
	}
	p.hwMu.Unlock()
	if moved {
		p.advance()
	}
}

// enoughInSync tells whether a produce request that waits for all in-sync replicas may append.
func (s State) enoughInSync() bool {
	return len(s.ISR) >= min(s.MinInSyncReplicas, len(s.Replicas))
}

// isReplica tells whether a broker has a replica of the partition.
func (s State) isReplica(id int32) bool { return slices.Contains(s.Replicas, id) }
