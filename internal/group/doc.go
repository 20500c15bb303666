// Package group is the state machine of a group coordinator: the members of classic groups with their rebalances, the
// offsets that groups committed, and the records of __consumer_offsets in which both are kept.
//
// A [Machine] holds the groups of one partition of that topic. It is pure: no goroutine, no socket, no file; clock,
// timers and random ids come from a [Host]. Requests that wait, as joining and syncing do, take a function that is
// called with the answer, at once or later. A command that has something for the log returns a [Write]: the caller
// appends its records, calls Apply, and Stored with the outcome when they are on all in-sync replicas, or cannot be.
//
//	Empty ── first Join ──▶ PreparingRebalance ── all joined, or time is up ──▶ CompletingRebalance
//	  ▲                         ▲  │                                               │
//	  └── last member left ─────┼──┘                                               │ leader's Sync is stored
//	                            │                                                  ▼
//	                            └──── member joins, leaves or is lost ──────── Stable
//
// A group that was Empty waits for the initial rebalance delay, and as long again each time that members came, so
// that the members of a new application are in one generation.
//
// What a rebalance is made of (who has joined, who waits) is in memory alone: after another broker took over, the
// members of the last stored generation go on, and all others find that they are unknown and join again.
//
// Offsets of a transaction are pending until the marker of its producer; see [Machine.ReplayMarker].
//
// Concurrency: a Machine belongs to one goroutine at a time; answers are given on it and must not block.
// Durability: the caller's.
//
// Source: Kafka 4.3.1 GroupMetadataManager, OffsetMetadataManager, ClassicGroup; KIP-62, KIP-134, KIP-345, KIP-394.
package group
