//go:build oracle

package bench

import (
	"fmt"
	"strconv"
	"time"

	"tidemark/record"
)

// group are cases that share one pair of running brokers.
type group struct {
	name   string
	disk   bool // needs a file system with a page cache above a disk
	trials []trial
}

// trial is a load and how it is measured.
type trial struct {
	load
	full   bool          // Kafka has this load for -warm before; otherwise for -rewarm, after loads of the same kind
	bare   bool          // the bare server is measured beside the brokers
	pinned bool          // the brokers are bound to one core, the client to the others
	fill   time.Duration // about what its data takes, for both
	curve  *curve
	size   int // with curve, which point of it this is
}

// Names of the cases that the targets are about.
const (
	produceBig    = "produce 1 KiB in batches of 1 MiB, none, 1 partition"
	produceSmall  = "produce 100 B in batches of 1 MiB, none, 1 partition"
	producePinned = "produce 1 KiB in batches of 1 MiB, none, 4 partitions, broker on one core"
	consumeWarm   = "consume from the page cache"
	consumePinned = "consume from the page cache, 4 connections, broker on one core"
	lookUp4       = "look-up by time, batches of 1 MiB, 100 segments, 4 connections"
	endToEnd2000  = "end to end, 2 000 records/s"
	startClean    = "start after a clean stop"
	startKilled   = "start after SIGKILL, 64 MiB not flushed"
)

// storedTopic is read from its start again and again.
const storedTopic = "consume"

// groups are all cases, in the order of doc/bench.md.
func groups() []group {
	all := []group{produceGroup(record.None), produceGroup(record.LZ4), produceGroup(record.Zstd)}
	stored := data{storedTopic, 1, kept, 1000, 1000, 1024, false}
	singles := data{"singles", 1, kept, 50_000, 1, 1024, false}
	e2e := func(name string) data { return scratch(name, 1) }
	quiet := data{topic: "quiet", partitions: 1, configs: kept}
	return append(all,
		group{name: "consume", trials: []trial{
			{load: consume(consumeWarm, stored, 1, false), full: true, bare: true},
			{load: consume(consumePinned, stored, 4, false), full: true, bare: true, pinned: true},
			{load: randomFetches("fetch of one record at a random offset", singles), full: true},
		}},
		group{name: "consume from disk", disk: true, trials: []trial{
			{load: consume("consume from a cold cache", stored, 1, true), full: true},
		}},
		group{name: "end to end", trials: []trial{
			{load: endToEnd(endToEnd2000, e2e("slow"), 2000), full: true},
			{load: endToEnd("end to end, 20 000 records/s", e2e("fast"), 20_000)},
		}},
		lookUpGroup(),
		group{name: "consumers that wait", trials: []trial{
			{load: waiting("1 000 waiting consumers", quiet, 1000, false), full: true},
			{load: waiting("1 000 slowly polling consumers", quiet, 1000, true)},
		}},
		group{name: "many partitions", trials: []trial{
			{load: rarely("5 000 partitions, each written rarely", data{topic: "rare", partitions: 5000, configs: kept}),
				full: true},
		}})
}

func produceGroup(codec record.Codec) group {
	g := group{name: "produce " + codec.String()}
	for _, partitions := range []int32{1, 64} {
		for _, c := range []struct {
			name          string
			n, valueBytes int
		}{
			{"produce 1 KiB in batches of 1 MiB", 1000, 1024}, {"produce 100 B in batches of 1 MiB", 9000, 100},
			{"produce 1 KiB in batches of 16 KiB", 15, 1024}, {"produce 1 KiB in batches of 1 record", 1, 1024},
		} {
			name := fmt.Sprintf("%s, %s, %s", c.name, codec, count(int(partitions), "partition"))
			d := scratch("p"+strconv.Itoa(len(g.trials)), partitions)
			g.trials = append(g.trials, trial{
				load: produce(name, d, int(min(4, partitions)), c.n, c.valueBytes, codec),
				full: len(g.trials) == 0 || name == produceBig || name == produceSmall,
				bare: name == produceBig || name == produceSmall,
			})
		}
	}
	if codec == record.None {
		g.trials = append(g.trials, trial{full: true, bare: true, pinned: true,
			load: produce(producePinned, scratch("pinned", 4), 4, 1000, 1024, codec)})
	}
	return g
}

