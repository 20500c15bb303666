//go:build oracle

package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tidemark/test/oracle"
)

// label is a figure as the page shows it; "operation" at its end stands for the case's unit.
type label struct{ figure, text string }

var labels = []label{
	{"operationsPerSecond", "operations/s"},
	{"megabytesPerSecond", "MB/s"},
	{"cpuSecondsPerGB", "broker CPU, s/GB"},
	{"cpuMicrosPerOperation", "broker CPU, µs/operation"},
	{"coresUsed", "broker CPU, cores"},
	{"otherCoresUsed", "CPU of the other, idle broker, cores"},
	{"p50Millis", "p50, ms"},
	{"p99Millis", "p99, ms"},
	{"p999Millis", "p99.9, ms"},
	{"residentMiB", "resident memory, MiB"},
	{"startMillis", "until the first acknowledged produce, ms"},
	{"startCPUMillis", "CPU until then, ms"},
	{"idleMiB", "resident memory, idle, MiB"},
	{"toolMillis", "kafka-get-offsets in a process of its own, ms"},
}

// fewSamples are below what a quantile needs: ten values beyond it in a round.
var fewSamples = map[string]float64{"p99Millis": 1000, "p999Millis": 10_000}

func (d *document) markdown() string {
	var out strings.Builder
	d.Machine.head(&out, d)
	d.reached(&out)
	if len(d.Cases) > 0 {
		out.WriteString("## Cases\n\n")
	}
	for _, r := range d.Cases {
		r.write(&out)
	}
	if len(d.Growth) > 0 {
		out.WriteString("## Growth\n\n")
	}
	for _, g := range d.Growth {
		g.write(&out)
	}
	out.WriteString(foot)
	return out.String()
}

// print prints the page, or the table of targets when the page is in a file.
func (d *document) print() {
	if *outFlag == "" {
		fmt.Println("\n" + d.markdown())
		return
	}
	var out strings.Builder
	d.reached(&out)
	fmt.Printf("\n%sThe whole is in %s\n", out.String(), filepath.Join(*outFlag, "bench.md"))
}

// reached is the table of targets.
func (d *document) reached(out *strings.Builder) {
	if len(d.Targets) == 0 {
		return
	}
	out.WriteString("## What is to be reached\n\n| what | Kafka | Tidemark | ratio | wanted | met | bare |\n" +
		"|---|---:|---:|---:|---:|---|---:|\n")
	for _, t := range d.Targets {
		t.write(out)
	}
	out.WriteString("\nRatio is Tidemark ÷ Kafka, with that of the lowest and of the highest round; *bare* is the\n" +
		"bare server ÷ Kafka.\n\n")
}

func (t targetResult) write(out *strings.Builder) {
	met := "**no**"
	if t.Met {
		met = "yes"
	}
	bare := ""
	if t.Bare > 0 {
		bare = number(t.Bare)
	}
	fmt.Fprintf(out, "| %s | %s%s %s | %s%s %s | **%s** (%s–%s) | %s | %s | %s |\n", t.What, number(t.Kafka), t.few[0],
		t.unit, number(t.Tidemark), t.few[1], t.unit, number(t.Ratio), number(t.lowest), number(t.highest), t.wanted, met,
		bare)
}

func (r result) write(out *strings.Builder) {
	fmt.Fprintf(out, "### %s\n\n", r.Name)
	if r.Failure != "" {
		fmt.Fprintf(out, "%s\n\n", r.Failure)
	}
	if len(r.Rounds) == 0 {
		return
	}
	out.WriteString("| | Kafka | Tidemark | ratio | from–to |" + r.ifBare(" bare |") + "\n|---|---:|---:|---:|---:|" +
		r.ifBare("---:|") + "\n")
	for _, l := range labels {
		if _, ok := r.Rounds[0].Tidemark[l.figure]; !ok {
			continue
		}
		c := compare(r.Rounds, l.figure)
		text := strings.Replace(l.text, "operation", r.Unit, 1)
		if strings.HasPrefix(l.text, "operations/s") {
			text = plural(r.Unit) + "/s"
		}
		if l.figure == "otherCoresUsed" { // a ratio of these says nothing
			fmt.Fprintf(out, "| %s | %s | %s | | |%s\n", l.text, number(c.kafka), number(c.tidemark), r.ifBare(" |"))
			continue
		}
		few := r.few(l.figure)
		fmt.Fprintf(out, "| %s | %s%s | %s%s | **%s** | %s–%s |%s\n", text, number(c.kafka), few[0], number(c.tidemark),
			few[1], number(c.ratio), number(c.lowest), number(c.highest), r.ifBare(" "+number(c.bare)+" |"))
	}
	if r.KafkaWarmSeconds > 0 {
		fmt.Fprintf(out, "\nKafka had this load for %g s before, Tidemark for %g s; %s of %g s.", r.KafkaWarmSeconds,
			r.TidemarkWarmSeconds, count(len(r.Rounds), "round"), r.Seconds)
	} else {
		fmt.Fprintf(out, "\n%s.", count(len(r.Rounds), "round"))
	}
	if r.Core != nil {
		fmt.Fprintf(out, " The broker was bound to core %d, the client to the others.", *r.Core)
	}
	out.WriteString("\n\n")
}

