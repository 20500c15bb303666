//go:build oracle

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"tidemark/record"
	"tidemark/test/proc"
)

// rig is one contender, running, under one load.
type rig struct {
	addr, dir string
	process   *proc.Process
	last      int64 // what prepare wrote: the newest timestamp, and the log end offset
	end       int64
}

// load is one case: what is there before, and what is done to the broker until the context ends.
type load struct {
	name    string
	prepare func(*rig) error
	run     func(context.Context, *rig, *tally) error
}

// tally counts what the workers of a load did.
type tally struct {
	ops, bytes atomic.Int64
	mu         sync.Mutex
	latencies  []time.Duration
}

func (t *tally) done(bytes int) {
	t.ops.Add(1)
	t.bytes.Add(int64(bytes))
}

func (t *tally) took(latencies []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latencies = append(t.latencies, latencies...)
}

// topic is the one that loads use, base the timestamp of its first record.
const (
	topic = "bench"
	base  = int64(1_790_000_000_000)
)

// scratch are configs of a topic that is written at full speed: old data must go, or the disk is full in a minute.
var scratch = map[string]string{"segment.bytes": "134217728", "retention.bytes": "536870912",
	"file.delete.delay.ms": "1000", "message.timestamp.before.max.ms": "9223372036854775807"}

// kept are configs of a topic that is only read.
var kept = map[string]string{"retention.ms": "-1", "message.timestamp.before.max.ms": "9223372036854775807"}

func makeTopic(partitions int32, configs map[string]string) func(*rig) error {
	return func(r *rig) error { return createTopicWith(r.addr, topic, partitions, configs) }
}

// each runs a worker on each of n connections until the context ends. They connect one after another: a full queue of
// connections to be accepted costs seconds.
func (r *rig) each(ctx context.Context, n int, work func(i int, w *wire) error) error {
	var all errgroup.Group
	for i := range n {
		w, err := connect(r.addr)
		if err != nil {
			return errors.Join(err, all.Wait())
		}
		if n > 100 {
			time.Sleep(time.Millisecond)
		}
		all.Go(func() (err error) {
			defer w.conn.Close()
			for ctx.Err() == nil && err == nil {
				err = work(i, w)
			}
			return err
		})
	}
	return all.Wait()
}

// inFlight is how many produce requests a connection has under way.
const inFlight = 5

// produce writes batches of n records as fast as the broker takes them. A record is an operation.
func produce(name string, partitions int32, n, valueBytes int, codec record.Codec) load {
	run := func(ctx context.Context, r *rig, t *tally) error {
		set, err := batch(n, valueBytes, base, codec)
		if err != nil {
			return err
		}
		workers := min(4, partitions)
		frames := make([][]byte, partitions)
		for p := range partitions {
			frames[p] = frame(produceRequest(topic, p, set))
		}
		return r.each(ctx, int(workers), func(i int, w *wire) error {
			return pipeline(ctx, w, func(k int) []byte {
				return frames[(int32(i)+int32(k)*workers)%partitions]
			}, func() {
				t.ops.Add(int64(n))
				t.bytes.Add(int64(n * valueBytes))
			})
		})
	}
	return load{name: name, prepare: makeTopic(partitions, scratch), run: run}
}

// pipeline keeps requests under way until the context ends, and then waits for the last answers.
func pipeline(ctx context.Context, w *wire, next func(k int) []byte, done func()) error {
	for sent, answered := 0, 0; ctx.Err() == nil || answered < sent; {
		if ctx.Err() == nil && sent-answered < inFlight {
			if err := w.send(next(sent)); err != nil {
				return err
			}
			sent++
			continue
		}
		if err := w.produced(); err != nil {
			return err
		}
		answered++
		done()
	}
	return nil
}

// fill writes batches of n records to partition 0 until a number of batches is there.
func fill(r *rig, batches, n, valueBytes int) error {
	w, err := connect(r.addr)
	if err != nil {
		return err
	}
	defer w.conn.Close()
	for i := range batches {
		set, err := batch(n, valueBytes, base+int64(i*n), record.None)
		if err != nil {
			return err
		}
		if err := w.send(frame(produceRequest(topic, 0, set))); err != nil {
			return err
		}
		if i >= inFlight {
			if err := w.produced(); err != nil {
				return err
			}
		}
	}
	for range min(batches, inFlight) {
		if err := w.produced(); err != nil {
			return err
		}
	}
	r.end = int64(batches) * int64(n)
	r.last = base + r.end - 1
	return nil
}

// consume reads the topic from its start, again and again. A GB of 1 KiB records in batches of 1 MiB is there.
func consume(name string, cold bool, megabytes int) load {
	prepare := func(r *rig) error {
		return errors.Join(createTopicWith(r.addr, topic, 1, kept), fill(r, megabytes, 1000, 1024))
	}
	run := func(ctx context.Context, r *rig, t *tally) error {
		return r.each(ctx, 1, func(_ int, w *wire) error {
			if cold {
				if err := r.dropLogs(); err != nil {
					return err
				}
			}
			for next := int64(0); next < r.end && ctx.Err() == nil; {
				n, after, err := w.fetch(fetchRequest(topic, 0, next, 500, 4<<20))
				if err != nil {
					return err
				}
				next = after
				t.bytes.Add(int64(n))
				t.ops.Add(1)
			}
			return nil
		})
	}
	return load{name: name, prepare: prepare, run: run}
}

