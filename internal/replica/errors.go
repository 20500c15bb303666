package replica

import "errors"

// Errors of partitions. Errors of the log and of log directories come as they are: *commitlog.AppendError,
// *commitlog.OffsetOutOfRangeError, *logdir.OfflineError, commitlog.ErrFailed.
var (
	// ErrUnknownPartition: the metadata has no such partition. UNKNOWN_TOPIC_OR_PARTITION (3).
	ErrUnknownPartition = errors.New("unknown topic or partition")
	// ErrUnknownTopicID: the metadata has no topic with this id. UNKNOWN_TOPIC_ID (100).
	ErrUnknownTopicID = errors.New("unknown topic id")
	// ErrNotLeader: another broker leads the partition. NOT_LEADER_OR_FOLLOWER (6).
	ErrNotLeader = errors.New("not the leader of the partition")
	// ErrFencedLeaderEpoch: the caller's leader epoch is older. FENCED_LEADER_EPOCH (74).
	ErrFencedLeaderEpoch = errors.New("leader epoch is older than the partition's")
	// ErrUnknownLeaderEpoch: the caller's leader epoch is newer. UNKNOWN_LEADER_EPOCH (75).
	ErrUnknownLeaderEpoch = errors.New("leader epoch is newer than the partition's")
	// ErrNotEnoughReplicas: fewer in-sync replicas than min.insync.replicas, nothing was appended.
	// NOT_ENOUGH_REPLICAS (19).
	ErrNotEnoughReplicas = errors.New("fewer in-sync replicas than min.insync.replicas")
	// ErrTooFewAfterAppend: the records are on all in-sync replicas, but these became fewer than min.insync.replicas.
	// NOT_ENOUGH_REPLICAS_AFTER_APPEND (20).
	ErrTooFewAfterAppend = errors.New("fewer in-sync replicas than min.insync.replicas after the append")
	// ErrNotDeletable: cleanup.policy of the topic does not include delete. POLICY_VIOLATION (44).
	ErrNotDeletable = errors.New("records cannot be deleted: cleanup.policy does not include delete")
	// ErrOffsetNotAvailable: the high watermark has not yet reached the start of the leader's epoch.
	// OFFSET_NOT_AVAILABLE (78).
	ErrOffsetNotAvailable = errors.New("high watermark lags behind the start of the leader's epoch")
)
