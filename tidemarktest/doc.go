// Package tidemarktest starts a Kafka broker inside a Go test, as net/http/httptest starts a server: in milliseconds,
// on a free port of the loopback interface, by default with its log in memory. Any Kafka client can talk to it, and it
// answers as `tidemark serve` does.
//
//	func TestOrders(t *testing.T) {
//		kafka := tidemarktest.Start(t, tidemarktest.Options{})
//		service := NewService(kafka.Addr())
//		…
//	}
//
// Topics are made on first use unless the config auto.create.topics.enable says otherwise. Consumer groups do not wait
// for more members (group.initial.rebalance.delay.ms is 0), so tests need not either.
//
// Concurrency: a Broker's methods but Restart and Close may be called by any goroutine.
package tidemarktest