// dropLogs takes the log files of the topic out of the page cache.
func (r *rig) dropLogs() error {
	names, err := filepath.Glob(filepath.Join(r.dir, topic+"-*", "*.log"))
	for _, name := range names {
		err = errors.Join(err, dropFromCache(name))
	}
	return err
}

// lookUps asks for random times.
func lookUps(name string, connections, segments, n, valueBytes int) load {
	prepare := func(r *rig) error {
		configs := map[string]string{"segment.bytes": "1048576"}
		for key, value := range kept {
			configs[key] = value
		}
		perSegment := max(1, (1<<20)/(n*(valueBytes+16)+80))
		return errors.Join(createTopicWith(r.addr, topic, 1, configs), fill(r, segments*perSegment, n, valueBytes))
	}
	run := func(ctx context.Context, r *rig, t *tally) error {
		return r.each(ctx, connections, func(i int, w *wire) error {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			return timed(ctx, t, func() error {
				at := base + rng.Int64N(r.end)
				got, err := w.lookUp(topic, at)
				if err == nil && got != at-base {
					err = fmt.Errorf("look-up of %d: offset %d, want %d", at, got, at-base)
				}
				return err
			})
		})
	}
	return load{name: name, prepare: prepare, run: run}
}

// timed does something again and again until the context ends, and notes how long each took.
func timed(ctx context.Context, t *tally, do func() error) error {
	var latencies []time.Duration
	defer func() { t.took(latencies) }()
	for ctx.Err() == nil {
		start := time.Now()
		if err := do(); err != nil {
			return err
		}
		latencies = append(latencies, time.Since(start))
		t.done(0)
	}
	return nil
}

// randomFetches reads one record at a random offset.
func randomFetches(name string) load {
	prepare := func(r *rig) error {
		return errors.Join(createTopicWith(r.addr, topic, 1, kept), fill(r, 100_000, 1, 1024))
	}
	run := func(ctx context.Context, r *rig, t *tally) error {
		return r.each(ctx, 4, func(i int, w *wire) error {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			return timed(ctx, t, func() error {
				n, _, err := w.fetch(fetchRequest(topic, 0, rng.Int64N(r.end), 500, 1))
				if err == nil && n == 0 {
					err = errors.New("fetch: no record")
				}
				return err
			})
		})
	}
	return load{name: name, prepare: prepare, run: run}
}

// waiting has consumers at the end of the topic: with long polls of half a second, or one short poll every 5 s.
func waiting(name string, consumers int, slow bool) load {
	run := func(ctx context.Context, r *rig, _ *tally) error {
		waitMs := int32(500)
		if slow {
			waitMs = 0
		}
		return r.each(ctx, consumers, func(_ int, w *wire) error {
			_, _, err := w.fetch(fetchRequest(topic, 0, 0, waitMs, 1<<20))
			if slow {
				pause(ctx, 5*time.Second)
			}
			return err
		})
	}
	return load{name: name, prepare: makeTopic(1, kept), run: run}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// rarely writes a record to one of many partitions, 1 000 times a second in all.
func rarely(name string, partitions int32) load {
	run := func(ctx context.Context, r *rig, t *tally) error {
		set, err := batch(1, 100, base, record.None)
		if err != nil {
			return err
		}
		next := atomic.Int32{}
		return r.each(ctx, 1, func(_ int, w *wire) error {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				if err := w.send(frame(produceRequest(topic, next.Add(1)%partitions, set))); err != nil {
					return err
				}
				if err := w.produced(); err != nil {
					return err
				}
				t.done(100)
			}
			return nil
		})
	}
	return load{name: name, prepare: makeTopic(partitions, kept), run: run}
}

// endToEnd is the time from handing a record to a producer until a consumer has it, at a rate of records per second.
func endToEnd(name string, rate int) load {
	run := func(ctx context.Context, r *rig, t *tally) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(r.addr), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0),
			kgo.DisableIdempotentWrite(), kgo.ConsumeTopics(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
		if err != nil {
			return err
		}
		defer client.Close()
		var all errgroup.Group
		all.Go(func() error { return produceAt(ctx, client, rate) })
		all.Go(func() error { return receive(ctx, client, t) })
		return all.Wait()
	}
	return load{name: name, prepare: makeTopic(1, scratch), run: run}
}

// produceAt hands over records at a rate, a few each ms; a record's value is when that was.
func produceAt(ctx context.Context, client *kgo.Client, rate int) error {
	var failed atomic.Pointer[error]
	start := time.Now()
	for sent := 0; ctx.Err() == nil; {
		for due := int(time.Since(start).Seconds() * float64(rate)); sent < due; sent++ {
			value := strconv.AppendInt(make([]byte, 0, 100), time.Now().UnixNano(), 10)
			client.Produce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
			})
		}
		pause(ctx, time.Millisecond)
	}
	if err := client.Flush(context.Background()); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func receive(ctx context.Context, client *kgo.Client, t *tally) error {
	var latencies []time.Duration
	defer func() { t.took(latencies) }()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		now := time.Now().UnixNano()
		if err := fetches.Err0(); err != nil && ctx.Err() == nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			sent, err := strconv.ParseInt(string(it.Next().Value), 10, 64)
			if err != nil {
				return err
			}
			latencies = append(latencies, time.Duration(now-sent))
			t.ops.Add(1)
		}
	}
	return nil
}
