package cleaner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/record"
	"tidemark/vfs"
)

// Config is the broker's log.cleaner.* configs. It may change while the cleaner runs.
type Config struct {
	Threads           int           // log.cleaner.threads; 0: nothing is compacted
	DedupeBufferBytes int64         // log.cleaner.dedupe.buffer.size, of all threads together
	LoadFactor        float64       // log.cleaner.io.buffer.load.factor
	IOBufferBytes     int           // log.cleaner.io.buffer.size, of all threads together
	BytesPerSecond    float64       // log.cleaner.io.max.bytes.per.second, read and written; ≤ 0: no limit
	Backoff           time.Duration // log.cleaner.backoff.ms, when there was nothing to do
}

// DefaultConfig are Kafka's defaults.
func DefaultConfig() Config {
	return Config{Threads: 1, DedupeBufferBytes: 128 << 20, LoadFactor: 0.9, IOBufferBytes: 512 << 10,
		Backoff: 15 * time.Second}
}

// Options say what a cleaner works on. FS, Clock, Sleep and Logs are required.
type Options struct {
	FS     vfs.FS
	Config Config
	Clock  func() time.Time
	// Sleep returns after a time, or with an error when the context ends before.
	Sleep  func(ctx context.Context, d time.Duration) error
	Logger *slog.Logger // nil: silent
	// Logs lists the logs that can be worked on, whatever their cleanup.policy.
	Logs func() []Partition
	// Failed is told of an error of a directory's checkpoint file; the log itself tells of others. May be nil.
	Failed func(dir string, err error)
	// MaxDecompressedBytes bounds what one batch may decompress to; 0: 256 MiB.
	MaxDecompressedBytes int64
	Memory               record.Memory // that decompression takes its memory from; nil: not bounded together
}

// Cleaner compacts logs in the background. Make it with [New].
type Cleaner struct {
	o        Options
	throttle throttle
	points   checkpoints
	metrics  Metrics

	mu          sync.Mutex
	cfg         Config
	busy        map[checkpoint.TopicPartition]*job
	paused      map[checkpoint.TopicPartition]int
	uncleanable map[checkpoint.TopicPartition]Uncleanable
	stop        context.CancelFunc // of the threads; nil: they do not run
	ctx         context.Context    // of the threads
	rest        context.Context    // of those that have nothing to do; it ends when configs change
	wake        context.CancelFunc // ends rest
	running     int
	threads     sync.WaitGroup
}

// job is a round, or a deletion of old segments, under way.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Uncleanable is a partition that is not compacted any more until the next start, and why.
type Uncleanable struct {
	Name   checkpoint.TopicPartition
	Dir    string // the log directory
	Reason error
}

// New makes a cleaner that does nothing until [Cleaner.Start], or [Cleaner.Pass].
func New(o Options) *Cleaner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cleaner{o: o, cfg: o.Config,
		busy:        make(map[checkpoint.TopicPartition]*job),
		paused:      make(map[checkpoint.TopicPartition]int),
		uncleanable: make(map[checkpoint.TopicPartition]Uncleanable),
	}
	c.points.fs = o.FS
	c.throttle = throttle{now: o.Clock, sleep: o.Sleep, rate: o.Config.BytesPerSecond}
	return c
}

// Start lets the threads run.
func (c *Cleaner) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.rest, c.wake = context.WithCancel(c.ctx)
	c.startThreads()
}

// startThreads starts those that are missing. The caller holds mu.
func (c *Cleaner) startThreads() {
	for ; c.running < c.cfg.Threads; c.running++ {
		ctx := c.ctx
		c.threads.Go(func() { c.work(ctx) })
	}
}

// Stop ends the rounds under way, as a crash would but without leftovers, and waits for the threads.
func (c *Cleaner) Stop() {
	c.mu.Lock()
	stop := c.stop
	c.stop = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.threads.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = 0
}

// Configure puts other configs in force: the rate at once, the rest with the next round of each thread. Threads that
// rest begin one.
func (c *Cleaner) Configure(cfg Config) {
	c.throttle.setRate(cfg.BytesPerSecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if cfg == c.cfg {
		return
	}
	c.cfg = cfg
	if c.stop != nil {
		c.wake()
		c.rest, c.wake = context.WithCancel(c.ctx)
		c.startThreads()
	}
}

// config returns the configs in force.
func (c *Cleaner) config() Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg
}

// work is a thread: it compacts the dirtiest log, again and again, and rests when there is none.
func (c *Cleaner) work(ctx context.Context) {
	for ctx.Err() == nil && c.needed() {
		if c.Pass(ctx) {
			continue
		}
		c.mu.Lock()
		rest, backoff := c.rest, c.cfg.Backoff
		c.mu.Unlock()
		_ = c.o.Sleep(rest, backoff) // the loop asks ctx
	}
}

// needed reports whether a thread is to go on; when there are too many it counts as ended.
func (c *Cleaner) needed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running > c.cfg.Threads {
		c.running--
		return false
	}
	return true
}

// Pause ends the round on a partition, if one is under way, waits until it is over, and keeps further ones away until
// resume is called, once.
func (c *Cleaner) Pause(tp checkpoint.TopicPartition) (resume func()) {
	c.mu.Lock()
	c.paused[tp]++
	j := c.busy[tp]
	c.mu.Unlock()
	if j != nil {
		j.cancel()
		<-j.done
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused[tp]--; c.paused[tp] <= 0 {
			delete(c.paused, tp)
		}
	}
}

// begin takes a partition for work; false when somebody else has it, or it is paused. Its end must be told.
func (c *Cleaner) begin(ctx context.Context, tp checkpoint.TopicPartition) (context.Context, func(), bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[tp] != nil || c.paused[tp] > 0 {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	j := &job{cancel: cancel, done: make(chan struct{})}
	c.busy[tp] = j
	return ctx, func() {
		c.mu.Lock()
		delete(c.busy, tp)
		c.mu.Unlock()
		cancel()
		close(j.done)
	}, true
}

// Forget drops what is known of partitions that were in a log directory: they are gone. Errors of the checkpoint file
// are told to Options.Failed.
func (c *Cleaner) Forget(dir string, tps ...checkpoint.TopicPartition) {
	c.mu.Lock()
	for _, tp := range tps {
		delete(c.uncleanable, tp)
	}
	c.mu.Unlock()
	c.note(dir, func(all checkpoint.Offsets) {
		for _, tp := range tps {
			delete(all, tp)
		}
	})
}

// note changes the checkpoint of a directory.
func (c *Cleaner) note(dir string, change func(checkpoint.Offsets)) {
	there := make(map[checkpoint.TopicPartition]bool)
	for _, p := range c.o.Logs() {
		if p.Dir == dir {
			there[p.Name] = true
		}
	}
	err := c.points.change(dir, func(tp checkpoint.TopicPartition) bool { return there[tp] }, change)
	if err != nil && c.o.Failed != nil {
		c.o.Failed(dir, err)
	}
}
