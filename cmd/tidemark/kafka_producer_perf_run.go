package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

func randomBytes() (b [16]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

func sortedNames(names []string) []string {
	slices.Sort(names)
	return names
}

// perfRun is one run of the tool.
type perfRun struct {
	*producerPerf
	env     *cli.Env
	client  *kgo.Client
	meta    *sender // knows how to wait for a topic, and how large a record may be
	metrics *perfMetrics
	stats   *perfStats
	steady  *perfStats // nil: no records were left out yet
	random  splittable
}

// run produces the records. A Failure ends Kafka's tool by an exception.
func (p *producerPerf) run(ctx context.Context, env *cli.Env) error {
	r := &perfRun{producerPerf: p, env: env, metrics: newPerfMetrics("producer", p.settings["client.id"], env.Now())}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.client.Close()
	if p.warmup > 0 {
		fmt.Fprintf(env.Stdout, "Warmup first %d records. Steady state results will print after the complete test "+
			"summary.\n", p.warmup)
	}
	r.stats = newPerfStats(env.Stdout, env.Now, p.records, p.reportingMs, false)
	if err := r.produceAll(ctx); err != nil {
		return err
	}
	if err := r.client.Flush(ctx); err != nil {
		return nil // interrupted
	}
	r.stats.printTotal()
	if r.steady != nil {
		r.steady.printTotal()
	}
	if p.printMetrics {
		r.metrics.print(env.Stdout)
	}
	return nil
}

// connect makes the producer, and initializes its transactions.
func (r *perfRun) connect(ctx context.Context) error {
	r.settings["compression.type"] = r.settings.Get("compression.type", "none")
	r.settings["acks"] = r.settings.Get("acks", "all")
	r.settings["linger.ms"] = r.settings.Get("linger.ms", "5")
	r.settings["request.timeout.ms"] = r.settings.Get("request.timeout.ms", "30000")
	r.settings["retries"] = r.settings.Get("retries", strconv.Itoa(math.MaxInt32))
	parsed, err := parseProducerSettings(r.settings)
	if err != nil {
		return err
	}
	options, err := r.options(parsed)
	if err != nil {
		return err
	}
	if r.client, err = cli.NewClient(r.env, cli.Producer, r.settings, options...); err != nil {
		return err
	}
	r.meta = &sender{producerSettings: parsed, env: r.env, client: r.client, topic: r.topic,
		clientID: r.settings["client.id"]}
	if !r.transactional {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, time.Duration(parsed.maxBlockMs)*time.Millisecond)
	defer cancel()
	if _, _, err := r.client.ProducerID(wait); err != nil {
		r.client.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return cli.Fail(classKafkaTimeout, "Timeout expired after %dms while awaiting InitProducerId", parsed.maxBlockMs)
		}
		return produceFailure(err)
	}
	return nil
}

// options turns Kafka's settings into those of the client.
func (r *perfRun) options(s producerSettings) ([]kgo.Opt, error) {
	memory, err := number(r.settings, "buffer.memory", "33554432", 0)
	if err != nil {
		return nil, err
	}
	inFlight, err := number(r.settings, "max.in.flight.requests.per.connection", "5", 1)
	if err != nil {
		return nil, err
	}
	timeout, err := number(r.settings, "transaction.timeout.ms", "60000", 1)
	if err != nil {
		return nil, err
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	options := []kgo.Opt{
		kgo.ProducerLinger(ms(s.lingerMs)), kgo.MaxBufferedBytes(int(memory)), kgo.MaxBufferedRecords(math.MaxInt32),
		kgo.ProducerBatchMaxBytes(bounded(max(s.batchSize, s.maxRequestBytes))),
		kgo.ProduceRequestTimeout(ms(s.requestTimeoutMs)),
		kgo.RecordDeliveryTimeout(ms(s.deliveryMs)), kgo.RecordRetries(int(s.retries)),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(int(max(s.batchSize, 1)), true, true, nil)),
		kgo.ProducerBatchCompression(perfCodec(s)), kgo.AllowAutoTopicCreation(),
		kgo.WithHooks(r.metrics),
	}
	switch s.acks {
	case 0:
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	case 1:
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if !s.idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(int(inFlight)))
	}
	if r.transactional {
		options = append(options, kgo.TransactionalID(r.settings["transactional.id"]), kgo.TransactionTimeout(ms(timeout)))
	}
	return options, nil
}

