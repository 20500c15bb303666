// Package txn is the state machine of a transaction coordinator: what each transactional id is doing, which requests
// it allows, and what must be written to __transaction_state before they are answered.
//
// A [Machine] holds the ids of one partition of that topic. It is pure: no clock, no goroutine, no file. A command
// checks a request and returns a [Write], the records that are to be appended; the caller appends them, tells the
// machine with Apply, and with Committed when they are on all in-sync replicas. Until then the id is pending and
// other commands for it answer [ErrConcurrent], so the state never runs ahead of the log, and a lost write changes
// nothing.
//
//	Empty ── Add ──▶ Ongoing ── End, time-out ──▶ PrepareCommit, PrepareAbort ── all markers ──▶ Complete…
//	  ▲                 ▲                                                                         │
//	  └──── Init ───────┴──────────────────────── Add ────────────────────────────────────────────┘
//
// Committed of a Prepare state returns the [Markers] that must be written to every partition of the transaction;
// each one written is told with Marked, after the last Complete makes the closing write. A machine that was loaded
// from the log returns the markers of all transactions in a Prepare state from Loaded, so that every partition gets
// its marker whatever was lost in between: a marker written twice does no harm.
//
// Two protocols live side by side, chosen by the version of the request (KIP-98, KIP-890): under transactions v2
// (version 2 here) each end of a transaction raises the producer epoch, and partitions are added by the first
// produce request.
//
// Concurrency: a Machine belongs to one goroutine at a time. Durability: the caller's.
//
// Source: Kafka 4.3.1 TransactionCoordinator, TransactionMetadata, TransactionLog, TransactionStateManager.
package txn
