//go:build oracle

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"tidemark/record"
)

// curve is how one figure grows: measured at four sizes.
type curve struct {
	name   string
	figure string
	unit   string
	sizes  []int
	load   func(size int) load
}

// curves are those that loads give, with the same running brokers for all sizes.
func curves() []curve {
	const cpu = "cpuMicrosPerOperation"
	before := map[int]int{1: 0, 100: 1, 1000: 100, 5000: 1000}
	return []curve{
		{"look-up by time against segments", cpu, "look-up", []int{1, 10, 100, 1000}, func(n int) load {
			return lookUps("", segmented(n, 1, false), 4)
		}},
		{"look-up by time against entries of the time index of one segment", cpu, "look-up",
			[]int{100, 1000, 10_000, 100_000}, func(n int) load {
				return lookUps("", data{fmt.Sprint("entries-", n), 1, with(kept, "segment.bytes", "2000000000"), n, 1, 4080,
					false}, 4)
			}},
		{"append of one record of 1 KiB against partitions", cpu, "record", []int{1, 10, 100, 1000}, func(n int) load {
			d := scratch(fmt.Sprint("append-", n), int32(n))
			return produce("", d, min(4, n), 1, 1024, record.None)
		}},
		{"memory against partitions, each written once or more", "residentMiB", "", []int{1, 100, 1000, 5000},
			func(n int) load { // in one more topic, beside those of the sizes before
				return rarely("", data{topic: fmt.Sprint("memory-", n), partitions: int32(n - before[n]), configs: kept})
			}},
	}
}

const sealedCurve = "clean start against sealed segments"

// BenchmarkGrowth shows what grows with what, for Kafka and Tidemark: look-ups with segments and with entries, appends
// and memory with partitions, a start with sealed segments. Two rounds at most are counted for a point.
func BenchmarkGrowth(b *testing.B) {
	if *targetsFlag {
		return
	}
	s := newSession(b)
	defer s.end()
	all := growthGroups(s.wants)
	s.plan(all)
	sealed := s.wants(sealedCurve)
	if sealed {
		s.planned += sealedTime
		s.steps++
	}
	for _, g := range all {
		if s.ctx.Err() == nil {
			s.run(g)
		}
	}
	if sealed && s.ctx.Err() == nil {
		s.step++
		if err := s.startsOverSegments(); err != nil && s.ctx.Err() == nil {
			b.Errorf("%s: %v", sealedCurve, err)
		}
	}
}

// growthGroups are the curves that are wanted, each a group.
func growthGroups(wants func(string) bool) (out []group) {
	for _, c := range curves() {
		if !wants(c.name) {
			continue
		}
		g := group{name: c.name}
		for i, size := range c.sizes {
			l := c.load(size)
			l.name = fmt.Sprintf("%s: %d", c.name, size)
			g.trials = append(g.trials, trial{load: l, full: i == 0, curve: &c, size: size})
		}
		out = append(out, g)
	}
	return out
}

// sealedTime is about what startsOverSegments takes.
const sealedTime = 150 * time.Second

// startsOverSegments measures starts after clean stops, over a partition with ever more sealed segments.
func (s *session) startsOverSegments() error {
	parent, err := workDir(false)
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	c := &curve{name: sealedCurve, figure: "startMillis", sizes: []int{1, 100, 1000, 10_000}}
	for i, size := range c.sizes {
		var both [2]figures
		for k, who := range s.both {
			s.say("%s: %d, %s", c.name, size, who.name)
			dir := filepath.Join(parent, who.name)
			if i == 0 {
				if err := s.firstSegment(who, dir); err != nil {
					return err
				}
			}
			if both[k], err = s.startOver(who, dir, size); err != nil {
				return fmt.Errorf("%s: %w", who.name, err)
			}
		}
		s.note(trial{curve: c, size: size}, result{Rounds: []round{{Kafka: both[0], Tidemark: both[1]}}})
	}
	return nil
}

// firstSegment makes a topic with one record, whose next record begins a new segment.
func (s *session) firstSegment(c contender, dir string) error {
	p, addr := c.onFreePort(s.b, dir)
	err := createTopic(s.ctx, addr, startTopic, 1, tinySegments)
	if err == nil {
		err = untilProduced(s.ctx, addr, startTopic)
	}
	p.Stop(s.b)
	return err
}

// startOver starts over a directory that has got so many segments, twice; the second start counts, for the first puts
// in order what it finds new.
func (s *session) startOver(c contender, dir string, segments int) (f figures, err error) {
	if err := writeSegments(dir, segments); err != nil {
		return nil, err
	}
	for range 2 {
		p, _, measured, err := s.startOnce(c, dir)
		if err != nil {
			return nil, err
		}
		p.Stop(s.b)
		f = measured
	}
	return f, s.ctx.Err()
}

var tinySegments = with(kept, "internal.segment.bytes", strconv.Itoa(100), "segment.index.bytes", "1000")
