// Package controller decides changes of the cluster: given an image of the
// metadata and a command, which records are to be appended to the metadata log,
// and what is answered.
//
// It owns no file and no message. [Controller.Decide] is a function of the
// image, the next offset of the log, the command and a source of random ids; it
// changes nothing. Whoever calls it appends the records, replays them, and only
// then answers.
//
// A refusal is an *[Error] with one of the Err… reasons, which package api maps
// to wire codes, and the text that Kafka sends. A command for several things
// (topics, resources) refuses each for itself, in its result.
//
// Concurrency: a Controller has no state; Decide may be called from any
// goroutine, but two decisions on the same image may contradict each other.
//
// Source: Kafka 4.3.1 org.apache.kafka.controller; KIP-631, KIP-746, KIP-858,
// KIP-966.
package controller
