package coordinator

import (
	"time"

	"tidemark/internal/replica"
	"tidemark/record"
)

// Shard is the state machine of one partition. Its methods are called by the partition's loop, one at a time; before
// Loaded by the goroutine that loads it.
type Shard interface {
	// Replay takes in one record of the log, in order. An error is logged and the record skipped.
	Replay(r Replayed) error
	// ReplayMarker takes in the end of a transaction of a producer.
	ReplayMarker(producerID int64, producerEpoch int16, commit bool)
	// Loaded ends the loading; commands come after it.
	Loaded()
	// Timeout is called when a timer of [Env.SetTimer] goes off.
	Timeout(key string)
	// Unloaded ends the shard's life; timers and commands of its own are dropped from here on.
	Unloaded()
}

// Replayed is a record on its way into a shard. Key and Value are only valid during the call.
type Replayed struct {
	Offset        int64
	Timestamp     int64 // ms
	ProducerID    int64 // of a transactional batch, whose records count from its commit marker on; else -1
	ProducerEpoch int16
	Key, Value    []byte // Value nil: a tombstone
}

// Record is a key and a value to write; Value nil: a tombstone.
type Record struct {
	Key, Value []byte
}

// Write is what a command wants appended, in one batch.
type Write struct {
	Records []Record
	// ProducerID, when Transactional, is the producer in whose transaction the records are.
	Transactional bool
	ProducerID    int64
	ProducerEpoch int16
	Verification  *replica.Verification
	// Marker, when not nil, ends the producer's transaction; there are no Records then.
	Marker             *record.EndTxn
	TransactionVersion int16

	// Apply takes what was appended into the shard; nil: the records or the marker are replayed.
	Apply func(base int64)
	// Committed is called when the batch is on all in-sync replicas, which may be long after the command was
	// answered; never when the partition is unloaded before. May be nil.
	Committed func()
}

// Command is something to be done by a shard.
type Command[S Shard] struct {
	// Key names the part of the shard that the command looks at and changes, as a group or a transactional id; "": all
	// of it. What commands of different keys want written may be appended as one batch, after all of them have run.
	Key string
	// Run decides; nil: there is nothing to write.
	Run func(s S) *Write
	// Done is called once: with nil when the write is on all in-sync replicas or there was none; else with one of
	// the package's errors, or that of the log. May be nil.
	Done func(err error)
}

// Env is what a shard sees of its partition. Its methods are for the loop of the partition, except Do.
type Env struct {
	partition int32
	epoch     int32
	host      host
}

// host is the part of a partition that an Env needs, whatever the type of the shard.
type host interface {
	now() time.Time
	setTimer(key string, at time.Time)
	stopTimer(key string)
	do(key string, run func() *Write, done func(error))
	execute(key string, run func() *Write, done func(error))
}

// Partition is the partition's number.
func (e *Env) Partition() int32 { return e.partition }

// LeaderEpoch is the leader epoch of the election; it is the coordinator epoch in markers.
func (e *Env) LeaderEpoch() int32 { return e.epoch }

// Now is the time.
func (e *Env) Now() time.Time { return e.host.now() }

// SetTimer has the shard's Timeout called with key at a time, once; a timer of that key that has not gone off is
// replaced.
func (e *Env) SetTimer(key string, at time.Time) { e.host.setTimer(key, at) }

// StopTimer forgets the timer of a key.
func (e *Env) StopTimer(key string) { e.host.stopTimer(key) }

// Do queues a command of the shard's own; see [Command]. It may be called from any goroutine.
func (e *Env) Do(key string, run func() *Write, done func(error)) { e.host.do(key, run, done) }

// Run runs a command of the shard's own at once. It is for Timeout alone.
func (e *Env) Run(run func() *Write, done func(error)) { e.host.execute("", run, done) }
