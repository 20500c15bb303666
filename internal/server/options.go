package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"tidemark/internal/protocol"
)

// Listener is one named address to accept connections on.
type Listener struct {
	// Name is Kafka's listener name, as in listeners=NAME://host:port.
	Name string
	// Net is closed by the server. Whatever wraps a listener of package net
	// fits, as tls.NewListener does; only plain TCP connections use sendfile.
	Net net.Listener
	// Gate says whether a request may go to the handler; the connection is
	// closed if not. It is called before each request. nil admits all.
	Gate func(c *protocol.Conn, h protocol.RequestHeader) bool
}

// Options configure a [Server]. Handler, Versions and Now must be set.
type Options struct {
	Handler  protocol.Handler
	Versions *protocol.Table
	// Now is the clock. Deadlines of sockets are derived from it, so it must
	// run with real time.
	Now func() time.Time
	// Sleep waits until d is over or ctx ends. nil: by a timer.
	Sleep   func(ctx context.Context, d time.Duration)
	Logger  *slog.Logger // nil: no log
	Metrics Metrics      // nil: no metrics

	// MaxRequestBytes bounds one frame (socket.request.max.bytes). 0 means
	// 104857600.
	MaxRequestBytes int32
	// MaxQueuedBytes bounds the request bytes of all connections
	// (queued.max.request.bytes); a single larger frame is let in alone. 0 or
	// less means no bound.
	MaxQueuedBytes int64
	// MaxInFlight bounds the requests of one connection that are not yet
	// answered. 0 means 64.
	MaxInFlight int
	// IdleTimeout ends a connection that neither sends nor waits for an answer
	// (connections.max.idle.ms), and one that does not take its answers. 0
	// means 10 minutes, negative none.
	IdleTimeout time.Duration
	// StallTimeout ends a connection that has request bytes reserved and does
	// not go on sending while MaxQueuedBytes is set. 0 means 30 seconds.
	StallTimeout time.Duration
	// Limits bound the connections, until SetLimits.
	Limits Limits
	// Windows are those of the rates in Limits. Without them there are 11 of a second.
	Windows Windows
	// SendBufferBytes and ReceiveBufferBytes are the buffers of sockets
	// (socket.send.buffer.bytes, socket.receive.buffer.bytes). 0 or less leaves
	// them to the system.
	SendBufferBytes    int
	ReceiveBufferBytes int
	// DiskReads bounds how many reads of cold file pages run at once. 0 means
	// 32.
	DiskReads int
}

const (
	defaultMaxRequestBytes = 100 << 20
	defaultMaxInFlight     = 64
	defaultIdleTimeout     = 10 * time.Minute
	defaultStallTimeout    = 30 * time.Second
	defaultDiskReads       = 32
)

var defaultWindows = Windows{Num: 11, Size: time.Second}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// fill checks what must be set and puts in the defaults.
func (o *Options) fill() error {
	if o.Handler == nil || o.Versions == nil || o.Now == nil {
		return errors.New("server options: handler, versions and clock must be set")
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Windows.Num < 1 || o.Windows.Size < time.Millisecond {
		o.Windows = defaultWindows
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = defaultMaxRequestBytes
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = defaultMaxInFlight
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = defaultIdleTimeout
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = defaultStallTimeout
	}
	if o.DiskReads <= 0 {
		o.DiskReads = defaultDiskReads
	}
	return nil
}
