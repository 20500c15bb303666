//go:build oracle

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/record"
	"tidemark/test/proc"
)

// rig is one contender, running.
type rig struct {
	name, addr, dir string
	process         *proc.Process
	other           *rig
	has             map[string]bool // topics that are there
}

// load is one case: the topic it needs, and what is done to the broker until the context ends.
type load struct {
	name string
	unit string // what an operation is
	data data
	run  func(context.Context, *rig, *meter) error
}

// data is a topic, and the batches that are in its partition 0 before: all of one size, records a ms apart from base
// on.
type data struct {
	topic               string
	partitions          int32
	configs             map[string]string
	batches             int
	records, valueBytes int // of a batch, of a record
	temporary           bool
}

// end is the offset after the last record.
func (d data) end() int64 { return int64(d.batches) * int64(d.records) }

// base is the timestamp of the first record of a topic: some time ago.
const base = int64(1_700_000_000_000)

// kept are configs of a topic whose data stays.
var kept = map[string]string{"retention.ms": "-1"}

// with are configs and some more, as key, value, key, value.
func with(configs map[string]string, more ...string) map[string]string {
	configs = maps.Clone(configs)
	for i := 0; i < len(more); i += 2 {
		configs[more[i]] = more[i+1]
	}
	return configs
}

// scratch is a topic that is written at full speed: old data must go, or the disk is full in a minute. Of up to 8
// partitions about 1 GiB stays at most; of more, up to 16 MiB of each besides.
func scratch(topic string, partitions int32) data {
	segment := max(16<<20, (128<<20)/int(partitions))
	configs := with(kept, "file.delete.delay.ms", "1000", "segment.bytes", strconv.Itoa(segment),
		"retention.bytes", strconv.Itoa((512<<20)/int(partitions)))
	return data{topic: topic, partitions: partitions, configs: configs, temporary: true}
}

// prepare makes a topic with its data, unless it is there.
func (r *rig) prepare(ctx context.Context, d data) error {
	if r.has[d.topic] {
		return nil
	}
	if err := createTopic(ctx, r.addr, d.topic, d.partitions, d.configs); err != nil {
		return err
	}
	r.has[d.topic] = true
	return d.fill(ctx, r.addr)
}

func (d data) fill(ctx context.Context, addr string) error {
	if d.batches == 0 {
		return nil
	}
	w, err := connect(addr)
	if err != nil {
		return err
	}
	defer w.conn.Close()
	set, err := batch(d.records, d.valueBytes, base, record.None)
	if err != nil {
		return err
	}
	frame := appendFrame(nil, produceRequest(d.topic, 0, set))
	set = frame[len(frame)-len(set)-3 : len(frame)-3] // after it come the tags of partition, topic and request
	for sent, answered := 0, 0; answered < d.batches; {
		if err := errors.Join(ctx.Err(), w.allow(ioTimeout)); err != nil {
			return err
		}
		if sent < d.batches && sent-answered < inFlight {
			moveTo(set, d.records, base+int64(sent)*int64(d.records))
			if err := w.send(frame); err != nil {
				return err
			}
			sent++
			continue
		}
		if err := w.produced(); err != nil {
			return fmt.Errorf("fill %s: %w", d.topic, err)
		}
		answered++
	}
	return nil
}

// each runs a worker on each of n connections until the context ends; it has the meter begin when all are connected.
func (r *rig) each(ctx context.Context, m *meter, n int, work func(ctx context.Context, i int, w *wire) error) error {
	wires := make([]*wire, 0, n)
	defer func() {
		for _, w := range wires {
			w.conn.Close()
		}
	}()
	for range n {
		w, err := connect(r.addr)
		if err != nil {
			return err
		}
		if wires = append(wires, w); n > 100 {
			time.Sleep(time.Millisecond) // a full queue of connections to be accepted costs seconds
		}
		if err := w.allow(m.length + ioTimeout); err != nil {
			return err
		}
	}
	m.begin(ctx)
	all, ctx := errgroup.WithContext(ctx)
	for i, w := range wires {
		all.Go(func() error { return work(ctx, i, w) })
	}
	return all.Wait()
}

// inFlight is how many produce requests a connection has under way.
const inFlight = 5

