package coordinator

import (
	"context"
	"errors"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
	"tidemark/record"
)

// The internal topics of coordinators.
const (
	OffsetsTopic      = "__consumer_offsets"
	TransactionsTopic = "__transaction_state"
)

// Marker is the end of a producer's transaction, as it is written to a partition.
type Marker struct {
	Producer         txn.Producer
	Commit           bool
	CoordinatorEpoch int32
	// Version is that of the transaction: from 2 on the epoch must be above the producer's last in the partition.
	Version int16
}

// Markers writes markers to partitions.
type Markers interface {
	// Write writes one marker to each partition and calls done once, with one error for each, nil where it is on
	// all in-sync replicas. It does not block; done may be called before it returns.
	Write(m Marker, partitions []checkpoint.TopicPartition, done func(errs []error))
}

// ErrTimedOut: a marker was appended but is not on all in-sync replicas in time. REQUEST_TIMED_OUT (7).
var ErrTimedOut = errors.New("not replicated in time")

// LocalMarkers writes markers to the partitions that this broker leads.
type LocalMarkers struct {
	Replicas *replica.Manager
	Clock    func() time.Time
	// Offsets ends transactions in a partition of __consumer_offsets, where the group coordinator must take note of
	// it; nil: they are written like any other.
	Offsets func(partition int32, m Marker, done func(error))
	Timeout time.Duration // for the replication
}

// Write implements [Markers]. Errors: those of replica.Partition.Append and of Offsets, ErrTimedOut.
func (l *LocalMarkers) Write(m Marker, partitions []checkpoint.TopicPartition, done func(errs []error)) {
	results := newGathering(len(partitions), done)
	var appended []appendedMarker
	for i, tp := range partitions {
		if tp.Topic == OffsetsTopic && l.Offsets != nil {
			l.Offsets(tp.Partition, m, func(err error) { results.set(i, err) })
			continue
		}
		p, last, err := l.append(m, tp)
		if err != nil || p.HighWatermark() > last {
			results.set(i, err)
			continue
		}
		appended = append(appended, appendedMarker{i, p, last})
	}
	if len(appended) > 0 {
		l.wait(appended, results)
	}
}

func (l *LocalMarkers) append(m Marker, tp checkpoint.TopicPartition) (*replica.Partition, int64, error) {
	p, err := l.Replicas.Partition(tp.Topic, tp.Partition)
	if err != nil {
		return nil, 0, err
	}
	o := record.DefaultBuilderOptions()
	o.ProducerID, o.ProducerEpoch = m.Producer.ID, m.Producer.Epoch
	batch, err := record.EndTxnMarker(o, l.Clock().UnixMilli(),
		record.EndTxn{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch})
	if err != nil {
		return nil, 0, err
	}
	info, err := p.Append(batch, replica.AppendOptions{Origin: commitlog.OriginCoordinator, AllInSync: true,
		LeaderEpoch: replica.NoEpoch, TransactionVersion: m.Version})
	return p, info.LastOffset, err
}

// appendedMarker waits for its replication.
type appendedMarker struct {
	index     int
	partition *replica.Partition
	last      int64 // offset
}

func (a appendedMarker) replicated() bool { return a.partition.HighWatermark() > a.last }

func (l *LocalMarkers) wait(all []appendedMarker, results *gathering) {
	partitions := make([]*replica.Partition, len(all))
	for i, a := range all {
		partitions[i] = a.partition
	}
	ready := func() bool {
		for _, a := range all {
			if !a.replicated() {
				return false
			}
		}
		return true
	}
	l.Replicas.Park(context.Background(), partitions, l.Timeout, ready, func(bool) {
		for _, a := range all {
			var err error
			if !a.replicated() {
				err = ErrTimedOut
			}
			results.set(a.index, err)
		}
	})
}
