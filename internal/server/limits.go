package server

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync"
	"time"
)

// Limits bound connections; they can change while the server runs. A bound of 0 is none, a negative one admits none;
// of rates, which are connections per second, a negative one admits one after another, with the longest delay.
type Limits struct {
	// MaxConnections bounds all connections together (max.connections): further ones wait. When there are more, those
	// that were used least recently are closed.
	MaxConnections int
	// PerListener bounds those of a listener by its name; without an entry there is no bound of its own.
	PerListener map[string]int
	// Protected names a listener that MaxConnections and CreationRate do not hold up, though its connections count;
	// none of them is closed for others. Empty: none is.
	Protected string
	// PerIP bounds those of one address (max.connections.per.ip): further ones are closed.
	// PerIPOverrides are exceptions; there 0, too, admits none of the address.
	PerIP          int
	PerIPOverrides map[netip.Addr]int

	// CreationRate bounds new connections of all listeners together (max.connection.creation.rate), those of
	// CreationRates of a listener by its name: one above is let in later, and holds up those behind it.
	CreationRate  int
	CreationRates map[string]int
	// IPCreationRate bounds new connections of each address (connection_creation_rate of the quotas of IPs): one above
	// is closed, after a delay. IPCreationRates are exceptions.
	IPCreationRate  int
	IPCreationRates map[netip.Addr]int
}

// limits counts connections, in total, per listener and per address, and how fast they come.
type limits struct {
	windows Windows
	now     func() time.Time
	began   time.Time // times of rates are counted from here

	mu        sync.Mutex
	bounds    Limits
	total     int
	listeners map[string]int
	counts    map[netip.Addr]int
	moved     chan struct{} // closed when there may be room

	rate          rate
	listenerRates map[string]*rate
	ipRates       map[netip.Addr]*rate
	swept         int64 // when ipRates was last rid of addresses without events
}

func newLimits(o *Options) *limits {
	return &limits{windows: o.Windows, now: o.Now, began: o.Now(), bounds: o.Limits.clone(), listeners: map[string]int{},
		counts: map[netip.Addr]int{}, moved: make(chan struct{}), listenerRates: map[string]*rate{},
		ipRates: map[netip.Addr]*rate{}}
}

func (l Limits) clone() Limits {
	l.PerListener, l.PerIPOverrides = maps.Clone(l.PerListener), maps.Clone(l.PerIPOverrides)
	l.CreationRates, l.IPCreationRates = maps.Clone(l.CreationRates), maps.Clone(l.IPCreationRates)
	return l
}

// SetLimits puts other limits in force. Of connections above a lower MaxConnections those that were used least recently
// are closed; a connection that is delayed waits as long as it would have.
func (s *Server) SetLimits(l Limits) {
	s.limits.set(l)
	s.closeExcess()
}

func (l *limits) set(bounds Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds = bounds.clone()
	l.wakeLocked()
}

func (l *limits) wakeLocked() {
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *limits) nowMs() int64 { return l.now().Sub(l.began).Milliseconds() }

// arrive counts a new connection and tells how long it has to be held up.
//
// Kafka: ConnectionQuotas (KIP-612).
func (l *limits) arrive(listener string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowMs()
	var wait time.Duration
	if listener != l.bounds.Protected {
		l.rate.add(l.windows, now, 1)
		wait = l.excess(&l.rate, now, l.bounds.CreationRate)
	}
	own := l.listenerRates[listener]
	if own == nil {
		own = &rate{}
		l.listenerRates[listener] = own
	}
	own.add(l.windows, now, 1)
	return max(wait, l.excess(own, now, l.bounds.CreationRates[listener]))
}

func (l *limits) excess(r *rate, now int64, bound int) time.Duration {
	if bound == 0 {
		return 0
	}
	return r.excess(l.windows, now, float64(max(bound, 0)))
}

// errTooMany refuses a connection whose address has as many as it may.
var errTooMany = errors.New("too many from its address")

// tooFastError refuses a connection whose address makes too many: it is to be closed after a delay.
type tooFastError struct{ delay time.Duration }

func (e *tooFastError) Error() string { return "its address makes connections too fast" }

// admit counts a connection that has arrived, or refuses it with errTooMany or a *tooFastError. It waits for room in
// total; the error is that of ctx when it ends.
//
// Kafka: a connection above max.connections is accepted and then waits, one
// above max.connections.per.ip is closed.
func (l *limits) admit(ctx context.Context, listener string, ip netip.Addr) error {
	for {
		l.mu.Lock()
		if l.roomLocked(listener) {
			defer l.mu.Unlock()
			return l.countLocked(listener, ip)
		}
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *limits) roomLocked(listener string) bool {
	b := &l.bounds
	return (listener == b.Protected || below(l.total, b.MaxConnections)) &&
		below(l.listeners[listener], b.PerListener[listener])
}

func below(n, bound int) bool { return bound == 0 || n < bound }

func (l *limits) countLocked(listener string, ip netip.Addr) error {
	if wait := l.hastyLocked(listener, ip); wait > 0 {
		return &tooFastError{wait}
	}
	limit, ok := l.bounds.PerIPOverrides[ip]
	if !ok {
		limit = l.bounds.PerIP
	}
	if l.counts[ip] >= limit && (limit != 0 || ok) {
		return errTooMany
	}
	l.total++
	l.listeners[listener]++
	l.counts[ip]++
	return nil
}

// hastyLocked counts a connection of an address with a rate of its own. One that comes too soon counts nowhere.
func (l *limits) hastyLocked(listener string, ip netip.Addr) time.Duration {
	bound, ok := l.bounds.IPCreationRates[ip]
	if !ok {
		bound = l.bounds.IPCreationRate
	}
	if bound == 0 {
		return 0
	}
	now := l.nowMs()
	l.sweepLocked(now)
	r := l.ipRates[ip]
	if r == nil {
		r = &rate{}
		l.ipRates[ip] = r
	}
	r.add(l.windows, now, 1)
	wait := l.excess(r, now, bound)
	if wait > 0 {
		r.add(l.windows, now, -1)
		l.listenerRates[listener].add(l.windows, now, -1)
		if listener != l.bounds.Protected {
			l.rate.add(l.windows, now, -1)
		}
	}
	return wait
}

// sweepLocked forgets addresses that have made no connection in the windows, once in a span of them.
func (l *limits) sweepLocked(now int64) {
	if now-l.swept < int64(l.windows.Num)*l.windows.Size.Milliseconds() {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.ipRates, func(_ netip.Addr, r *rate) bool { return r.forgotten(l.windows, now) })
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

// above is how many connections there are too many, and the listener whose connections are not closed for it.
func (l *limits) above() (n int, protected string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bounds.MaxConnections == 0 {
		return 0, ""
	}
	return l.total - max(l.bounds.MaxConnections, 0), l.bounds.Protected
}
