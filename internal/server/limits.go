package server

import (
	"context"
	"maps"
	"net/netip"
	"sync"
)

// Limits bound connections; they can change while the server runs. A bound of 0 is none.
type Limits struct {
	// MaxConnections bounds all connections together (max.connections): further ones wait.
	MaxConnections int
	// PerListener bounds those of a listener by its name; without an entry there is no bound of its own.
	PerListener map[string]int
	// PerIP bounds those of one address (max.connections.per.ip): further ones are closed; a negative one admits none.
	// PerIPOverrides are exceptions; there 0, too, admits none of the address.
	PerIP          int
	PerIPOverrides map[netip.Addr]int
}

// limits counts connections, in total, per listener and per address.
type limits struct {
	mu        sync.Mutex
	bounds    Limits
	total     int
	listeners map[string]int
	counts    map[netip.Addr]int
	moved     chan struct{} // closed when there may be room
}

func newLimits(o *Options) *limits {
	return &limits{bounds: o.Limits.clone(), listeners: map[string]int{}, counts: map[netip.Addr]int{},
		moved: make(chan struct{})}
}

func (l Limits) clone() Limits {
	l.PerListener, l.PerIPOverrides = maps.Clone(l.PerListener), maps.Clone(l.PerIPOverrides)
	return l
}

// SetLimits puts other limits in force. Connections that there are stay.
func (s *Server) SetLimits(l Limits) {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	s.limits.bounds = l.clone()
	s.limits.wakeLocked()
}

func (l *limits) wakeLocked() {
	close(l.moved)
	l.moved = make(chan struct{})
}

// admit counts a connection, or says false when its address has too many. It
// waits for room in total.
//
// Kafka: a connection above max.connections is accepted and then waits, one
// above max.connections.per.ip is closed.
func (l *limits) admit(ctx context.Context, listener string, ip netip.Addr) (bool, error) {
	for {
		l.mu.Lock()
		if l.roomLocked(listener) {
			defer l.mu.Unlock()
			return l.countLocked(listener, ip), nil
		}
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (l *limits) roomLocked(listener string) bool {
	own := l.bounds.PerListener[listener]
	return (l.bounds.MaxConnections <= 0 || l.total < l.bounds.MaxConnections) &&
		(own <= 0 || l.listeners[listener] < own)
}

func (l *limits) countLocked(listener string, ip netip.Addr) bool {
	limit, ok := l.bounds.PerIPOverrides[ip]
	if !ok {
		limit = l.bounds.PerIP
	}
	if l.counts[ip] >= limit && (limit != 0 || ok) {
		return false
	}
	l.total++
	l.listeners[listener]++
	l.counts[ip]++
	return true
}

// leave uncounts an admitted connection.
func (l *limits) leave(listener string, ip netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.listeners[listener]--; l.listeners[listener] == 0 {
		delete(l.listeners, listener)
	}
	if l.counts[ip]--; l.counts[ip] == 0 {
		delete(l.counts, ip)
	}
	l.wakeLocked()
}