// produce writes batches of n records as fast as the broker takes them.
func produce(name string, d data, workers, n, valueBytes int, codec record.Codec) load {
	run := func(ctx context.Context, r *rig, m *meter) error {
		set, err := batch(n, valueBytes, base, codec)
		if err != nil {
			return err
		}
		return r.each(ctx, m, workers, func(ctx context.Context, i int, w *wire) error {
			q := vary(produceRequest(d.topic, int32(mark>>32), set))
			next := i
			return pipeline(ctx, w, func() []byte {
				p := next % int(d.partitions)
				next += workers
				return q.with(int64(p))
			}, func() { m.did(n, n*valueBytes) })
		})
	}
	return load{name: name, unit: "record", data: d, run: run}
}

// pipeline keeps requests under way until the context ends, and then waits for the last answers.
func pipeline(ctx context.Context, w *wire, next func() []byte, done func()) error {
	for sent, answered := 0, 0; ctx.Err() == nil || answered < sent; {
		if ctx.Err() == nil && sent-answered < inFlight {
			if err := w.send(next()); err != nil {
				return err
			}
			sent++
			continue
		}
		if err := w.produced(); err != nil {
			return fmt.Errorf("produce: %w", err)
		}
		answered++
		done()
	}
	return nil
}

// consume reads a topic from its start, again and again, on some connections, each for itself.
func consume(name string, d data, connections int, cold bool) load {
	run := func(ctx context.Context, r *rig, m *meter) error {
		return r.each(ctx, m, connections, func(ctx context.Context, _ int, w *wire) error {
			q := vary(fetchRequest(d.topic, 0, mark, 500, 4<<20))
			for next := d.end(); ctx.Err() == nil; {
				if next >= d.end() {
					next = 0
					if cold {
						if err := r.dropLogs(d.topic); err != nil {
							return err
						}
					}
				}
				if err := w.send(q.with(next)); err != nil {
					return err
				}
				n, after, err := w.fetched(next)
				if err != nil {
					return fmt.Errorf("fetch at %d: %w", next, err)
				}
				next = after
				m.did(1, n)
			}
			return nil
		})
	}
	return load{name: name, unit: "fetch", data: d, run: run}
}

// dropLogs takes the log files of a topic out of the page cache.
func (r *rig) dropLogs(topic string) error {
	names, err := filepath.Glob(filepath.Join(r.dir, topic+"-*", "*.log"))
	for _, name := range names {
		err = errors.Join(err, dropFromCache(name))
	}
	return err
}

// lookUps asks for random times.
func lookUps(name string, d data, connections int) load {
	run := func(ctx context.Context, r *rig, m *meter) error {
		return r.each(ctx, m, connections, func(ctx context.Context, i int, w *wire) error {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			q := vary(listOffsetsRequest(d.topic, mark))
			return timed(ctx, m, func() error {
				at := rng.Int64N(d.end())
				if err := w.send(q.with(base + at)); err != nil {
					return err
				}
				got, err := w.lookedUp()
				if err == nil && got != at {
					err = fmt.Errorf("look-up of %d: offset %d, want %d", base+at, got, at)
				}
				return err
			})
		})
	}
	return load{name: name, unit: "look-up", data: d, run: run}
}

// timed does something again and again until the context ends, and notes how long each took.
func timed(ctx context.Context, m *meter, do func() error) error {
	latencies := make([]time.Duration, 0, 1<<16)
	defer func() { m.took(latencies) }()
	for ctx.Err() == nil {
		start := time.Now()
		if err := do(); err != nil {
			return err
		}
		latencies = append(latencies, time.Since(start))
		m.did(1, 0)
	}
	return nil
}

// randomFetches reads one record at a random offset.
func randomFetches(name string, d data) load {
	run := func(ctx context.Context, r *rig, m *meter) error {
		return r.each(ctx, m, 4, func(ctx context.Context, i int, w *wire) error {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			q := vary(fetchRequest(d.topic, 0, mark, 500, 1))
			return timed(ctx, m, func() error {
				at := rng.Int64N(d.end())
				if err := w.send(q.with(at)); err != nil {
					return err
				}
				n, _, err := w.fetched(at)
				if err == nil && n == 0 {
					err = errors.New("fetch: no record")
				}
				return err
			})
		})
	}
	return load{name: name, unit: "fetch", data: d, run: run}
}
