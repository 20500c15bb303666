// Package producerstate keeps, for one partition, what its log says about
// idempotent and transactional producers: epochs, the last batches of each, open
// transactions. It tells duplicates and gaps apart, and where the first
// transaction begins that readers of committed records must not see yet.
//
// Files owned: NNNNNNNNNNNNNNNNNNNN.snapshot, the state of all producers after
// the records below offset N.
//
// The state is a function of the log: replaying the batches from a snapshot on
// gives it again ([Manager.TruncateAndReload], [Manager.Replay]). A snapshot keeps
// only the last batch of each producer, so after a restart a duplicate is known
// one batch back, and up to [BatchesKept] back as new batches come.
//
// Concurrency: none. The lock of the log guards its Manager.
//
// Durability: a snapshot may be written without sync at a roll and synced later
// ([Manager.SyncSnapshot]). One that is damaged or short is found by its checksum,
// deleted, and the one before is used.
//
// Source: Kafka 4.3.1 ProducerStateManager, ProducerAppendInfo,
// ProducerStateEntry; KIP-98 (idempotence, transactions), KIP-360 (epoch bumps),
// KIP-890 (transactions v2).
package producerstate
