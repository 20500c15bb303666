// Package tidemark keeps logs in Kafka's own format inside a Go program, without a broker: append records, read them
// from an offset, and find the first record that is not earlier than a time.
//
// A [Store] is a log directory, as log.dirs of Kafka names it; a [Log] is one partition in it. What a Store writes is
// byte for byte what Kafka 4.3.1 would write, so Kafka's kafka-dump-log and Tidemark's offline tools read it.
// [OpenReadOnly] looks into the directories of Kafka and Tidemark brokers, also of running ones, and changes nothing.
//
//	store, err := tidemark.Open("events", tidemark.Options{})
//	log, err := store.Create("orders", 0)
//	offset, err := log.Append(tidemark.Record{Key: []byte("k"), Value: []byte("v")})
//	found, ok, err := log.OffsetForTime(time.Now().Add(-time.Hour))
//	for r, err := range log.Read(found.Offset) { … }
//
// Concurrency: all methods may be called by any goroutine. Readers do not wait for appends.
//
// Durability: Append reaches the page cache of the operating system and survives the end of the process; [Log.Flush]
// and [Store.Close] make it survive a power loss. Segments are flushed when they are full.
//
// To run a whole broker in a test, see package tidemarktest.
package tidemark
