//go:build oracle

package bench

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
	"tidemark/test/proc"
)

var (
	sealedSegments = flag.String("sealed", "1,1000,10000", "numbers of segments of BenchmarkStartSealed, with commas")
	besideKafka    = flag.Int("beside", 10_000, "numbers up to which Kafka is measured too by BenchmarkStartSealed")
	unflushedMiB   = flag.Int("unflushed", 1500, "MiB that BenchmarkRecovery has recovered")
)

// createWith creates topic t with configs.
func createWith(b *testing.B, addr string, configs map[string]string) {
	b.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 7, 30_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = "t", 1, 1
	for key, value := range configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
	}
	r.Topics = append(r.Topics, t)
	until(b, addr, r, func(resp kmsg.Response) bool {
		code := resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
		return code == 0 || code == 36
	})
	untilProduced(b, addr)
}

// BenchmarkStartSealed starts over a partition with so many sealed segments, after a clean stop: the time until the
// first acknowledged record, and then resident memory, descriptors and memory maps.
func BenchmarkStartSealed(b *testing.B) {
	both := contenders(b)
	for text := range strings.SplitSeq(*sealedSegments, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		dir := filepath.Join(b.TempDir(), "data")
		port := proc.FreePorts(b, 1)[0]
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		p := both[1].start(b, dir, port)
		createWith(b, addr, map[string]string{"internal.segment.bytes": "100", "segment.index.bytes": "1000",
			"retention.ms": "-1"})
		p.Stop(b)
		if err := writeSegments(dir, n); err != nil {
			b.Fatal(err)
		}
		for _, who := range []contender{both[1], both[0]} { // Kafka last: it may write indexes anew
			if who.name == "Kafka" && n > *besideKafka {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", who.name, n), func(b *testing.B) {
				p := who.start(b, dir, port) // one more, that is not measured: what another one left is put in order
				untilProduced(b, addr)
				p.Stop(b)
				for b.Loop() {
					p = who.start(b, dir, port)
					untilProduced(b, addr)
					b.StopTimer()
					reportProcess(b, p.PID())
					p.Stop(b)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/start")
			})
		}
	}
}

// writeSegments makes segments of one record each, behind the one record that topic t has in a directory that was
// closed in good order.
func writeSegments(dir string, n int) error {
	o := record.DefaultBuilderOptions()
	o.LeaderEpoch = 0
	for offset := int64(1); offset <= int64(n); offset++ {
		o.BaseOffset = offset
		batch := record.NewBuilder(o)
		now := time.Now().UnixMilli()
		if err := batch.Append(now, []byte("key"), []byte("value"), nil); err != nil {
			return err
		}
		for suffix, data := range map[string][]byte{".log": batch.Bytes(), ".index": nil,
			".timeindex": binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(now)), 0),
			".snapshot":  {0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0}} {
			name := filepath.Join(dir, "t-0", fmt.Sprintf("%020d%s", offset, suffix))
			if err := os.WriteFile(name, data, 0o600); err != nil {
				return err
			}
		}
	}
	points := fmt.Sprintf("0\n1\nt 0 %d\n", n+1)
	return os.WriteFile(filepath.Join(dir, "recovery-point-offset-checkpoint"), []byte(points), 0o600)
}

// reportProcess reports memory, descriptors and maps of a process.
func reportProcess(b *testing.B, pid int) {
	b.Helper()
	b.ReportMetric(float64(residentKiB(b, pid))/1024, "MiB-resident")
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		b.Fatal(err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(descriptors)), "descriptors")
	b.ReportMetric(float64(bytes.Count(maps, []byte("\n"))), "maps")
}

// BenchmarkRecovery starts over a log of which nothing was flushed, after SIGKILL: the time until the first
// acknowledged record. The figure beside it is what reading the log and its checksums cost, in one go.
func BenchmarkRecovery(b *testing.B) {
	both := contenders(b)
	dir := filepath.Join(b.TempDir(), "data")
	port := proc.FreePorts(b, 1)[0]
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := both[1].start(b, dir, port)
	createWith(b, addr, map[string]string{"retention.ms": "-1", "max.message.bytes": "2000000"})
	c := dialServer(b, addr)
	for range *unflushedMiB {
		c.megabyte(b)
	}
	p.Kill(b)
	for _, who := range []contender{both[1], both[0]} {
		b.Run(who.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				forgetRecoveryPoints(b, dir)
				read := readChecksums(b, filepath.Join(dir, "t-0"))
				b.StartTimer()
				p := who.start(b, dir, port)
				untilProduced(b, addr)
				b.StopTimer()
				p.Kill(b)
				b.ReportMetric(read.Seconds(), "s/checksums-alone")
				b.StartTimer()
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/recovery")
		})
	}
}

// megabyte appends one batch of 1 KiB records.
func (c *serverConn) megabyte(b *testing.B) {
	b.Helper()
	o := record.DefaultBuilderOptions()
	o.LeaderEpoch = -1
	batch := record.NewBuilder(o)
	value := make([]byte, 1000)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	for range 1024 {
		if err := batch.Append(time.Now().UnixMilli(), nil, value, nil); err != nil {
			b.Fatal(err)
		}
	}
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, 1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "t"
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch.Bytes()
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	resp, _, err := c.ask(r)
	if err != nil || resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode != 0 {
		b.Fatalf("append: %v %+v", err, resp)
	}
}

// forgetRecoveryPoints makes a directory one of which nothing was flushed.
func forgetRecoveryPoints(b *testing.B, dir string) {
	b.Helper()
	for _, name := range []string{"recovery-point-offset-checkpoint", ".kafka_cleanshutdown"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
	}
}

// readChecksums reads all batches of a folder and verifies their checksums.
func readChecksums(b *testing.B, folder string) time.Duration {
	b.Helper()
	began := time.Now()
	logs, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			b.Fatal(err)
		}
		s := record.NewScanner(f, 0, info.Size())
		for s.Next() {
			if ok, err := s.ValidCRC(); err != nil || !ok {
				b.Fatalf("%s at %d: %v", name, s.Pos(), err)
			}
		}
		f.Close()
	}
	return time.Since(began)
}
