//go:build oracle

package bench

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"tidemark/record"
)

// Loads whose pace the client sets.

// waiting has consumers at the end of the topic: with long polls of half a second, or one short poll every 5 s.
func waiting(name string, d data, consumers int, slow bool) load {
	run := func(ctx context.Context, r *rig, m *meter) error {
		waitMs := int32(500)
		if slow {
			waitMs = 0
		}
		return r.each(ctx, m, consumers, func(ctx context.Context, i int, w *wire) error {
			frame := appendFrame(nil, fetchRequest(d.topic, 0, 0, waitMs, 1<<20))
			if slow {
				pause(ctx, 5*time.Second*time.Duration(i)/time.Duration(consumers))
			}
			for ctx.Err() == nil {
				if err := w.send(frame); err != nil {
					return err
				}
				if _, _, err := w.fetched(0); err != nil {
					return err
				}
				m.did(1, 0)
				if slow {
					pause(ctx, 5*time.Second)
				}
			}
			return nil
		})
	}
	return load{name: name, unit: "poll", data: d, run: run}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// rarely writes a record to one of many partitions, 1 000 times a second in all.
func rarely(name string, d data) load {
	next := map[string]int{} // by contender: each round goes on where the last ended
	run := func(ctx context.Context, r *rig, m *meter) error {
		set, err := batch(1, 100, base, record.None)
		if err != nil {
			return err
		}
		return r.each(ctx, m, 1, func(ctx context.Context, _ int, w *wire) error {
			q := vary(produceRequest(d.topic, int32(mark>>32), set))
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				if err := w.send(q.with(int64(next[r.name] % int(d.partitions)))); err != nil {
					return err
				}
				if err := w.produced(); err != nil {
					return err
				}
				next[r.name]++
				m.did(1, 0)
			}
			return nil
		})
	}
	return load{name: name, unit: "record", data: d, run: run}
}

// endToEnd is the time from handing a record to a producer until a consumer has it, at a rate of records per second.
func endToEnd(name string, d data, rate int) load {
	run := func(ctx context.Context, r *rig, m *meter) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(r.addr), kgo.DefaultProduceTopic(d.topic), kgo.ProducerLinger(0),
			kgo.DisableIdempotentWrite(), kgo.ConsumeTopics(d.topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
		if err != nil {
			return err
		}
		defer client.Close()
		all, ctx := errgroup.WithContext(ctx)
		all.Go(func() error { return produceAt(ctx, client, rate) })
		all.Go(func() error { return receive(ctx, client, m) })
		return all.Wait()
	}
	return load{name: name, unit: "record", data: d, run: run}
}

// produceAt hands over records at a rate, a few each ms; a record's value is when that was.
func produceAt(ctx context.Context, client *kgo.Client, rate int) error {
	var failed atomic.Pointer[error]
	start := time.Now()
	for sent := 0; ctx.Err() == nil && failed.Load() == nil; {
		for due := int(time.Since(start).Seconds() * float64(rate)); sent < due; sent++ {
			value := strconv.AppendInt(make([]byte, 0, 100), time.Now().UnixNano(), 10)
			client.Produce(context.Background(), &kgo.Record{Value: value[:cap(value)]}, func(_ *kgo.Record, err error) {
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

// digits are those of a time in ns.
const digits = 19

// receive notes how long records took; the count begins with the second batch of records, when all connections stand.
func receive(ctx context.Context, client *kgo.Client, m *meter) error {
	var latencies []time.Duration
	defer func() { m.took(latencies) }()
	for polls := 0; ctx.Err() == nil; {
		fetches := client.PollFetches(ctx)
		now := time.Now().UnixNano()
		if err := fetches.Err0(); err != nil && ctx.Err() == nil {
			return err
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		if polls++; polls == 2 {
			m.begin(ctx)
		}
		for it := fetches.RecordIter(); !it.Done() && polls > 1; {
			sent, err := strconv.ParseInt(string(it.Next().Value[:digits]), 10, 64)
			if err != nil {
				return err
			}
			latencies = append(latencies, time.Duration(now-sent))
			m.did(1, 0)
		}
	}
	return nil
}
