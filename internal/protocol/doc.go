// Package protocol is Kafka's network protocol without the network: request
// and response headers, the tables of supported versions, the decoding of
// request bodies within bounds, and the exchange types that the server and the
// handlers share.
//
// Most messages are encoded and decoded by kmsg; [DecodeRequest] walks a body
// first, so that a forged count or a flood of tiny elements cannot make the
// decoder allocate more than [DecodeBound]. Produce and Fetch are on the hot
// path and written by hand: record bytes are aliased on the way in
// ([ProduceRequest]) and sent as ranges of a file on the way out
// ([FetchResponse.Encode]).
//
// Concurrency: tables are immutable; the other types belong to one goroutine
// at a time unless they say otherwise.
//
// Source: Apache Kafka 4.3.1, message schemas and measured answers; KIP-482
// (flexible versions), KIP-511 (client software), KIP-896 (removed versions).
package protocol