// ifBare is a text when the bare server was measured.
func (r result) ifBare(text string) string {
	if r.Rounds[0].Bare == nil {
		return ""
	}
	return text
}

// few are marks of a quantile that is of too few samples in some round, for Kafka and Tidemark.
func (r result) few(figure string) (marks [2]string) {
	for _, each := range r.Rounds {
		for i, f := range []figures{each.Kafka, each.Tidemark} {
			if f["samples"] < fewSamples[figure] {
				marks[i] = "†"
			}
		}
	}
	return marks
}

func plural(unit string) string {
	if strings.HasSuffix(unit, "ch") {
		return unit + "es"
	}
	return unit + "s"
}

func (g growth) write(out *strings.Builder) {
	text := g.Figure
	if i := slices.IndexFunc(labels, func(l label) bool { return l.figure == g.Figure }); i >= 0 {
		text = strings.Replace(labels[i].text, "operation", g.Unit, 1)
	}
	fmt.Fprintf(out, "### %s\n\n| %s |", g.Name, text)
	for _, p := range g.Points {
		fmt.Fprintf(out, " %d |", p.Size)
	}
	out.WriteString("\n|---|" + strings.Repeat("---:|", len(g.Points)) + "\n")
	for i, name := range []string{"Kafka", "Tidemark"} {
		fmt.Fprintf(out, "| %s |", name)
		for _, p := range g.Points {
			if len(p.Rounds) == 0 {
				fmt.Fprintf(out, " %s |", p.Failure)
				continue
			}
			c := compare(p.Rounds, g.Figure)
			fmt.Fprintf(out, " %s |", number([]float64{c.kafka, c.tidemark}[i]))
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
}

// number is a value with about three digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "—"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (m machine) head(out *strings.Builder, d *document) {
	fmt.Fprintf(out, head, oracle.Version, d.Date, d.Command)
	out.WriteString("| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"processor", fmt.Sprintf("%s, %s", m.CPU, count(m.Cores, "core"))}, {"memory", fmt.Sprintf("%d MiB", m.MemoryMiB)},
		{"kernel", m.Kernel}, {"data on", m.FileSystem}, {"client and Tidemark built with", m.Go},
		{"Tidemark", m.Tidemark}, {"Java", m.Java}, {"Kafka's Java settings", "`" + m.JavaSettings + "`"},
	} {
		fmt.Fprintf(out, "| %s | %s |\n", row[0], row[1])
	}
	out.WriteString("\n")
}

const head = `# Kafka and Tidemark side by side

Written by ` + "`make bench-kafka`" + `. Kafka %s and Tidemark run on one machine with the same client and the same
settings: their defaults, but that old data is looked for every second. Tidemark logs warnings only and has no admin
port; Kafka does not wait for more members of a new group, and its internal topics have four partitions. Both are up at
a time, but in starts; they get the load in turn, and the one that is not under test is idle. Client and broker share
the cores, unless a case says otherwise.

Each case gives Kafka the load for a time before counting, as it says: longest for the cases of the first table and for
the first of a kind, shorter for those that follow with the same running brokers. Numbers are means of the rounds;
*ratio* is Tidemark ÷ Kafka, *from–to* the lowest and highest ratio of a round. CPU is what the broker's process used of
all cores, by the kernel's clock of that process; GB are 10⁹ bytes of values (produce) or of batches (consume);
latencies are the client's; resident memory is the largest of samples every 100 ms, in starts that of 5 s after the
first record.

*bare* is a program that does only what no broker can leave out: it receives a request, computes the checksum and
writes the batch, or has the kernel send a range of a file; one thread for each connection, and nothing else. Nearly
all of its CPU time is the kernel's: copies out of the socket, fresh pages for the file, copies into them, segments of
TCP. That is what stands in the way of lower ratios; doc/performance.md has profiles.

Last measurement %s (UTC), by

    %s

`

const foot = `† Fewer than ten samples of a round lie beyond this quantile.

## bench.json

bench.json has the same figures, of every round. Fields may be added; those that are there keep names and meanings.

| field | |
|---|---|
| format | 1 |
| date, command, machine | as above |
| targets | the first table: what, case, figure, limit, atLeast (or else at most), kafka, tidemark, ratio, bare, met |
| cases | name, group, target, unit, date, core, kafkaWarmSeconds, tidemarkWarmSeconds, seconds, failure, rounds |
| rounds | objects with kafka, tidemark, bare, each an object of figures; one that was not measured is absent |
| growth | curves: name, figure, unit, and points with size, failure, rounds |

Figures are operationsPerSecond, megabytesPerSecond, cpuSecondsPerGB, cpuMicrosPerOperation, coresUsed, otherCoresUsed
(by the broker that is idle meanwhile), p50Millis, p99Millis, p999Millis, samples (how many latencies), residentMiB; of
starts startMillis, startCPUMillis, idleMiB, toolMillis.
`
