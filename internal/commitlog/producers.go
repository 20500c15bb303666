package commitlog

import "tidemark/internal/producerstate"

// Producer is what the log knows of a producer; not ok: nothing.
func (l *Log) Producer(id int64) (e producerstate.Entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Get(id)
}
