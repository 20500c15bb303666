package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/coordinator"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
	"tidemark/internal/quorum"
	"tidemark/internal/replica"
)

// Metadata is the cluster's metadata: the newest image and the door for changes.
type Metadata interface {
	quorum.Door
	Image() *metadata.Image
}

// Options are what the handlers work on. All but Logger, Loggers, Metrics and LookupHost are
// required.
type Options struct {
	NodeID     int32
	ClusterID  string
	Profile    protocol.Profile
	Metadata   Metadata
	Replicas   *replica.Manager
	Dirs       *logdir.Set
	Node       func() *config.Node // the broker's configs as they are now
	Authorizer auth.Authorizer
	Clock      func() time.Time
	Rand       func() uint64
	Logger     *slog.Logger
	Metrics    Metrics
	// Features are the features that ApiVersions tells of.
	Features func() protocol.Features
	// ConsumerGroups tells whether groups of the consumer protocol are served, if the cluster has them.
	ConsumerGroups func() bool
	// NewProducerID gives a producer id that nobody has had.
	NewProducerID func() (int64, error)
	Transactions  *coordinator.Transactions
	Markers       coordinator.Markers
	Groups        *coordinator.Groups
	// Quorum is the state of the metadata quorum now.
	Quorum func() Quorum
	// LookupHost tells whether a host's name has an address; nil: every name is taken.
	LookupHost func(ctx context.Context, host string) error
	// Loggers are the loggers of the BROKER_LOGGER resource; nil: there is none.
	Loggers Loggers
	// SlowLookup is the time from which on a look-up by time is logged with the way it took; 0: never.
	SlowLookup time.Duration
}

// Metrics counts what handlers see; nil fields are not counted.
type Metrics struct {
	// Error is told of each error code other than 0 in an answer.
	Error func(key, code int16)
	// Lookup is told of each look-up by time: what it considered and what it read.
	Lookup func(segments int, bytes int64, took time.Duration)
}

// API answers requests. It implements protocol.Handler.
type API struct {
	Options
	table    *protocol.Table
	handlers map[int16]handler
	sessions *fetchSessions
}

// handler serves one API key in a range of versions.
type handler struct {
	protocol.Range
	serve func(a *API, c *call)
}

// call is one request on its way through a handler.
type call struct {
	ctx     context.Context
	request *protocol.Request
	caller  auth.Context
	reply   func(protocol.Response)
}

func (c *call) version() int16 { return c.request.Header.Version }
func (c *call) key() int16     { return c.request.Header.Key }

// New makes an API that serves the versions of its profile.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{Options: o, handlers: map[int16]handler{}, sessions: newFetchSessions(o)}
	var built []protocol.Range
	for _, h := range handlers() {
		a.handlers[h.Key] = h
		built = append(built, h.Range)
	}
	a.table = protocol.NewTable(o.Profile, built)
	return a
}

// Versions is the table of what is accepted and advertised.
func (a *API) Versions() *protocol.Table { return a.table }

// Handle answers one request; see protocol.Handler. A request that cannot be decoded closes its connection.
func (a *API) Handle(ctx context.Context, r *protocol.Request, reply func(protocol.Response)) {
	h, ok := a.handlers[r.Header.Key]
	if !ok || !a.table.Accepts(r.Header.Key, r.Header.Version) {
		reply(protocol.Response{Close: true})
		return
	}
	software := r.Conn.Software()
	c := &call{ctx: ctx, request: r, reply: reply, caller: auth.Context{
		Principal: auth.Principal(r.Conn.Principal()), APIKey: r.Header.Key, Listener: r.Conn.Listener,
		Client: r.Conn.Remote, SoftwareName: software.Name, SoftwareVersion: software.Version}}
	if r.Header.ClientID != nil {
		c.caller.ClientID = *r.Header.ClientID
	}
	h.serve(a, c)
}

// malformed ends the connection of a request whose body cannot be read, as Kafka does.
func (a *API) malformed(c *call, err error) {
	a.Logger.Warn("request cannot be read: connection closed", "client", c.request.Conn.Remote.String(),
		"key", c.key(), "version", c.version(), "error", err)
	c.reply(protocol.Response{Close: true})
}

// message makes a handler of a function from a decoded request to a response.
func message[Q kmsg.Request](key, minVersion, maxVersion int16, answer func(*API, *call, Q) kmsg.Response) handler {
	serve := func(a *API, c *call) {
		decoded, err := protocol.DecodeRequest(c.request.Header, c.request.Body)
		if err != nil {
			a.malformed(c, err)
			return
		}
		c.reply(protocol.Reply(answer(a, c, decoded.(Q))))
	}
	return handler{Range: protocol.Range{Key: key, Min: minVersion, Max: maxVersion}, serve: serve}
}

// answerTo is the empty response to a request, in its version.
func answerTo[R kmsg.Response](request kmsg.Request) R {
	return request.ResponseKind().(R)
}

// allowed asks the authorizer.
func (a *API) allowed(c *call, op auth.Operation, r auth.Resource) bool {
	return a.Authorizer.Allowed(&c.caller, op, r)
}
