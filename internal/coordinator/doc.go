// Package coordinator runs the coordinators of groups and transactions: for each partition of their internal topics
// that this broker leads, a state machine (a [Shard]) that is replayed from the partition's log and writes to it.
//
// The [Runtime] is the part that all coordinators share. When this broker becomes leader of a partition (Elect), it
// reads the log from start to end into a new shard; until then commands answer [ErrLoading]. A command runs in the
// partition's event loop, one at a time; what it wants written is appended and taken into the shard, and it is answered
// when that is on all in-sync replicas. The writes of commands that were queued at once go into one batch, as long as
// none of them can see what another one changes. Appends name the leader epoch of the election, so that a
// coordinator that lost its partition cannot write any more: it is fenced, and what waits answers
// [ErrNotCoordinator].
//
// [Transactions] are the transaction coordinator: package txn decides, this package writes the markers to the
// partitions and minds the time.
//
// Concurrency: a partition's loop runs on a goroutine only while there is something to do; an idle partition costs
// none. Shards are called by their loop alone and need no lock. Done functions are called on the loop (or by Do
// itself when it refuses at once) and must not block. Lock order: a partition's mutex is a leaf.
//
// Durability: a command is answered with success only when its records are below the high watermark. A write that
// was appended but not replicated in time answers [ErrNotAvailable]; it stays in the log and in the shard.
//
// Source: Kafka 4.3.1 CoordinatorRuntime, TransactionStateManager, TransactionMarkerChannelManager; KIP-848.
package coordinator
