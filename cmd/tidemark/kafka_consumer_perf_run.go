package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/cmd/internal/cli"
)

// perfReading is one run of the tool. Times are ms.
type perfReading struct {
	*consumerPerf
	env     *cli.Env
	client  *kgo.Client
	metrics *perfMetrics
	joins   perfJoins

	records, bytes         int64
	lastRecords, lastBytes int64 // at the last line of progress
	lastReport             int64
}

// perfJoins is the time that the group took to hand out partitions.
type perfJoins struct {
	mu            sync.Mutex
	began         int64
	owned         map[string]map[int32]bool
	total, lately int64
}

// pollTime is for how long a poll waits for records.
const pollTime = 100 * time.Millisecond

// run reads until there are enough records, or none came for too long.
func (c *consumerPerf) run(ctx context.Context, env *cli.Env) error {
	r := &perfReading{consumerPerf: c, env: env,
		metrics: newPerfMetrics("consumer", c.settings["client.id"], env.Now())}
	if err := r.connect(); err != nil {
		return err
	}
	defer r.client.Close()
	start := r.nowMs()
	r.joins.began = start
	if err := r.consume(ctx); err != nil {
		return err
	}
	end := r.nowMs()
	if !c.detailed {
		r.printTotal(start, end)
	}
	if c.metrics {
		r.metrics.print(env.Stdout)
	}
	return nil
}

func (r *perfReading) nowMs() int64 { return r.env.Now().UnixMilli() }

func (r *perfReading) connect() error {
	r.settings["isolation.level"] = r.settings.Get("isolation.level", "read_uncommitted")
	var err error
	if r.maxPoll, err = number(r.settings, "max.poll.records", "500", 1); err != nil {
		return err
	}
	reader := consumer{consumption: consumption{topic: r.topic, include: r.include, group: r.settings["group.id"],
		partition: -1, settings: r.settings}, env: r.env}
	options, err := reader.clientOptions()
	if err != nil {
		return err
	}
	options = append(options, kgo.WithHooks(r.metrics), kgo.OnPartitionsAssigned(r.assigned),
		kgo.OnPartitionsRevoked(r.revoked), kgo.OnPartitionsLost(r.revoked))
	r.client, err = cli.NewClient(r.env, cli.Consumer, r.settings, options...)
	return err
}

func (r *perfReading) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	j := &r.joins
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.owned) == 0 {
		took := r.nowMs() - j.began
		j.total += took
		j.lately += took
		j.owned = map[string]map[int32]bool{}
	}
	for topic, ids := range partitions {
		if j.owned[topic] == nil {
			j.owned[topic] = map[int32]bool{}
		}
		for _, id := range ids {
			j.owned[topic][id] = true
		}
	}
}

func (r *perfReading) revoked(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	j := &r.joins
	j.mu.Lock()
	defer j.mu.Unlock()
	for topic, ids := range partitions {
		for _, id := range ids {
			delete(j.owned[topic], id)
		}
		if len(j.owned[topic]) == 0 {
			delete(j.owned, topic)
		}
	}
	if len(j.owned) == 0 {
		j.began = r.nowMs()
	}
}

// consume reads; the error is one that a consumer of Kafka's ends with.
func (r *perfReading) consume(ctx context.Context) error {
	now := r.nowMs()
	r.lastReport = now
	lastRecord := now
	for r.records < r.wanted && now-lastRecord <= r.timeoutMs && ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, pollTime)
		fetches := r.client.PollRecords(poll, int(r.maxPoll))
		cancel()
		now = r.nowMs()
		if fetches.NumRecords() > 0 {
			lastRecord = now
		} else if err := fatalFetch(fetches); err != nil {
			return err
		}
		r.take(fetches, now)
	}
	if r.records < r.wanted {
		fmt.Fprintf(r.env.Stdout, "WARNING: Exiting before consuming the expected number of records: timeout (%d ms) "+
			"exceeded. You can use the --timeout option to increase the timeout.\n", r.timeoutMs)
	}
	return nil
}

// take counts records, and tells of the progress.
func (r *perfReading) take(fetches kgo.Fetches, now int64) {
	fetches.EachRecord(func(one *kgo.Record) {
		r.records++
		r.bytes += int64(len(one.Key) + len(one.Value))
		r.client.MarkCommitRecords(one)
		if now-r.lastReport < r.reportingMs {
			return
		}
		r.joins.mu.Lock()
		joined := r.joins.lately
		r.joins.lately = 0
		r.joins.mu.Unlock()
		if r.detailed {
			r.printProgress(now, joined)
		}
		r.lastReport, r.lastRecords, r.lastBytes = now, r.records, r.bytes
	})
}

// fatalFetch is an error that no waiting helps against.
func fatalFetch(fetches kgo.Fetches) (fatal error) {
	fetches.EachError(func(_ string, _ int32, err error) {
		var coded *kerr.Error
		if errors.As(err, &coded) && !coded.Retriable && coded.Code != codeUnknownTopic {
			fatal = cli.APIFailure(coded.Code, nil)
		}
	})
	return fatal
}

// printProgress prints what came since the last line.
func (r *perfReading) printProgress(now, joined int64) {
	elapsed := now - r.lastReport
	records, bytes := r.records-r.lastRecords, r.bytes-r.lastBytes
	fetching := elapsed - joined
	mbs, recs := 0.0, 0.0
	if fetching > 0 {
		mbs, recs = perSecond(bytes, fetching)/bytesPerMB, perSecond(records, fetching)
	}
	fmt.Fprintf(r.env.Stdout, "%s, 0, %s, %s, %d, %s, %d, %d, %s, %s\n", r.format.text(now),
		decimals(float64(r.bytes)/bytesPerMB, 4), decimals(perSecond(bytes, elapsed)/bytesPerMB, 4), r.records,
		decimals(perSecond(records, elapsed), 4), joined, fetching, decimals(mbs, 4), decimals(recs, 4))
}

func (r *perfReading) printTotal(start, end int64) {
	r.joins.mu.Lock()
	joined := r.joins.total
	r.joins.mu.Unlock()
	fetching := end - start - joined
	fmt.Fprintf(r.env.Stdout, "%s, %s, %s, %s, %d, %s, %d, %d, %s, %s\n", r.format.text(start), r.format.text(end),
		decimals(float64(r.bytes)/bytesPerMB, 4), decimals(perSecond(r.bytes, end-start)/bytesPerMB, 4), r.records,
		decimals(perSecond(r.records, end-start), 4), joined, fetching,
		decimals(perSecond(r.bytes, fetching)/bytesPerMB, 4), decimals(perSecond(r.records, fetching), 4))
}
