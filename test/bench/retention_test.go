//go:build oracle

package bench

import (
	"encoding/binary"
	"flag"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

var expiredSegments = flag.Int("expired", 10_000, "segments that BenchmarkRetention has deleted")

// BenchmarkRetention has a partition of many segments, each with one old record, lets them expire at once, and appends
// to the partition all the while: the time from the change of retention.ms until the first offset has moved behind
// them, and the longest time that an append was waited for, then and before.
func BenchmarkRetention(b *testing.B) {
	settings := map[string]string{"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"}
	starts := map[string]func(b *testing.B, dir string, port int) *proc.Process{
		"Kafka": func(b *testing.B, dir string, port int) *proc.Process {
			return oracle.Get(b, oracle.Version).Plain(b, dir, port, settings)
		},
		"Tidemark": func(b *testing.B, dir string, port int) *proc.Process {
			var flags []string
			for key, value := range settings {
				flags = append(flags, "--set", key+"="+value)
			}
			p, _ := proc.Serve(b, dir, port, append(flags, "--set", "tidemark.admin.listener=")...)
			return p
		},
	}
	for _, name := range []string{"Kafka", "Tidemark"} {
		b.Run(name, func(b *testing.B) {
			var quiet, stall, took time.Duration
			for b.Loop() {
				port := proc.FreePorts(b, 1)[0]
				dir, addr := filepath.Join(b.TempDir(), "data"), net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
				p := starts[name](b, dir, port)
				makeSegments(b, addr)
				p.Stop(b) // what is still to be synced is, and not meanwhile
				p = starts[name](b, dir, port)
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

// makeSegments makes a topic of many segments with one old record each.
func makeSegments(b *testing.B, addr string) {
	b.Helper()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 30_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = "t", 1, 1
	for key, value := range map[string]string{"internal.segment.bytes": "100", "segment.index.bytes": "1000",
		"retention.ms": "-1", "file.delete.delay.ms": "1000"} {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
	}
	create.Topics = append(create.Topics, t)
	until(b, addr, create, func(r kmsg.Response) bool {
		code := r.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
		return code == 0 || code == 36
	})
	// The first record must be as old as the others: a young one would keep all.
	until(b, addr, appendRequest(b, time.Now().Add(-time.Hour)), func(r kmsg.Response) bool {
		return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode == 0
	})
	c := dialServer(b, addr)
	for range *expiredSegments {
		c.append(b, time.Now().Add(-time.Hour))
	}
	c.alter(b, "internal.segment.bytes", "1073741824")
}

// expire has the segments deleted.
func expire(b *testing.B, addr string) (quiet, stall, took time.Duration) {
	until(b, addr, appendRequest(b, time.Now()), func(r kmsg.Response) bool {
		return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode == 0
	})
	c := dialServer(b, addr)
	c.append(b, time.Now()) // in the last of the small segments, or a new one: it is young
	for range 500 {
		quiet = max(quiet, c.append(b, time.Now()))
	}
	admin := dialServer(b, addr)
	admin.alter(b, "retention.ms", "600000")
	start := time.Now()
	gone := make(chan time.Duration, 1)
	go func() { gone <- admin.untilStart(b, int64(*expiredSegments), start) }()
	for {
		select {
		case took = <-gone:
			return quiet, stall, took
		default:
			stall = max(stall, c.append(b, time.Now()))
		}
	}
}

// serverConn is a connection for requests one after the other.
type serverConn struct {
	net.Conn
	format *kmsg.RequestFormatter
}

func dialServer(b *testing.B, addr string) *serverConn {
	b.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return &serverConn{c, kmsg.NewRequestFormatter()}
}

// ask sends a request and returns the answer and how long it took. It may be called from other goroutines than the
// benchmark's: a failure is returned.
func (c *serverConn) ask(r kmsg.Request) (kmsg.Response, time.Duration, error) {
	start := time.Now()
	if _, err := c.Write(c.format.AppendRequest(nil, r, 1)); err != nil {
		return nil, 0, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, 0, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, 0, err
	}
	took := time.Since(start)
	resp := r.ResponseKind()
	frame = frame[4:] // correlation id
	if resp.IsFlexible() {
		frame = frame[1:] // no tags
	}
	return resp, took, resp.ReadFrom(frame)
}

// append appends a record and returns how long the answer took.
func (c *serverConn) append(b *testing.B, at time.Time) time.Duration {
	b.Helper()
	resp, took, err := c.ask(appendRequest(b, at))
	if err != nil || resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode != 0 {
		b.Fatalf("append: %v %+v", err, resp)
	}
	return took
}

func appendRequest(b *testing.B, at time.Time) *kmsg.ProduceRequest {
	b.Helper()
	o := record.DefaultBuilderOptions()
	o.LeaderEpoch = -1
	batch := record.NewBuilder(o)
	if err := batch.Append(at.UnixMilli(), []byte("key"), []byte("value of a record"), nil); err != nil {
		b.Fatal(err)
	}
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, 1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "t"
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch.Bytes()
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func (c *serverConn) alter(b *testing.B, key, value string) {
	b.Helper()
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r.Version = 1
	t := kmsg.NewIncrementalAlterConfigsRequestResource()
	t.ResourceType, t.ResourceName = kmsg.ConfigResourceTypeTopic, "t"
	t.Configs = append(t.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Value: &value})
	r.Resources = append(r.Resources, t)
	resp, _, err := c.ask(r)
	if err != nil || resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode != 0 {
		b.Fatalf("alter: %v %+v", err, resp)
	}
}

// untilStart waits until the partition begins at an offset or above it.
func (c *serverConn) untilStart(b *testing.B, offset int64, since time.Time) time.Duration {
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version, r.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = "t"
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = -2, -1
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	for deadline := since.Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		resp, _, err := c.ask(r)
		if err != nil {
			b.Errorf("list offsets: %v", err)
			break
		}
		if resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset >= offset {
			break
		}
	}
	return time.Since(since)
}
