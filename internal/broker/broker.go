package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/api"
	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/coordinator"
	"tidemark/internal/index"
	"tidemark/internal/logdir"
	"tidemark/internal/replica"
	"tidemark/internal/server"
	"tidemark/vfs"
)

// Options say what broker to start. Properties are required.
type Options struct {
	// Properties are the node's static configs, as in a server.properties file. What a node that stands alone
	// needs and Properties lack is filled in (config.FillStandalone).
	Properties map[string]string
	Logger     *slog.Logger // nil: silent
	// LogLevel is the level of all loggers at the start, which can be changed while the broker runs as far down as
	// Logger's own; nil: Logger's own.
	LogLevel slog.Leveler
	FS       vfs.FS // nil: the operating system's
	// Version is told on the admin port.
	Version string
	// ReadOnly are log directories, folders of partitions' folders, or partitions' folders to serve without changing
	// anything on disk, metadata and log.dirs left alone. nil: log.dirs are led, as brokers do.
	ReadOnly []string
	// AcceptStrays allows folders that the metadata does not know to be renamed -stray in the first start on a
	// directory that another program has led.
	AcceptStrays bool
}

// Broker is a running broker.
type Broker struct {
	opts      Options
	loggers   *loggers
	log       *slog.Logger // the root logger
	started   time.Time
	node      atomic.Pointer[config.Node]
	static    *config.Node
	scheduler *scheduler
	files     *index.FileCache
	pages     *index.Cache
	logs      commitlog.Metrics
	dirs      *logdir.Set
	quorum    cluster
	found     *foundPartitions // with Options.ReadOnly
	replicas  *replica.Manager

	producerIDs  *coordinator.ProducerIDs
	markers      *coordinator.LocalMarkers
	transactions *coordinator.Transactions
	groups       *coordinator.Groups
	// groupSettings are those of the configs that were in force when they were asked for last.
	groupSettings atomic.Pointer[groupSettings]

	api       *api.API
	server    *server.Server
	metrics   *brokerMetrics
	admin     *admin
	listeners []boundListener
	opened    []config.Listener // the config by which they were opened
	limiting  sync.Mutex        // held while limits of connections are put in force
	serving   sync.WaitGroup
	ready     atomic.Bool
	startTook atomic.Int64 // ns
	epoch     int64        // of this start's registration; -1 before
	stopping  sync.Once
}

// Start starts a broker and returns when it serves. Stop it with [Broker.Stop].
//
// Errors: one that wraps vfs.ErrLocked when another process has a log directory; a *config.Error; those of the
// disk and of the network.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	levels := newLoggers(o.Logger, o.LogLevel)
	b := &Broker{opts: o, loggers: levels, log: levels.logger(rootLogger), started: time.Now(), epoch: -1}
	for _, step := range b.steps() {
		err := ctx.Err()
		if err == nil {
			err = step(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, b.abort())
		}
	}
	b.startTook.Store(int64(time.Since(b.started)))
	b.ready.Store(true)
	b.reconfigure() // for changes since the listeners were opened
	b.log.Info("ready", "listeners", b.Addresses(), "node", b.config().NodeID, "cluster", b.clusterID(),
		"partitions", len(b.replicas.Partitions()), "took", time.Since(b.started).Round(time.Millisecond))
	return b, nil
}

// steps are what a start does, in order.
func (b *Broker) steps() []func(context.Context) error {
	if b.readOnly() {
		return []func(context.Context) error{b.findPartitions, b.configure, b.openReadOnly, b.startAdmin, b.loadReadOnly,
			b.listen, b.freeze, b.makeCoordinators, b.makeReplicas, b.leadReadOnly, b.serve}
	}
	return []func(context.Context) error{b.configure, b.openDirectories, b.prove, b.identify, b.openMetadata,
		b.makeCoordinators, b.makeReplicas, b.startAdmin, b.loadPartitions, b.listen, b.register, b.serve}
}

func (b *Broker) config() *config.Broker { return b.node.Load().Broker() }

// configure resolves the configs and makes what every part shares.
func (b *Broker) configure(context.Context) error {
	props, err := b.fillProperties()
	if err != nil {
		return err
	}
	node, err := config.NewNode(props)
	if err != nil {
		return err
	}
	for _, key := range node.Unknown() {
		b.log.Warn("config is not known and has no effect", "key", key)
	}
	for _, key := range node.WithoutEffect() {
		b.log.Warn("config has no effect: what it is about is not built", "key", key)
		if key == config.AuthorizerKey {
			b.log.Warn("there is no authorizer: every client may do everything")
		}
	}
	b.static = node
	b.node.Store(node)
	c := node.Broker()
	b.scheduler = newScheduler(schedulerThreads)
	b.files = index.NewFileCache(b.opts.FS, int(c.OpenFiles))
	b.pages = index.NewCache(c.MemoryBytes / pageShare)
	b.metrics = newMetrics(b)
	return nil
}

// schedulerThreads is how many background tasks run at once (Kafka: background.threads, 10).
const schedulerThreads = 10

// abort takes down what a failed start had put up.
func (b *Broker) abort() error {
	return b.stop(context.Background(), false)
}

// Stop stops the broker in good order: no new requests, those in flight are answered, the broker is fenced, logs
// are flushed and closed, the clean markers are written. When ctx ends, requests in flight are given up.
// Further calls do nothing.
func (b *Broker) Stop(ctx context.Context) (err error) {
	b.stopping.Do(func() {
		b.log.Info("stopping")
		start := time.Now()
		err = b.stop(ctx, true)
		b.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond))
	})
	return err
}

func (b *Broker) stop(ctx context.Context, clean bool) error {
	b.ready.Store(false)
	var errs []error
	note := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	if b.groups != nil {
		b.groups.Close() // members that wait for a rebalance would hold up the listeners
	}
	if b.server != nil {
		note("stop listeners", b.server.Shutdown(ctx))
		b.serving.Wait()
	}
	for _, l := range b.listeners {
		if err := l.net.Close(); !errors.Is(err, net.ErrClosed) {
			note("close listener "+l.name, err)
		}
	}
	if clean {
		note("leave the cluster", b.leave(ctx))
	}
	if b.transactions != nil {
		b.transactions.Close()
	}
	if b.scheduler != nil {
		b.scheduler.stop()
	}
	if clean && b.replicas != nil && !b.readOnly() {
		b.replicas.CheckpointHighWatermarks()
	}
	if b.quorum != nil {
		note("close metadata log", b.quorum.Close())
	}
	if b.dirs != nil {
		note("close log directories", b.dirs.Close(b.epoch))
	}
	if b.admin != nil {
		note("close admin port", b.admin.close())
	}
	return errors.Join(errs...)
}
