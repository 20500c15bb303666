//go:build oracle

package bench

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
)

var expiredSegments = flag.Int("expired", 10_000, "segments that BenchmarkRetention has deleted")

// BenchmarkRetention has a partition of many segments, each with one old record, lets them expire at once, and appends
// to the partition all the while: the time from the change of retention.ms until the first offset has moved behind
// them, and the longest time that an append was waited for, then and before.
func BenchmarkRetention(b *testing.B) {
	for _, c := range contenders(b, map[string]string{"log.retention.check.interval.ms": "100",
		"log.initial.task.delay.ms": "100"}) {
		b.Run(c.name, func(b *testing.B) {
			var quiet, stall, took time.Duration
			for b.Loop() {
				dir := filepath.Join(b.TempDir(), "data")
				p, addr := c.onFreePort(b, dir)
				makeSegments(b, addr)
				p.Stop(b) // what is still to be synced is, and not meanwhile
				p, addr = c.onFreePort(b, dir)
				q, s, d := expire(b, addr)
				quiet, stall, took = max(quiet, q), max(stall, s), took+d
				p.Stop(b)
			}
			b.ReportMetric(float64(quiet.Microseconds())/1000, "ms-longest-append-before")
			b.ReportMetric(float64(stall.Microseconds())/1000, "ms-longest-append-meanwhile")
			b.ReportMetric(took.Seconds()/float64(b.N), "s/deletion")
		})
	}
}

// makeSegments makes a topic of many segments with one old record each. The first is as old as the others: a young one
// would keep all.
func makeSegments(b *testing.B, addr string) {
	b.Helper()
	configs := with(tinySegments, "file.delete.delay.ms", "1000")
	if err := createTopic(b.Context(), addr, startTopic, 1, configs); err != nil {
		b.Fatal(err)
	}
	w := dial(b, addr)
	for range *expiredSegments + 1 {
		appendAt(b, w, time.Now().Add(-time.Hour))
	}
	alter(b, w, "internal.segment.bytes", "1073741824")
}

// expire has the segments deleted.
func expire(b *testing.B, addr string) (quiet, stall, took time.Duration) {
	if err := untilProduced(b.Context(), addr, startTopic); err != nil {
		b.Fatal(err)
	}
	c := dial(b, addr)
	appendAt(b, c, time.Now()) // in the last of the small segments, or a new one: it is young
	for range 500 {
		quiet = max(quiet, appendAt(b, c, time.Now()))
	}
	admin := dial(b, addr)
	alter(b, admin, "retention.ms", "600000")
	start := time.Now()
	gone := make(chan time.Duration, 1)
	go func() { gone <- untilStart(b, admin, int64(*expiredSegments), start) }()
	for {
		select {
		case took = <-gone:
			return quiet, stall, took
		default:
			stall = max(stall, appendAt(b, c, time.Now()))
		}
	}
}

// appendAt appends a record with a timestamp and returns how long the answer took.
func appendAt(b *testing.B, w *wire, at time.Time) time.Duration {
	b.Helper()
	set, err := batch(1, 20, at.UnixMilli(), record.None)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := w.appendOne(startTopic, set); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func alter(b *testing.B, w *wire, key, value string) {
	b.Helper()
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r.Version = 1
	t := kmsg.NewIncrementalAlterConfigsRequestResource()
	t.ResourceType, t.ResourceName = kmsg.ConfigResourceTypeTopic, startTopic
	t.Configs = append(t.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Value: &value})
	r.Resources = append(r.Resources, t)
	answer, err := ask[*kmsg.IncrementalAlterConfigsResponse](w, r)
	if err != nil || answer.Resources[0].ErrorCode != 0 {
		b.Fatalf("alter: %v %+v", err, answer)
	}
}

// untilStart waits until the partition begins at an offset or above it.
func untilStart(b *testing.B, w *wire, offset int64, since time.Time) time.Duration {
	r := listOffsetsRequest(startTopic, -2)
	for deadline := since.Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		answer, err := ask[*kmsg.ListOffsetsResponse](w, r)
		if err != nil {
			b.Errorf("list offsets: %v", err)
			break
		}
		if answer.Topics[0].Partitions[0].Offset >= offset {
			break
		}
	}
	return time.Since(since)
}
