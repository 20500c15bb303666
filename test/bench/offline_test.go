//go:build oracle

package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tidemark"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// The offline tools are measured over logs of TIDEMARK_BENCH_MIB (64 without it):
//
//	TIDEMARK_BENCH_MIB=1024 go test -tags oracle -run '^$' -bench 'DumpLog|Verify|Find' -benchtime 1x ./test/bench
const sizeEnv = "TIDEMARK_BENCH_MIB"

func benchBytes(b *testing.B) int64 { return int64(proc.Number(b, sizeEnv, 64)) << 20 }

// offlineLog writes a log of records of a size, in batches of about 16 KiB of them, and returns its folder and what the
// records weigh without compression. The records are a millisecond apart, from firstTime on.
func offlineLog(b *testing.B, size int64, recordBytes int, configs map[string]string) (dir string, written int64) {
	b.Helper()
	configs["retention.ms"] = "-1"
	root := b.TempDir()
	store, err := tidemark.Open(root, tidemark.Options{Config: configs})
	if err != nil {
		b.Fatal(err)
	}
	log, err := store.Create("t", 0)
	if err != nil {
		b.Fatal(err)
	}
	rng, at := rand.New(rand.NewPCG(1, 1)), firstTime
	for written < size {
		var batch []tidemark.Record
		for range max(1, 16<<10/recordBytes) {
			batch = append(batch, tidemark.Record{Time: at, Value: words(rng, recordBytes)})
			at, written = at.Add(time.Millisecond), written+int64(recordBytes)
		}
		if _, err := log.Append(batch...); err != nil {
			b.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(root, "t-0"), written
}

var firstTime = time.UnixMilli(1_700_000_000_000)

// words is text that compresses as text does.
func words(rng *rand.Rand, n int) []byte {
	text := make([]byte, 0, n+16)
	for len(text) < n {
		text = strconv.AppendUint(append(text, `{"id":`...), uint64(rng.Uint32()), 10)
		for range 4 {
			text = append(append(text, ' '), vocabulary[rng.IntN(len(vocabulary))]...)
		}
	}
	return text[:n]
}

var vocabulary = []string{
	"order", "payment", "customer", "shipped", "pending", "amount", "currency", "EUR", "warehouse", "status", "created",
	"updated", "cancelled", "returned", "north", "south", "invoice", "address", "street", "delivery",
}

// usage is what a process took. Linux counts into peakBytes what the test had when it started the process.
type usage struct {
	wall, cpu time.Duration
	peakBytes int64
}

// runTool runs a command with its output in a file.
func runTool(b *testing.B, cmd *exec.Cmd) usage {
	b.Helper()
	out, err := os.Create(filepath.Join(b.TempDir(), "out"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	start := time.Now()
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		b.Fatalf("%s: %v\n%s", cmd, err, proc.Tail(string(text), 2000))
	}
	u := usage{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	u.peakBytes = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	return u
}

// BenchmarkDumpLog prints every record of a segment of 100-byte records to a file with kafka-dump-log, Kafka's and
// Tidemark's in turn.
func BenchmarkDumpLog(b *testing.B) {
	k, binary := oracle.Get(b, oracle.Version), proc.Tidemark(b)
	dir, _ := offlineLog(b, benchBytes(b), 100, map[string]string{"segment.bytes": "2147483647"})
	args := []string{"--print-data-log", "--files", filepath.Join(dir, "00000000000000000000.log")}
	var ours, kafkas usage
	for b.Loop() {
		t := runTool(b, exec.Command(binary, append([]string{"kafka-dump-log"}, args...)...))
		j := runTool(b, k.PlainTool("org.apache.kafka.tools.DumpLogSegments", args...))
		ours.wall, ours.cpu = ours.wall+t.wall, ours.cpu+t.cpu
		kafkas.wall, kafkas.cpu = kafkas.wall+j.wall, kafkas.cpu+j.cpu
		ours.peakBytes, kafkas.peakBytes = max(ours.peakBytes, t.peakBytes), max(kafkas.peakBytes, j.peakBytes)
	}
	report(b, "tidemark", ours)
	report(b, "kafka", kafkas)
	b.ReportMetric(kafkas.wall.Seconds()/ours.wall.Seconds(), "times-faster")
	b.ReportMetric(kafkas.cpu.Seconds()/ours.cpu.Seconds(), "times-less-CPU")
}

func report(b *testing.B, who string, u usage) {
	b.ReportMetric(u.wall.Seconds()/float64(b.N), who+"-s")
	b.ReportMetric(u.cpu.Seconds()/float64(b.N), who+"-CPU-s")
	b.ReportMetric(float64(u.peakBytes)/(1<<20), who+"-MiB-peak")
}

// BenchmarkVerify checks logs of 1 KiB records in the page cache: records in GB for each second of one core.
func BenchmarkVerify(b *testing.B) {
	binary := proc.Tidemark(b)
	for _, codec := range []string{"uncompressed", "lz4", "zstd"} {
		for _, segmentBytes := range []string{"1048576", "1073741824"} {
			b.Run(fmt.Sprintf("%s/segment.bytes=%s", codec, segmentBytes), func(b *testing.B) {
				dir, written := offlineLog(b, benchBytes(b), 1024, map[string]string{
					"segment.bytes": segmentBytes, "compression.type": codec,
				})
				runTool(b, exec.Command(binary, "log", "verify", dir)) // into the page cache
				var all usage
				for b.Loop() {
					u := runTool(b, exec.Command(binary, "log", "verify", "--jobs", "1", dir))
					all.wall, all.cpu, all.peakBytes = all.wall+u.wall, all.cpu+u.cpu, max(all.peakBytes, u.peakBytes)
				}
				report(b, "tidemark", all)
				b.ReportMetric(float64(written)*float64(b.N)/1e9/all.cpu.Seconds(), "GB/s-core")
			})
		}
	}
}

// BenchmarkFind looks a time up in a directory of segments of 1 MiB, 1 000 at most, in a new process with a warm page
// cache: "sealed" as Tidemark leaves it, "unsealed" as Kafka does.
func BenchmarkFind(b *testing.B) {
	binary := proc.Tidemark(b)
	size := min(benchBytes(b), 1000<<20)
	dir, written := offlineLog(b, size, 16<<10, map[string]string{"segment.bytes": "1048576"})
	ask := firstTime.Add(time.Duration(written/(16<<10)) * time.Millisecond * 2 / 3)
	for _, state := range []string{"sealed", "unsealed"} {
		b.Run(state, func(b *testing.B) {
			if state == "unsealed" {
				if err := os.Remove(filepath.Join(dir, "tidemark.seals")); err != nil {
					b.Fatal(err)
				}
			}
			find := func() usage {
				return runTool(b, exec.Command(binary, "log", "find", "--time", strconv.FormatInt(ask.UnixMilli(), 10), dir))
			}
			find()
			least := usage{wall: time.Hour}
			for b.Loop() {
				for range 20 { // the least of some, as others use the machine too
					if u := find(); u.wall < least.wall {
						least = u
					}
				}
			}
			b.ReportMetric(least.wall.Seconds()*1000, "ms")
			b.ReportMetric(least.cpu.Seconds()*1000, "CPU-ms")
			b.ReportMetric(float64(least.peakBytes)/(1<<20), "MiB-peak")
			b.ReportMetric(float64(size>>20), "segments")
		})
	}
}