func perfCodec(s producerSettings) kgo.CompressionCodec {
	codec := map[record.Codec]kgo.CompressionCodec{record.None: kgo.NoCompression(), record.Gzip: kgo.GzipCompression(),
		record.Snappy: kgo.SnappyCompression(), record.LZ4: kgo.Lz4Compression(), record.Zstd: kgo.ZstdCompression()}[s.codec]
	if s.level != 0 {
		codec = codec.WithLevel(s.level)
	}
	return codec
}

// produceAll produces the records, in transactions or without, not faster than asked for.
func (r *perfRun) produceAll(ctx context.Context) error {
	pace := throttle{target: r.throughput, start: r.env.Now().UnixMilli()}
	inTransaction, began := false, int64(0)
	for i := range r.records {
		if ctx.Err() != nil {
			return nil
		}
		value := r.next(i)
		if r.transactional && !inTransaction {
			if err := r.client.BeginTransaction(); err != nil {
				return produceFailure(err)
			}
			inTransaction, began = true, r.env.Now().UnixMilli()
		}
		at := r.env.Now().UnixMilli()
		if r.warmup > 0 && i == r.warmup {
			r.steady = newPerfStats(r.env.Stdout, r.env.Now, r.records-r.warmup, r.reportingMs, true)
			r.stats.quiet = true
		}
		r.produce(ctx, value, at)
		if r.transactional && r.transactionMs <= at-began {
			if err := r.commit(ctx); err != nil {
				return err
			}
			inTransaction = false
		}
		pace.wait(ctx, i, at)
	}
	if inTransaction {
		return r.commit(ctx)
	}
	return nil
}

// next is the value of the i-th record.
func (r *perfRun) next(i int64) []byte {
	switch {
	case len(r.payloads) > 0:
		return r.payloads[r.random.below(int32(len(r.payloads)))]
	case r.recordSize == 0:
		return strconv.AppendInt(nil, i, 10)
	}
	value := make([]byte, r.recordSize)
	for j := range value {
		value[j] = byte('A' + r.random.below('Z'-'A'+1))
	}
	return value
}

// produce hands a record to the client. What becomes of it is told by the statistics, or on the error output.
func (r *perfRun) produce(ctx context.Context, value []byte, at int64) {
	one := timedRecord{newRecord{value: value}, at}
	if size := one.maxSize(); int64(size) > r.meta.maxRequestBytes {
		r.complain(cli.Fail(classRecordTooLong, "The message is %d bytes when serialized which is larger than %d, which is "+
			"the value of the max.request.size configuration.", size, r.meta.maxRequestBytes))
		return
	}
	if f := r.meta.wantMeta(ctx); f != nil {
		r.complain(f)
		return
	}
	stats, steady := r.stats, r.steady
	r.client.Produce(ctx, &kgo.Record{Topic: r.topic, Value: value}, func(_ *kgo.Record, err error) {
		now := r.env.Now().UnixMilli()
		if err != nil {
			r.metrics.failed()
			if ctx.Err() == nil {
				r.complain(produceFailure(err))
			}
			return
		}
		stats.record(now-at, int64(len(value)), now)
		if steady != nil {
			steady.record(now-at, int64(len(value)), now)
		}
	})
}

// complain prints an exception as Java does, without where it was thrown.
func (r *perfRun) complain(f *cli.Failure) { fmt.Fprint(r.env.Stderr, f.Trace()) }

func (r *perfRun) commit(ctx context.Context) error {
	if err := r.client.Flush(ctx); err != nil {
		return nil // interrupted
	}
	if err := r.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return produceFailure(err)
	}
	return nil
}

// produceFailure is an error of the client in Kafka's words.
func produceFailure(err error) *cli.Failure {
	var coded *kerr.Error
	if errors.As(err, &coded) {
		return cli.APIFailure(coded.Code, nil)
	}
	return cli.AsFailure(err)
}

// throttle keeps to a number of records a second.
//
// Kafka: ThroughputThrottler: the time to wait is gathered up until it is 2 ms.
type throttle struct {
	target float64
	start  int64 // ms
	owed   time.Duration
}

func (t *throttle) wait(ctx context.Context, sent, at int64) {
	if elapsed := float64(at-t.start) / 1000; t.target < 0 || elapsed <= 0 || float64(sent)/elapsed <= t.target {
		return
	}
	if t.target == 0 {
		<-ctx.Done()
		return
	}
	const least = 2 * time.Millisecond
	if t.owed += time.Duration(float64(time.Second) / t.target); t.owed < least {
		return
	}
	began := time.Now()
	select {
	case <-time.After(t.owed):
	case <-ctx.Done():
	}
	t.owed = max(0, t.owed-time.Since(began))
}
