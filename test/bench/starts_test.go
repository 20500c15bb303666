//go:build oracle

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/record"
	"tidemark/test/proc"
)

const (
	startTopic = "t"
	idleAfter  = 5 * time.Second // from the first acknowledged record until memory is read
	unflushed  = 64              // MiB that are written before SIGKILL
)

// startTime is about what the cases of starts take.
func (s *session) startTime(cases int) time.Duration {
	if cases == 0 {
		return 0
	}
	return 15*time.Second + time.Duration(*roundsFlag)*35*time.Second
}

// starts measures starts over a directory of each contender, in turn, the other one stopped: after a clean stop, and
// after SIGKILL with data that was not flushed.
func (s *session) starts(names []string) {
	s.step++
	planned := s.startTime(len(names))
	clean := result{Name: startClean, Group: "start", Target: true, Date: time.Now().UTC().Format(time.RFC3339)}
	killed := clean
	killed.Name, killed.Target = startKilled, false
	err := s.startRounds(&clean, &killed)
	s.done += planned
	if s.ctx.Err() == nil && err != nil {
		s.b.Errorf("start: %v", err)
		clean.Failure, killed.Failure = err.Error(), err.Error()
	}
	for _, r := range []result{clean, killed} {
		if slices.Contains(names, r.Name) && (len(r.Rounds) > 0 || r.Failure != "") {
			s.note(trial{}, r)
		}
	}
}

func (s *session) startRounds(clean, killed *result) error {
	parent, err := workDir(false)
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	for _, c := range s.both {
		s.say("starts: prepare %s", c.name)
		p, addr := c.onFreePort(s.b, filepath.Join(parent, c.name))
		if err := createTopic(s.ctx, addr, startTopic, 1, kept); err != nil {
			return err
		}
		if err := untilProduced(s.ctx, addr, startTopic); err != nil {
			return err
		}
		p.Stop(s.b)
	}
	for i := range *roundsFlag {
		var both [2][2]figures
		for k, c := range s.both {
			s.say("starts: round %d of %d, %s", i+1, *roundsFlag, c.name)
			if both[0][k], both[1][k], err = s.startTwice(c, filepath.Join(parent, c.name)); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		clean.Rounds = append(clean.Rounds, round{Kafka: both[0][0], Tidemark: both[0][1]})
		killed.Rounds = append(killed.Rounds, round{Kafka: both[1][0], Tidemark: both[1][1]})
	}
	return nil
}

// startTwice starts a contender that was stopped, kills it, starts it again and stops it.
func (s *session) startTwice(c contender, dir string) (clean, killed figures, err error) {
	p, addr, clean, err := s.startOnce(c, dir)
	if err != nil {
		return nil, nil, err
	}
	pause(s.ctx, idleAfter)
	resident, err := statusKiB(p.PID(), "VmRSS")
	if err != nil {
		return nil, nil, err
	}
	clean["idleMiB"] = float64(resident) / 1024
	clean["toolMillis"] = float64(callOffsets(s.b, c, addr).Microseconds()) / 1000
	d := data{topic: startTopic, batches: unflushed, records: 1000, valueBytes: 1024}
	if err := d.fill(s.ctx, addr); err != nil {
		return nil, nil, err
	}
	p.Kill(s.b)
	p, _, killed, err = s.startOnce(c, dir)
	if err == nil {
		p.Stop(s.b)
		err = s.ctx.Err()
	}
	return clean, killed, err
}

// startOnce starts a contender and measures until a record is acknowledged.
func (s *session) startOnce(c contender, dir string) (p *proc.Process, addr string, f figures, err error) {
	port := proc.FreePorts(s.b, 1)[0]
	set, err := batch(1, 20, time.Now().UnixMilli(), record.None)
	if err != nil {
		return nil, "", nil, err
	}
	began := time.Now()
	p, addr = c.start(s.b, dir, port), loopback(port)
	if err := insist(s.ctx, addr, func(w *wire) error { return w.appendOne(startTopic, set) }); err != nil {
		return nil, "", nil, err
	}
	took := time.Since(began)
	cpu, err := cpuTime(p.PID())
	return p, addr, figures{"startMillis": float64(took.Microseconds()) / 1000,
		"startCPUMillis": float64(cpu.Microseconds()) / 1000}, err
}

// callOffsets is how long kafka-get-offsets takes.
func callOffsets(b *testing.B, c contender, addr string) time.Duration {
	cmd := c.offsets(addr, startTopic)
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start)
	if err != nil || !strings.HasPrefix(string(out), startTopic+":0:") {
		b.Fatalf("get-offsets of %s: %v, %q", c.name, err, out)
	}
	return took
}
