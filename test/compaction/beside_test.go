//go:build oracle

package compaction

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/proc"
	"tidemark/vfs"
)

// keysEnv is the environment variable with the number of keys of BenchmarkBeside.
const keysEnv = "TIDEMARK_CLEANER_KEYS"

// BenchmarkBeside lets both brokers, one after the other, compact the same topic, in which each key has two records of
// 100 bytes, and tells how fast they were by the clock and what it cost:
//
//	go test -tags oracle -run '^$' -bench Beside -benchtime 1x ./test/compaction
func BenchmarkBeside(b *testing.B) {
	keys := int(proc.Number(b, keysEnv, 1_000_000))
	buffer := max(128<<20, keys*28) // so that one round takes all keys
	settings := map[string]string{"log.cleaner.backoff.ms": "100", "auto.create.topics.enable": "false",
		"log.cleaner.dedupe.buffer.size": fmt.Sprint(buffer)}
	b.Run("Kafka", func(b *testing.B) {
		n := oracle.Get(b, oracle.Version).Start(b, oracle.NodeOptions{Properties: settings, HeapMB: 512 + 2*buffer>>20})
		compactBeside(b, n.Process, n.Addr, n.Dir, keys)
	})
	b.Run("Tidemark", func(b *testing.B) {
		dir := b.TempDir()
		args := []string{"--set", "tidemark.admin.listener="}
		for key, value := range settings {
			args = append(args, "--set", key+"="+value)
		}
		p, addr := proc.Serve(b, dir, 0, args...)
		oracle.WaitReady(b, p, addr)
		compactBeside(b, p, addr, dir, keys)
		p.Stop(b)
	})
}

func compactBeside(b *testing.B, p *proc.Process, addr, dir string, keys int) {
	c := dial(b, addr)
	const topic = "beside"
	c.CreateTopic(b, topic, 1, "cleanup.policy", "delete", "retention.ms", "-1", "segment.bytes", "100000000",
		"min.cleanable.dirty.ratio", "0.01", "message.timestamp.after.max.ms", "9223372036854775807")
	size := int64(0)
	value := strings.Repeat("v", 100)
	builder := record.NewBuilder(record.DefaultBuilderOptions())
	for i := 0; i < 2*keys; i += 1000 {
		builder.Reset(record.DefaultBuilderOptions())
		for j := i; j < i+1000; j++ {
			key := j % keys
			if j >= keys {
				key = (key*7919 + 13) % keys
			}
			err := builder.Append(1_700_000_000_000+int64(j), fmt.Appendf(nil, "key-%09d", key), []byte(value), nil)
			if err != nil {
				b.Fatal(err)
			}
		}
		size += int64(builder.SizeBytes())
		send(b, c, topic, step{batch: builder.Bytes()})
	}
	setConfigs(b, c.Client, topic, "segment.ms", "1") // the next batch rolls
	r := traffic{clock: 1_700_000_000_000 + int64(4*keys)}
	send(b, c, topic, r.filler(100))
	send(b, c, topic, r.filler(100))
	before, began := cpu(b, p), time.Now()
	b.ResetTimer()
	setConfigs(b, c.Client, topic, "cleanup.policy", "compact")
	for name := (checkpoint.TopicPartition{Topic: topic}); ; time.Sleep(5 * time.Millisecond) {
		all, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(dir, checkpoint.CleanerOffsetFile))
		if err != nil {
			b.Fatal(err)
		}
		if all[name] >= int64(2*keys) {
			break
		}
	}
	took := time.Since(began)
	b.StopTimer()
	gb := float64(size) / 1e9
	b.ReportMetric(float64(size)/1e6/took.Seconds(), "MB/s")
	b.ReportMetric((cpu(b, p)-before).Seconds()/gb, "CPU-s/GB")
	b.ReportMetric(peak(b, p), "MB-RSS-peak")
}

// cpu is what a process has used so far, by the clock tick of 10 ms.
func cpu(b *testing.B, p *proc.Process) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+2:]))
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// peak is the most memory that a process has had, in MB.
func peak(b *testing.B, p *proc.Process) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		b.Fatal(err)
	}
	var kb float64
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				b.Fatal(err)
			}
		}
	}
	return kb / 1000
}
