package broker

import (
	"context"
	"time"

	"tidemark/internal/coordinator"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
)

// markerRetryAfter is the time after which a marker, or the record that closes a transaction, is tried again.
const markerRetryAfter = 100 * time.Millisecond

// makeCoordinators makes the coordinators; partitions come to them when this broker leads them.
func (b *Broker) makeCoordinators(context.Context) error {
	c := b.config()
	b.producerIDs = &coordinator.ProducerIDs{Door: b.quorum, Image: b.quorum.Image, NodeID: c.NodeID}
	b.markers = &coordinator.LocalMarkers{Clock: time.Now, Timeout: c.RequestTimeout}
	b.transactions = coordinator.NewTransactions(coordinator.TransactionsOptions{
		Machine: txn.Options{MaxTimeoutMs: int32(c.Transactions.MaxTimeout.Milliseconds()),
			ExpirationMs: c.Transactions.IDExpiration.Milliseconds(), Version: b.transactionVersion,
			NewProducerID: b.producerIDs.New},
		Image: b.quorum.Image, Markers: b.markers, Clock: time.Now, Timer: replica.RealTimer,
		Logger:      b.loggers.logger(coordinatorLogger),
		ExpireEvery: c.Transactions.ExpireInterval, RetryAfter: markerRetryAfter, WriteTimeout: c.RequestTimeout,
		AdmitRetryAfter: c.Transactions.AddRetryBackoff, AdmitRetryMax: c.Transactions.AddRetryBackoffMax,
		LoadBytes: int(c.Transactions.LoadBufferSizeBytes),
	})
	b.makeGroups(c)
	return nil
}

// transactionVersion is the finalized level of transaction.version, as far as it is built.
func (b *Broker) transactionVersion() int16 {
	return min(b.quorum.Image().FeatureLevel(transactionVersionFeature), builtFeatures[transactionVersionFeature].Max)
}

// transactionVersionFeature tells by which protocol transactions end (KIP-890).
const transactionVersionFeature = "transaction.version"

// leadership tells the coordinators of the partitions that this broker begins or ceases to lead.
func (b *Broker) leadership(p *replica.Partition, leaderEpoch int32, leads bool) {
	if !b.readOnly() { // it would end transactions that were left open
		b.transactions.Leadership(p, leaderEpoch, leads)
	}
	b.groups.Leadership(p, leaderEpoch, leads)
}
