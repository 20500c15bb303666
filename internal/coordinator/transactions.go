package coordinator

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
)

// TransactionsOptions are what the transaction coordinator needs. All but Go, Logger and Loaded are required.
type TransactionsOptions struct {
	Machine txn.Options
	// Image is the newest metadata: it tells how many partitions __transaction_state has, and which partitions
	// still exist when markers are due.
	Image   func() *metadata.Image
	Markers Markers
	Clock   func() time.Time
	Timer   replica.Timer
	// ExpireEvery is the time between two looks for ids to forget
	// (transaction.remove.expired.transaction.cleanup.interval.ms).
	ExpireEvery time.Duration
	// RetryAfter is the time after which what could not be written is tried again.
	RetryAfter   time.Duration
	WriteTimeout time.Duration // for the replication of a record
	// AdmitRetryAfter and AdmitRetryMax are how often and how long a produce request waits for the transaction
	// before its own (add.partitions.to.txn.retry.backoff.ms, add.partitions.to.txn.retry.backoff.max.ms).
	AdmitRetryAfter, AdmitRetryMax time.Duration
	LoadBytes                      int // how much of a log is read at once
	Go                             func(task func())
	Logger                         *slog.Logger
	Loaded                         func(partition int32, records int, took time.Duration)
}

// Transactions is the transaction coordinator of this broker. Its methods return at once; done is called once, on
// any goroutine, and must not block.
type Transactions struct {
	o       TransactionsOptions
	runtime *Runtime[*transactionShard]
}

// NewTransactions makes a coordinator without partitions; Leadership brings them.
func NewTransactions(o TransactionsOptions) *Transactions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Transactions{o: o}
	t.runtime = NewRuntime(Options[*transactionShard]{
		Topic: TransactionsTopic, Clock: o.Clock, Timer: o.Timer, Go: o.Go, Logger: o.Logger,
		WriteTimeout: o.WriteTimeout, LoadBytes: o.LoadBytes, Loaded: o.Loaded,
		NewShard: func(e *Env) *transactionShard {
			return &transactionShard{t: t, env: e, machine: txn.New(o.Machine)}
		},
	})
	return t
}

// Leadership takes note of who leads a partition of any topic; see replica.Options.Leadership.
func (t *Transactions) Leadership(p *replica.Partition, leaderEpoch int32, leads bool) {
	switch {
	case p.Topic != TransactionsTopic:
	case leads:
		t.runtime.Elect(p.ID, leaderEpoch, PartitionLog(p, leaderEpoch))
	default:
		t.runtime.Resign(p.ID)
	}
}

// Close gives up all partitions; what waits is answered with ErrNotCoordinator.
func (t *Transactions) Close() { t.runtime.Close() }

// Partition is the partition of __transaction_state that an id belongs to; not ok when the topic does not exist.
func (t *Transactions) Partition(id string) (partition int32, ok bool) {
	topic := t.o.Image().Topic(TransactionsTopic)
	if topic == nil || topic.NumPartitions() == 0 {
		return 0, false
	}
	return PartitionFor(id, int32(topic.NumPartitions())), true
}

// command runs a command on the shard of an id.
func (t *Transactions) command(id string, run func(s *transactionShard) *Write, done func(error)) {
	partition, ok := t.Partition(id)
	if !ok {
		done(ErrNotCoordinator)
		return
	}
	t.runtime.Do(partition, Command[*transactionShard]{Key: id, Run: run, Done: done})
}

// Init gives a producer its id and epoch; see txn.Machine.Init.
func (t *Transactions) Init(id string, timeoutMs int32, expected txn.Producer, done func(txn.Producer, error)) {
	switch {
	case id == "":
		done(txn.NoProducer, txn.ErrInvalidRequest)
		return
	case timeoutMs <= 0 || timeoutMs > t.o.Machine.MaxTimeoutMs:
		done(txn.NoProducer, txn.ErrInvalidTimeout)
		return
	}
	producer, refused := txn.NoProducer, error(nil)
	t.command(id, func(s *transactionShard) *Write {
		var w *txn.Write
		producer, w, refused = s.machine.Init(id, timeoutMs, expected, s.nowMs())
		return s.write(w)
	}, func(err error) {
		if err = first(err, refused); err != nil {
			producer = txn.NoProducer
		}
		done(producer, err)
	})
}

// first is the error of the write, or else that of the command.
func first(written, refused error) error {
	if written != nil {
		return written
	}
	return refused
}

// Add adds partitions to a producer's transaction; see txn.Machine.Add.
func (t *Transactions) Add(id string, p txn.Producer, partitions []checkpoint.TopicPartition, version int16,
	done func(error)) {
	if id == "" {
		done(txn.ErrInvalidRequest)
		return
	}
	var refused error
	t.command(id, func(s *transactionShard) *Write {
		var w *txn.Write
		w, refused = s.machine.Add(id, p, partitions, version, s.nowMs())
		return s.write(w)
	}, func(err error) { done(first(err, refused)) })
}

// Verify tells for each partition whether it is in the producer's transaction; see txn.Machine.Verify.
func (t *Transactions) Verify(id string, p txn.Producer, partitions []checkpoint.TopicPartition,
	done func(each []error, err error)) {
	if id == "" {
		done(nil, txn.ErrInvalidRequest)
		return
	}
	var each []error
	var refused error
	t.command(id, func(s *transactionShard) *Write {
		each, refused = s.machine.Verify(id, p, partitions)
		return nil
	}, func(err error) { done(each, first(err, refused)) })
}

// End settles the outcome of a producer's transaction; see txn.Machine.End. It is answered before the markers are
// written, once nothing can change the outcome any more.
func (t *Transactions) End(id string, p txn.Producer, commit bool, version int16, done func(txn.Producer, error)) {
	if id == "" {
		done(txn.NoProducer, txn.ErrInvalidRequest)
		return
	}
	next, refused := txn.NoProducer, error(nil)
	t.command(id, func(s *transactionShard) *Write {
		var w *txn.Write
		next, w, refused = s.machine.End(id, p, commit, version, s.nowMs())
		return s.write(w)
	}, func(err error) {
		if err = first(err, refused); err != nil {
			next = txn.NoProducer
		}
		done(next, err)
	})
}

// Describe tells of an id; see txn.Machine.Describe.
func (t *Transactions) Describe(id string, done func(txn.Description, error)) {
	if id == "" {
		done(txn.Description{}, txn.ErrInvalidRequest)
		return
	}
	var d txn.Description
	var refused error
	t.command(id, func(s *transactionShard) *Write {
		d, refused = s.machine.Describe(id)
		return nil
	}, func(err error) { done(d, first(err, refused)) })
}

// List tells of the ids of all partitions that this broker coordinates, in the order of their names. Errors: ErrLoading
// while one of them is loading.
func (t *Transactions) List(f txn.Filter, done func([]txn.Listed, error)) {
	partitions := t.runtime.Partitions()
	lists := make([][]txn.Listed, len(partitions))
	g := newGathering(len(partitions), func(errs []error) {
		var all []txn.Listed
		for i, err := range errs {
			if errors.Is(err, ErrLoading) {
				done(nil, err)
				return
			}
			all = append(all, lists[i]...)
		}
		slices.SortFunc(all, func(a, b txn.Listed) int { return strings.Compare(a.ID, b.ID) })
		done(all, nil)
	})
	for i, id := range partitions {
		t.runtime.Do(id, Command[*transactionShard]{
			Run: func(s *transactionShard) *Write {
				lists[i] = s.machine.List(f, s.nowMs())
				return nil
			},
			Done: func(err error) { g.set(i, err) },
		})
	}
}
