//go:build oracle

package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Each number of producers commits for warmTime, and then for commitTime, which counts.
const (
	warmTime   = 8 * time.Second
	commitTime = 5 * time.Second
)

// BenchmarkCommits is how many transactions of one small record are committed per second by 1, 100 and 1 000 producers
// at once. Run it with -benchtime 1x.
func BenchmarkCommits(b *testing.B) { atOnce(b, commitsPerSecond) }

// atOnce reports how many commits there are per second with 1, 100 and 1 000 at once, for Kafka and Tidemark.
func atOnce(b *testing.B, perSecond func(b *testing.B, addr string, n int) float64) {
	for _, c := range contenders(b, nil) {
		b.Run(c.name, func(b *testing.B) {
			p, addr := c.onFreePort(b, filepath.Join(b.TempDir(), "data"))
			createT(b, addr, nil)
			for _, n := range []int{1, 100, 1000} {
				b.Run(strconv.Itoa(n), func(b *testing.B) {
					for b.Loop() {
						b.ReportMetric(perSecond(b, addr, n), "commits/s")
					}
				})
			}
			p.Stop(b)
		})
	}
}

// commitsPerSecond runs n producers, each with one transaction after the other, once all have committed one.
func commitsPerSecond(b *testing.B, addr string, n int) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	var ready, done sync.WaitGroup
	var stopped atomic.Bool
	var commits atomic.Int64
	ready.Add(n)
	begin := make(chan struct{})
	for i := range n {
		done.Go(func() {
			client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(fmt.Sprintf("%d-%d", n, i)),
				kgo.DefaultProduceTopic("t"), kgo.ProducerLinger(0))
			if err == nil {
				defer client.Close()
				err = commitOne(ctx, client)
			}
			ready.Done()
			<-begin
			for err == nil && !stopped.Load() {
				if err = commitOne(ctx, client); err == nil {
					commits.Add(1)
				}
			}
			if err != nil {
				b.Errorf("producer %d of %d: %v", i, n, err)
			}
		})
	}
	ready.Wait()
	close(begin)
	time.Sleep(warmTime)
	before, start := commits.Load(), time.Now()
	time.Sleep(commitTime)
	count, took := commits.Load()-before, time.Since(start)
	stopped.Store(true)
	done.Wait()
	return float64(count) / took.Seconds()
}

func commitOne(ctx context.Context, client *kgo.Client) error {
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, kgo.StringRecord("value")).FirstErr(); err != nil {
		return err
	}
	return client.EndTransaction(ctx, kgo.TryCommit)
}
