//go:build oracle

// Package bench measures Kafka and Tidemark side by side, in turn, in one run:
//
//	go test -tags oracle -run '^$' -bench . -benchtime 3x ./test/bench
package bench

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// contender is one of the two that are measured.
type contender struct {
	name string
	// start starts a server over dir on port and returns at once.
	start func(b *testing.B, dir string, port int) *proc.Process
	// offsets is the command line of kafka-get-offsets in a process of its own.
	offsets func(b *testing.B, addr string) *exec.Cmd
}

func contenders(b *testing.B) []contender {
	k := oracle.Get(b, oracle.Version)
	tidemark := proc.Tidemark(b)
	return []contender{
		{"Kafka", func(b *testing.B, dir string, port int) *proc.Process {
			return k.Plain(b, dir, port, nil)
		}, func(_ *testing.B, addr string) *exec.Cmd {
			return k.PlainTool("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", addr, "--topic", "t")
		}},
		{"Tidemark", func(b *testing.B, dir string, port int) *proc.Process {
			return proc.Start(b, "tidemark", tidemark, "serve", "--data", dir,
				"--listen", "127.0.0.1:"+strconv.Itoa(port), "--set", "tidemark.admin.listener=")
		}, func(_ *testing.B, addr string) *exec.Cmd {
			return exec.Command(tidemark, "kafka-get-offsets", "--bootstrap-server", addr, "--topic", "t")
		}},
	}
}

// BenchmarkStart is the time from the start of the process until the first produce request is acknowledged, over a
// directory that has the topic. It also reports resident memory a second later and the time of one get-offsets call.
func BenchmarkStart(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run(c.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "data")
			port := proc.FreePorts(b, 1)[0]
			addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			p := c.start(b, dir, port)
			createTopic(b, addr)
			p.Stop(b)
			var memory, tool time.Duration
			for b.Loop() {
				p = c.start(b, dir, port)
				untilProduced(b, addr)
				b.StopTimer()
				time.Sleep(time.Second)
				memory += time.Duration(residentKiB(b, p.PID()))
				tool += callOffsets(b, c, addr)
				p.Stop(b)
				b.StartTimer()
			}
			b.ReportMetric(float64(memory)/float64(b.N)/1024, "MiB-resident")
			b.ReportMetric(float64(tool.Milliseconds())/float64(b.N), "ms/get-offsets")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/start")
		})
	}
}

func callOffsets(b *testing.B, c contender, addr string) time.Duration {
	cmd := c.offsets(b, addr)
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start)
	if err != nil || !strings.HasPrefix(string(out), "t:0:") {
		b.Fatalf("get-offsets of %s: %v, %q", c.name, err, out)
	}
	return took
}

func residentKiB(b *testing.B, pid int) int64 {
	b.Helper()
	kib, err := statusKiB(pid, "VmRSS")
	if err != nil {
		b.Fatal(err)
	}
	return kib
}

// createTopic creates topic t, asking until the server answers.
func createTopic(b *testing.B, addr string) {
	b.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 7, 30_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = "t", 1, 1
	r.Topics = append(r.Topics, t)
	until(b, addr, r, func(resp kmsg.Response) bool {
		code := resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
		return code == 0 || code == 36
	})
}

// untilProduced sends one record, again and again until it is acknowledged.
func untilProduced(b *testing.B, addr string) {
	b.Helper()
	o := record.DefaultBuilderOptions()
	o.LeaderEpoch = -1
	batch := record.NewBuilder(o)
	if err := batch.Append(time.Now().UnixMilli(), []byte("key"), []byte("value"), nil); err != nil {
		b.Fatal(err)
	}
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, -1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "t"
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch.Bytes()
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	until(b, addr, r, func(resp kmsg.Response) bool {
		return resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode == 0
	})
}

// until sends a request on a new connection until an answer is good.
func until(b *testing.B, addr string, r kmsg.Request, good func(kmsg.Response) bool) {
	b.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if resp, err := ask(addr, r); err == nil && good(resp) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatalf("%T was not answered well within a minute", r)
}

func ask(addr string, r kmsg.Request) (kmsg.Response, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, r, 1)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		return nil, err
	}
	resp := r.ResponseKind()
	frame = frame[4:] // correlation id
	if resp.IsFlexible() {
		frame = frame[1:] // no tags
	}
	return resp, resp.ReadFrom(frame)
}
