package commitlog

import "tidemark/internal/producerstate"

// Producer is what the log knows of a producer; not ok: nothing.
func (l *Log) Producer(id int64) (e producerstate.Entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Get(id)
}

// ConfigureProducers puts other settings in force: how long a producer is known (producer.id.expiration.ms, 0 for
// Kafka's default), and whether transactions are verified ([Options.VerifyTransactions]).
func (l *Log) ConfigureProducers(expirationMs int64, verify bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if expirationMs == 0 {
		expirationMs = defaultProducerExpirationMs
	}
	l.o.ProducerIDExpirationMs, l.o.VerifyTransactions = expirationMs, verify
	l.producers.SetExpiration(expirationMs)
}
