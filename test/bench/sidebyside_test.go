//go:build oracle

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

var (
	casesFlag = flag.String("cases", ".", "regular `expression` of the cases of BenchmarkSideBySide that run")
	warmFlag  = flag.Duration("warm", time.Minute, "how long Kafka has the load before counting")
	ownFlag   = flag.Duration("own-warm", 5*time.Second, "how long Tidemark has it")
	timeFlag  = flag.Duration("time", 10*time.Second, "how long is counted")
	rounds    = flag.Int("rounds", 2, "how often both are measured, in turn")
	pinFlag   = flag.Int("pin", -1, "`core` that the brokers are bound to; -1: none")
	outFlag   = flag.String("out", "", "`directory` of bench.md and bench.json; none: the output only")
)

// sideBySide are the two that are measured, with settings that keep files of scratch topics few.
func sideBySide(b *testing.B) map[string]func(dir string, port int) *proc.Process {
	k := oracle.Get(b, oracle.Version)
	tidemark := proc.Tidemark(b)
	return map[string]func(dir string, port int) *proc.Process{
		"Kafka": func(dir string, port int) *proc.Process {
			return k.Plain(b, dir, port, map[string]string{"log.retention.check.interval.ms": "1000",
				"log.initial.task.delay.ms": "1000"})
		},
		"Tidemark": func(dir string, port int) *proc.Process {
			return proc.Start(b, "tidemark", tidemark, "serve", "--data", dir, "--listen",
				net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), "--log-level", "warn",
				"--set", "tidemark.admin.listener=", "--set", "log.retention.check.interval.ms=1000",
				"--set", "log.initial.task.delay.ms=1000")
		},
	}
}

// contestants in the order of their turns.
var contestants = []string{"Kafka", "Tidemark"}

// cases are all loads, in the order of doc/bench.md.
func cases() []load {
	var out []load
	for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
		for _, partitions := range []int32{1, 64} {
			where := fmt.Sprintf("%s, %d partitions", codec, partitions)
			out = append(out,
				produce("produce 1 KiB in batches of 1 MiB, "+where, partitions, 1000, 1024, codec),
				produce("produce 100 B in batches of 1 MiB, "+where, partitions, 9000, 100, codec),
				produce("produce 1 KiB in batches of 16 KiB, "+where, partitions, 15, 1024, codec),
				produce("produce 1 KiB in batches of 1 record, "+where, partitions, 1, 1024, codec))
		}
	}
	out = append(out, consume("consume from the page cache", false, 1000),
		consume("consume from a cold cache", true, 1000),
		endToEnd("end to end, 2 000 records/s", 2000), endToEnd("end to end, 20 000 records/s", 20_000))
	for _, segments := range []int{1, 100, 1000} {
		for _, connections := range []int{1, 4, 64} {
			where := fmt.Sprintf("%d segments, %d connections", segments, connections)
			out = append(out, lookUps("look-up by time, batches of 1 MiB, "+where, connections, segments, 1000, 1000),
				lookUps("look-up by time, batches of 1 record, "+where, connections, segments, 1, 16_000))
		}
	}
	return append(out, randomFetches("fetch of one record at a random offset"),
		waiting("1 000 waiting consumers", 1000, false), waiting("1 000 slowly polling consumers", 1000, true),
		rarely("5 000 partitions, each written rarely", 5000))
}

// results are the figures of every round, by case and contestant.
type results map[string]map[string][]figures

// BenchmarkSideBySide measures Kafka and Tidemark in turn: throughput, CPU time of the broker, latencies, memory.
//
//	make bench-kafka
//	make bench-kafka BENCHFLAGS="-cases 'look-up' -warm 20s"
func BenchmarkSideBySide(b *testing.B) {
	wanted, err := regexp.Compile(*casesFlag)
	if err != nil {
		b.Fatal(err)
	}
	all := results{}
	order := []string{}
	starters := sideBySide(b)
	for _, l := range cases() {
		if !wanted.MatchString(l.name) {
			continue
		}
		order = append(order, l.name)
		all[l.name] = map[string][]figures{}
		for range *rounds {
			for _, who := range contestants {
				f, err := measureLoad(b, l, who, starters[who])
				if err != nil {
					b.Fatalf("%s, %s: %v", l.name, who, err)
				}
				all[l.name][who] = append(all[l.name][who], f)
			}
		}
		b.Log("\n" + all.table(l.name))
		all.write(b, order)
	}
}

