package server

import (
	"context"
	"net/netip"
	"sync"
)

// limits counts connections, in total and per address.
type limits struct {
	slots     chan struct{} // nil: no bound in total
	perIP     int           // ≤ 0: none
	overrides map[netip.Addr]int

	mu     sync.Mutex
	counts map[netip.Addr]int
}

func newLimits(o *Options) *limits {
	l := &limits{perIP: o.MaxConnectionsPerIP, overrides: o.PerIPOverrides, counts: make(map[netip.Addr]int)}
	if o.MaxConnections > 0 {
		l.slots = make(chan struct{}, o.MaxConnections)
	}
	return l
}

// admit counts a connection, or says false when its address has too many. It
// waits for room in total.
//
// Kafka: a connection above max.connections is accepted and then waits, one
// above max.connections.per.ip is closed.
func (l *limits) admit(ctx context.Context, ip netip.Addr) (bool, error) {
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	limit, ok := l.overrides[ip]
	if !ok {
		limit = l.perIP
	}
	l.mu.Lock()
	admitted := l.counts[ip] < limit || limit <= 0 && !ok
	if admitted {
		l.counts[ip]++
	}
	l.mu.Unlock()
	if !admitted && l.slots != nil {
		<-l.slots
	}
	return admitted, nil
}

// leave uncounts an admitted connection.
func (l *limits) leave(ip netip.Addr) {
	l.mu.Lock()
	if l.counts[ip]--; l.counts[ip] == 0 {
		delete(l.counts, ip)
	}
	l.mu.Unlock()
	if l.slots != nil {
		<-l.slots
	}
}