// Sizes of the logs that look-ups are over.
var lookUpLogs = []struct{ segments, perSegmentMiB int }{{100, 4}, {1, 64}, {1000, 1}}

func lookUpGroup() group {
	g := group{name: "look-ups by time"}
	for _, big := range []bool{true, false} {
		kind := "batches of 1 record"
		if big {
			kind = "batches of 1 MiB"
		}
		for i, log := range lookUpLogs {
			for j, connections := range []int{4, 1, 64} {
				g.trials = append(g.trials, trial{full: i == 0 && j == 0, load: lookUps(fmt.Sprintf("look-up by time, %s, %s, %s",
					kind, count(log.segments, "segment"), count(connections, "connection")),
					segmented(log.segments, log.perSegmentMiB, big), connections)})
			}
		}
	}
	return g
}

// segmented is a log of so many segments of so many MiB: of batches of 1 000 records, or of one record of 16 KB.
func segmented(segments, perSegmentMiB int, big bool) data {
	d := data{topic: fmt.Sprintf("times-%d-%v", segments, big), partitions: 1,
		configs: with(kept, "segment.bytes", strconv.Itoa(perSegmentMiB<<20))}
	if d.records, d.valueBytes, d.batches = 1000, 1000, perSegmentMiB; !big {
		d.records, d.valueBytes, d.batches = 1, 16_000, perSegmentMiB*65
	}
	d.batches *= segments
	return d
}

// count is "1 segment" or "100 segments".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// target is a line of what Tidemark is to reach.
type target struct {
	What    string  `json:"what"`
	Case    string  `json:"case"`
	Figure  string  `json:"figure"`
	Limit   float64 `json:"limit"` // of Tidemark ÷ Kafka
	AtLeast bool    `json:"atLeast"`
	wanted  string
	unit    string
}

var targets = []target{
	{"produce 1 KiB, acks=all, batches of 1 MiB: broker CPU", produceBig, "cpuSecondsPerGB", 1. / 3, false, "≤ ⅓",
		"s/GB"},
	{"produce 100 B, batches of 1 MiB: broker CPU a record", produceSmall, "cpuMicrosPerOperation", 1. / 3, false,
		"≤ ⅓", "µs"},
	{"the same, then", produceSmall, "cpuMicrosPerOperation", 1. / 4, false, "≤ ¼", "µs"},
	{"consume from the page cache: broker CPU", consumeWarm, "cpuSecondsPerGB", 2. / 3, false, "≤ ⅔", "s/GB"},
	{"throughput of produce, broker on one core", producePinned, "megabytesPerSecond", 2, true, "≥ 2", "MB/s"},
	{"throughput of consume, broker on one core", consumePinned, "megabytesPerSecond", 2, true, "≥ 2", "MB/s"},
	{"look-up by time, batches of 1 MiB of 1 KiB records: broker CPU", lookUp4, "cpuMicrosPerOperation", 1. / 4, false,
		"≤ ¼", "µs"},
	{"the same: p99 at 4 connections", lookUp4, "p99Millis", 1. / 4, false, "≤ ¼", "ms"},
	{"end-to-end p99 at 2 000 records/s", endToEnd2000, "p99Millis", 1. / 2, false, "≤ ½", "ms"},
	{"start until the first acknowledged produce", startClean, "startMillis", 1. / 40, false, "≤ 1⁄40", "ms"},
	{"the same: CPU", startClean, "startCPUMillis", 1. / 100, false, "≤ 1⁄100", "ms"},
	{"resident memory, idle", startClean, "idleMiB", 1. / 15, false, "≤ 1⁄15", "MiB"},
	{"resident memory under produce load", produceBig, "residentMiB", 1. / 8, false, "≤ 1⁄8", "MiB"},
}

// isTarget says that a case is one that a target is about.
func isTarget(name string) bool {
	for _, t := range targets {
		if t.Case == name {
			return true
		}
	}
	return false
}