// measureLoad runs one load against one contestant, over a new directory.
func measureLoad(b *testing.B, l load, who string, start func(dir string, port int) *proc.Process) (figures, error) {
	parent, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(parent) }()
	port := proc.FreePorts(b, 1)[0]
	r := &rig{dir: filepath.Join(parent, "data"), addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	r.process = start(r.dir, port)
	defer r.process.Kill(b)
	if err := l.prepare(r); err != nil {
		return nil, err
	}
	idle, err := statusKiB(r.process.PID(), "VmRSS")
	if err == nil && *pinFlag >= 0 {
		err = pin(r.process.PID(), *pinFlag)
	}
	if err != nil {
		return nil, err
	}
	warm := *warmFlag
	if who == "Tidemark" {
		warm = *ownFlag
	}
	if _, err := r.under(b.Context(), l, warm); err != nil {
		return nil, err
	}
	o, err := r.under(b.Context(), l, *timeFlag)
	if err != nil {
		return nil, err
	}
	resident, err := statusKiB(r.process.PID(), "VmRSS")
	f := o.figures()
	f["MiB resident before"], f["MiB resident under load"] = float64(idle)/1024, float64(resident)/1024
	return f, err
}

// under runs a load for a time.
func (r *rig) under(ctx context.Context, l load, d time.Duration) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	t := &tally{}
	before, err := cpuTime(r.process.PID())
	start := time.Now()
	if err == nil {
		err = l.run(ctx, r, t)
	}
	wall := time.Since(start)
	after, cpuErr := cpuTime(r.process.PID())
	return outcome{ops: t.ops.Load(), bytes: t.bytes.Load(), latencies: t.latencies, wall: wall, cpu: after - before},
		errors.Join(err, cpuErr)
}

// table is one case as a table of Markdown.
func (r results) table(name string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\n", name)
	out.WriteString("| | Kafka | Tidemark | Tidemark ÷ Kafka | from–to |\n|---|---:|---:|---:|---:|\n")
	kafka, tidemark := r[name]["Kafka"], r[name]["Tidemark"]
	for _, key := range slices.Sorted(maps.Keys(tidemark[0])) {
		a, b := mean(kafka, key), mean(tidemark, key)
		low, high := 0.0, 0.0
		for i := range tidemark {
			ratio := tidemark[i][key] / kafka[i][key]
			if i == 0 || ratio < low {
				low = ratio
			}
			high = max(high, ratio)
		}
		fmt.Fprintf(&out, "| %s | %.4g | %.4g | **%.3g** | %.3g–%.3g |\n", key, a, b, b/a, low, high)
	}
	return out.String()
}

func mean(rounds []figures, key string) float64 {
	sum := 0.0
	for _, f := range rounds {
		sum += f[key]
	}
	return sum / float64(len(rounds))
}

// write writes what is there so far.
func (r results) write(b *testing.B, order []string) {
	if *outFlag == "" {
		return
	}
	var page strings.Builder
	fmt.Fprintf(&page, benchHead, oracle.Version, time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), *warmFlag, *ownFlag, *timeFlag, *rounds)
	for _, name := range order {
		page.WriteString(r.table(name) + "\n")
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(*outFlag, "bench.json"), append(data, '\n'), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(*outFlag, "bench.md"), []byte(page.String()), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

const benchHead = `# Kafka and Tidemark side by side

Written by ` + "`make bench-kafka`" + `: Kafka %s and Tidemark in turn, with one client, on one machine, with the same
settings. Run on %s, %s/%s, %d cores that client and broker share. Kafka had each load for %s before
counting, Tidemark for %s; counted were %s, %d rounds. Numbers are means of the rounds;
*from–to* is the spread of the ratio. CPU is what the broker's process used; latencies are the client's.

`
