package config

import "time"

// Transactions are the settings of the transaction coordinator and of transactional produce requests.
type Transactions struct {
	MaxTimeout          time.Duration // transaction.max.timeout.ms
	IDExpiration        time.Duration // transactional.id.expiration.ms
	ExpireInterval      time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
	VerifyPartitions    bool          // transaction.partition.verification.enable
	AddRetryBackoff     time.Duration // add.partitions.to.txn.retry.backoff.ms
	AddRetryBackoffMax  time.Duration // add.partitions.to.txn.retry.backoff.max.ms
	LoadBufferSizeBytes int32         // transaction.state.log.load.buffer.size
}

func (n *Node) transactions() Transactions {
	return Transactions{
		MaxTimeout:          n.ms("transaction.max.timeout.ms"),
		IDExpiration:        n.ms("transactional.id.expiration.ms"),
		ExpireInterval:      n.ms("transaction.remove.expired.transaction.cleanup.interval.ms"),
		VerifyPartitions:    n.bool("transaction.partition.verification.enable"),
		AddRetryBackoff:     n.ms("add.partitions.to.txn.retry.backoff.ms"),
		AddRetryBackoffMax:  n.ms("add.partitions.to.txn.retry.backoff.max.ms"),
		LoadBufferSizeBytes: n.int("transaction.state.log.load.buffer.size"),
	}
}
