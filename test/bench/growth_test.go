//go:build oracle

package bench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/record"
	"tidemark/test/proc"
)

// curve is how one figure grows: measured at four sizes.
type curve struct {
	name, figure string
	sizes        []int
	at           func(b *testing.B, who string, size int) (float64, error)
}

// BenchmarkGrowth shows what grows with what, for Kafka and Tidemark: look-ups with segments, appends with partitions,
// a start with sealed segments, memory with partitions. It appends to the bench.md of BenchmarkSideBySide.
func BenchmarkGrowth(b *testing.B) {
	starters := sideBySide(b)
	underLoad := func(l func(size int) load, figure string) func(*testing.B, string, int) (float64, error) {
		return func(b *testing.B, who string, size int) (float64, error) {
			f, err := measureLoad(b, l(size), who, starters[who])
			return f[figure], err
		}
	}
	const cpu = "broker CPU µs/operation"
	curves := []curve{
		{"look-up by time against segments", cpu, []int{1, 10, 100, 1000}, underLoad(func(n int) load {
			return lookUps("", 4, n, 1, 16_000)
		}, cpu)},
		{"look-up by time against records of a segment", cpu, []int{10, 100, 1000, 10_000}, underLoad(func(n int) load {
			return lookUps("", 4, 1, 1, max(1, (1<<20)/n-100))
		}, cpu)},
		{"append of one record against partitions", cpu, []int{1, 10, 100, 1000}, underLoad(func(n int) load {
			return produce("", int32(n), 1, 1024, record.None)
		}, cpu)},
		{"memory against partitions", "MiB resident", []int{1, 100, 1000, 5000}, underLoad(func(n int) load {
			return rarely("", int32(n))
		}, "MiB resident under load")},
		{"clean start against sealed segments", "ms until the first acknowledged produce", []int{1, 10, 100, 1000},
			func(b *testing.B, who string, size int) (float64, error) { return startOver(b, starters[who], size) }},
	}
	var page strings.Builder
	page.WriteString("## Growth\n\n")
	for _, c := range curves {
		c.write(b, &page)
	}
	b.Log("\n" + page.String())
	if *outFlag != "" {
		if err := appendTo(filepath.Join(*outFlag, "bench.md"), page.String()); err != nil {
			b.Fatal(err)
		}
	}
}

func (c curve) write(b *testing.B, page *strings.Builder) {
	fmt.Fprintf(page, "### %s, %s\n\n|", c.name, c.figure)
	for _, size := range c.sizes {
		fmt.Fprintf(page, " | %d", size)
	}
	page.WriteString(" |\n|---" + strings.Repeat("|---:", len(c.sizes)) + "|\n")
	for _, who := range contestants {
		page.WriteString("| " + who)
		for _, size := range c.sizes {
			value, err := c.at(b, who, size)
			if err != nil {
				b.Fatalf("%s, %s at %d: %v", c.name, who, size, err)
			}
			fmt.Fprintf(page, " | %.4g", value)
		}
		page.WriteString(" |\n")
	}
	page.WriteString("\n")
}

func appendTo(name, text string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// startOver is how long a start takes, in ms, over a directory with a number of sealed segments, after a clean stop.
func startOver(b *testing.B, start func(dir string, port int) *proc.Process, segments int) (float64, error) {
	parent, err := os.MkdirTemp("", "bench")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(parent) }()
	port := proc.FreePorts(b, 1)[0]
	r := &rig{dir: filepath.Join(parent, "data"), addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	p := start(r.dir, port)
	l := lookUps("", 1, segments, 1000, 1000)
	if err := l.prepare(r); err != nil {
		p.Kill(b)
		return 0, err
	}
	p.Stop(b)
	began := time.Now()
	p = start(r.dir, port)
	defer p.Kill(b)
	set, err := batch(1, 100, base, record.None)
	if err == nil {
		err = insist(r.addr, func(w *wire) error {
			return errors.Join(w.send(frame(produceRequest(topic, 0, set))), w.produced())
		})
	}
	return float64(time.Since(began).Milliseconds()), err
}
