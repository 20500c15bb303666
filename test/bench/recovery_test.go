//go:build oracle

package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/record"
	"tidemark/test/proc"
)

var (
	sealedSegments = flag.String("sealed", "1,1000,10000", "numbers of segments of BenchmarkStartSealed, with commas")
	besideKafka    = flag.Int("beside", 10_000, "numbers up to which Kafka is measured too by BenchmarkStartSealed")
	unflushedMiB   = flag.Int("unflushed", 1500, "MiB that BenchmarkRecovery has recovered")
)

// createT creates topic t with one partition and configs, and appends a record.
func createT(b *testing.B, addr string, configs map[string]string) {
	b.Helper()
	err := createTopic(b.Context(), addr, startTopic, 1, configs)
	if err == nil {
		err = untilProduced(b.Context(), addr, startTopic)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// startT starts a contender and waits until topic t takes a record.
func startT(b *testing.B, c contender, dir string, port int) *proc.Process {
	b.Helper()
	p := c.start(b, dir, port)
	if err := untilProduced(b.Context(), loopback(port), startTopic); err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkStartSealed starts over a partition with so many sealed segments, after a clean stop: the time until the
// first acknowledged record, and then resident memory, descriptors and memory maps.
func BenchmarkStartSealed(b *testing.B) {
	both := contenders(b, nil)
	for text := range strings.SplitSeq(*sealedSegments, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		dir := filepath.Join(b.TempDir(), "data")
		port := proc.FreePorts(b, 1)[0]
		p := both[1].start(b, dir, port)
		createT(b, loopback(port), tinySegments)
		p.Stop(b)
		if err := writeSegments(dir, n); err != nil {
			b.Fatal(err)
		}
		for _, who := range []contender{both[1], both[0]} { // Kafka last: it may write indexes anew
			if who.name == "Kafka" && n > *besideKafka {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", who.name, n), func(b *testing.B) {
				p := startT(b, who, dir, port) // one more, that is not measured: what another one left is put in order
				p.Stop(b)
				for b.Loop() {
					p = startT(b, who, dir, port)
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

// writeSegments makes segments of one record each, behind those of tinySegments that topic t has in a directory that
// was closed in good order, until there are n.
func writeSegments(dir string, n int) error {
	logs, err := filepath.Glob(filepath.Join(dir, startTopic+"-0", "*.log"))
	if err != nil || len(logs) == 0 {
		return fmt.Errorf("no segment in %s: %w", dir, err)
	}
	last, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(slices.Max(logs)), ".log"), 10, 64)
	if err != nil {
		return err
	}
	offset, now := last+1, time.Now().UnixMilli()
	for there := len(logs); there < n; there++ {
		if err := writeSegment(filepath.Join(dir, startTopic+"-0", fmt.Sprintf("%020d", offset)), offset, now); err != nil {
			return err
		}
		offset++
	}
	points := fmt.Sprintf("0\n1\n%s 0 %d\n", startTopic, offset)
	return os.WriteFile(filepath.Join(dir, "recovery-point-offset-checkpoint"), []byte(points), 0o600)
}

// writeSegment writes the files of a segment of one record.
func writeSegment(path string, offset, at int64) error {
	o := record.DefaultBuilderOptions()
	o.LeaderEpoch, o.BaseOffset = 0, offset
	batch := record.NewBuilder(o)
	if err := batch.Append(at, []byte("key"), []byte("value"), nil); err != nil {
		return err
	}
	var failed error
	for suffix, data := range map[string][]byte{".log": batch.Bytes(), ".index": nil,
		".timeindex": binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(at)), 0),
		".snapshot":  {0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0}} {
		failed = errors.Join(failed, os.WriteFile(path+suffix, data, 0o600))
	}
	return failed
}

// reportProcess reports memory, descriptors and maps of a process.
func reportProcess(b *testing.B, pid int) {
	b.Helper()
	resident, err := statusKiB(pid, "VmRSS")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(resident)/1024, "MiB-resident")
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
	both := contenders(b, nil)
	dir := filepath.Join(b.TempDir(), "data")
	port := proc.FreePorts(b, 1)[0]
	p := both[1].start(b, dir, port)
	createT(b, loopback(port), with(kept, "max.message.bytes", "2000000"))
	d := data{topic: startTopic, batches: *unflushedMiB, records: 1024, valueBytes: 1000}
	if err := d.fill(b.Context(), loopback(port)); err != nil {
		b.Fatal(err)
	}
	p.Kill(b)
	for _, who := range []contender{both[1], both[0]} {
		b.Run(who.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				forgetRecoveryPoints(b, dir)
				read := readChecksums(b, filepath.Join(dir, "t-0"))
				b.StartTimer()
				p := startT(b, who, dir, port)
				b.StopTimer()
				p.Kill(b)
				b.ReportMetric(read.Seconds(), "s/checksums-alone")
				b.StartTimer()
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/recovery")
		})
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
