package coordinator

import (
	"log/slog"
	"sync"
	"time"

	"tidemark/internal/replica"
	"tidemark/internal/wire"
)

// Options say how a [Runtime] works. NewShard, Clock and Timer are required.
type Options[S Shard] struct {
	Topic    string // of the partitions, for messages
	NewShard func(e *Env) S
	Clock    func() time.Time
	Timer    replica.Timer
	// Go runs a task soon, on another goroutine; nil: on one of the runtime's own.
	Go func(task func())
	// WriteTimeout is how long a command waits for its write to be replicated; 0: 5 s.
	WriteTimeout time.Duration
	// LoadBytes is how much of a log is read at once; 0: 5 MiB.
	LoadBytes int
	Logger    *slog.Logger // nil: silent
	// Loaded is told of each load that came to its end; may be nil.
	Loaded func(partition int32, records int, took time.Duration)
}

const (
	defaultWriteTimeout = 5 * time.Second
	defaultLoadBytes    = 5 << 20
)

// Runtime runs the shards of the partitions of one internal topic that this broker leads.
type Runtime[S Shard] struct {
	o       Options[S]
	workers *workers

	mu         sync.RWMutex
	partitions map[int32]*partition[S]
}

// NewRuntime makes a runtime without partitions; Elect brings them.
func NewRuntime[S Shard](o Options[S]) *Runtime[S] {
	w := newWorkers()
	if o.Go == nil {
		o.Go = w.run
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	if o.LoadBytes == 0 {
		o.LoadBytes = defaultLoadBytes
	}
	return &Runtime[S]{o: o, workers: w, partitions: map[int32]*partition[S]{}}
}

// Elect begins to load a partition that this broker leads from now on, in the background. What there was of an
// earlier epoch is unloaded; an epoch that is not later is ignored.
func (r *Runtime[S]) Elect(id int32, leaderEpoch int32, log Log) {
	r.mu.Lock()
	old := r.partitions[id]
	if old != nil && old.env.epoch >= leaderEpoch {
		r.mu.Unlock()
		return
	}
	p := newPartition(&r.o, id, leaderEpoch, log)
	r.partitions[id] = p
	r.mu.Unlock()
	if old != nil {
		old.unload()
	}
	r.o.Go(p.load)
}

// Resign unloads a partition that this broker does not lead any more.
func (r *Runtime[S]) Resign(id int32) {
	r.mu.Lock()
	p := r.partitions[id]
	delete(r.partitions, id)
	r.mu.Unlock()
	if p != nil {
		p.unload()
	}
}

// Close unloads all partitions.
func (r *Runtime[S]) Close() {
	for _, id := range r.Partitions() {
		r.Resign(id)
	}
	r.workers.close()
}

// Partitions lists the partitions that are loaded or being loaded, in no order.
func (r *Runtime[S]) Partitions() []int32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ids := make([]int32, 0, len(r.partitions))
	for id := range r.partitions {
		ids = append(ids, id)
	}
	return ids
}

// Do runs a command on a partition's shard and returns at once.
func (r *Runtime[S]) Do(id int32, c Command[S]) {
	r.mu.RLock()
	p := r.partitions[id]
	r.mu.RUnlock()
	err := ErrNotCoordinator
	if p != nil {
		if err = p.submit(func() { p.run(c) }); err == nil {
			return
		}
	}
	if c.Done != nil {
		c.Done(err)
	}
}

// PartitionFor is the partition of a group or transactional id among n.
//
// Kafka: Utils.abs(key.hashCode) % n, where abs of the smallest number is 0.
func PartitionFor(key string, n int32) int32 {
	h := wire.JavaHash(key)
	if h == -h {
		h = 0
	}
	return max(h, -h) % n
}
