// Package api answers Kafka's requests: one file per API key, named by the key, each with the history of its
// versions on top. It is the only place with wire error codes.
//
// A request comes in as bytes through [API.Handle] (package server calls it), is checked against the authorizer,
// and goes down to package replica for records and offsets, or through the door of package quorum for changes of
// metadata. Handlers hold no state of their own but the fetch sessions.
//
// Concurrency: Handle is called by many connections at once, in arrival order within one. A handler that must wait
// (a long poll, acks=all) parks in package replica and answers from there; it holds no goroutine.
//
// Source: Kafka 4.3.1 KafkaApis, ControllerApis, ReplicaManager; the KIPs are named in the files.
package api
