//go:build oracle

package demo

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// base is the timestamp of the demo's first record, in ms.
const base = int64(1790214409427)

// batch is the timestamps in ms of the records that are sent as one batch.
type batch []int64

// single returns n batches of one record, each a second later.
func single(n int) []batch {
	var out []batch
	for i := range n {
		out = append(out, batch{base + int64(i)*1000})
	}
	return out
}

// produce sends a scenario's batches to both servers, each awaited; record i has key k<i> and value v<i>, counted over
// all batches.
func (w *world) produce(t *testing.T, s scenario) {
	t.Helper()
	for _, to := range w.servers {
		client, err := kgo.NewClient(kgo.SeedBrokers(to.Addr), kgo.DefaultProduceTopic(s.topic), kgo.ManualFlushing(),
			kgo.ProducerBatchCompression(s.codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		if err := send(client, s); err != nil {
			t.Fatalf("%s, topic %s: %v", to.Name, s.topic, err)
		}
		client.Close()
	}
}

func send(client *kgo.Client, s scenario) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	i := 0
	var failed error
	for _, b := range s.batches {
		if s.clock {
			time.Sleep(2 * time.Millisecond) // so that no two batches get the same time
		}
		for _, ts := range b {
			r := &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i), Timestamp: time.UnixMilli(ts)}
			client.Produce(ctx, r, func(_ *kgo.Record, err error) {
				if err != nil && failed == nil {
					failed = err
				}
			})
			i++
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}
