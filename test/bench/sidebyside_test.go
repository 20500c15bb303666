//go:build oracle

package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	casesFlag   = flag.String("cases", "", "regular `expression` of the cases and curves that run; none: all")
	targetsFlag = flag.Bool("targets", false, "only the cases of the table of targets run")
	warmFlag    = flag.Duration("warm", time.Minute, "how long Kafka has a load before counting")
	rewarmFlag  = flag.Duration("rewarm", 10*time.Second, "how long, when it had another load of the same kind before")
	ownFlag     = flag.Duration("own", 3*time.Second, "how long Tidemark has it")
	timeFlag    = flag.Duration("time", 5*time.Second, "how long is counted")
	roundsFlag  = flag.Int("rounds", 3, "how often both are measured, in turn")
	pinFlag     = flag.Int("pin", -1, "`core` of the brokers in every case; -1: any, but core 0 for cases of one core")
	dirFlag     = flag.String("dir", "", "`directory` for the brokers' data; none: the one for temporary files")
	outFlag     = flag.String("out", "", "`directory` of bench.md and bench.json; none: the output only")
	addFlag     = flag.Bool("add", false, "what bench.json has of other cases stays")
)

// session is one run.
type session struct {
	b       *testing.B
	ctx     context.Context // ends with an interrupt
	both    []contender
	doc     *document
	steps   int           // cases and curve points that run
	step    int           // the one that runs now
	planned time.Duration // what all take
	done    time.Duration // of planned, what is over
	began   time.Time
}

// BenchmarkSideBySide measures Kafka and Tidemark in turn, both running: throughput, CPU time of the broker, latencies,
// memory, and starts.
//
//	make bench-kafka
//	make bench-kafka BENCHFLAGS=-targets
//	make bench-kafka BENCHFLAGS="-cases look-up -warm 20s"
func BenchmarkSideBySide(b *testing.B) {
	s := newSession(b)
	defer s.end()
	all := selected(groups(), s.wants)
	starts := slices.DeleteFunc([]string{startClean, startKilled}, func(name string) bool { return !s.wants(name) })
	s.plan(all)
	s.planned += s.startTime(len(starts))
	s.steps += min(1, len(starts))
	for _, g := range all {
		if s.ctx.Err() == nil {
			s.run(g)
		}
	}
	if len(starts) > 0 && s.ctx.Err() == nil {
		s.starts(starts)
	}
}

// interrupt ends the first time that the process is told to; the second time kills it.
var interrupt = sync.OnceValue(func() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
})

// newSession begins a run, which an interrupt ends in good order: what was measured before is written.
func newSession(b *testing.B) *session {
	if interrupt().Err() != nil {
		b.Fatal("interrupted")
	}
	s := &session{b: b, ctx: interrupt(), both: contenders(b, quickRetention), began: time.Now()}
	var err error
	if s.doc, err = openDocument(); err != nil {
		b.Fatal(err)
	}
	return s
}

// end says what was found.
func (s *session) end() {
	if s.ctx.Err() != nil {
		s.b.Error("interrupted; what was measured before is written")
	}
	s.doc.print()
}

// wants says whether a case or curve was selected.
func (s *session) wants(name string) bool {
	expression, err := regexp.Compile(*casesFlag)
	if err != nil {
		s.b.Fatal(err)
	}
	return expression.MatchString(name) && (!*targetsFlag || isTarget(name))
}

// selected are the groups with the trials that are wanted; the first of each has the full time to warm up.
func selected(all []group, wants func(string) bool) (out []group) {
	for _, g := range all {
		g.trials = slices.DeleteFunc(g.trials, func(t trial) bool { return !wants(t.name) })
		if len(g.trials) > 0 {
			g.trials[0].full = true
			out = append(out, g)
		}
	}
	return out
}

// plan adds up what groups take.
func (s *session) plan(all []group) {
	for _, g := range all {
		s.planned += startsOfPair
		made := map[string]bool{}
		for i := range g.trials {
			t := &g.trials[i]
			if !made[t.data.topic] {
				t.fill = 2 * t.data.takes()
			}
			made[t.data.topic] = true
			s.planned += t.takes()
			s.steps++
		}
	}
}

// startsOfPair is about what the starts of both brokers take.
const startsOfPair = 10 * time.Second

func (t trial) warm() time.Duration {
	if t.full {
		return *warmFlag
	}
	return min(*warmFlag, *rewarmFlag)
}

// rounds is how often both are measured; for a point of a curve two are enough.
func (t trial) rounds() int {
	if t.curve != nil {
		return min(2, *roundsFlag)
	}
	return *roundsFlag
}

func (t trial) takes() time.Duration {
	turns := time.Duration(2 * t.rounds())
	if t.bare {
		turns += turns / 2
	}
	return t.fill + t.warm() + *ownFlag + turns*(*timeFlag)
}

// takes is about how long one broker's data takes to be made.
func (d data) takes() time.Duration {
	megabytes := float64(d.batches) * float64(d.records*d.valueBytes) / 1e6
	seconds := float64(d.batches)/8000 + megabytes/250 + float64(d.partitions)/100
	return time.Duration(seconds * float64(time.Second))
}

// say prints a line of progress.
func (s *session) say(format string, args ...any) {
	now := time.Now()
	scale := 1.0
	if s.done > 0 {
		scale = max(1, now.Sub(s.began).Seconds()/s.done.Seconds())
	}
	left := time.Duration(float64(s.planned-s.done) * scale).Round(time.Minute)
	fmt.Fprintf(os.Stderr, "%s  %d of %d, about %d min left: %s\n", now.Format(time.TimeOnly), s.step, s.steps,
		int(left.Minutes()), fmt.Sprintf(format, args...))
}

// pair are both brokers, running, each over a directory of its own.
type pair struct {
	parent string
	rigs   []*rig
	bare   *rig // nil before it is needed
}

// startPair starts both brokers; the end of the session's benchmark ends them at the latest.
func (s *session) startPair(disk bool) (*pair, error) {
	parent, err := workDir(disk)
	if err != nil {
		return nil, err
	}
	p := &pair{parent: parent}
	for _, c := range s.both {
		r := &rig{name: c.name, dir: filepath.Join(parent, c.name), has: map[string]bool{}}
		r.process, r.addr = c.onFreePort(s.b, r.dir)
		p.rigs = append(p.rigs, r)
	}
	p.rigs[0].other, p.rigs[1].other = p.rigs[1], p.rigs[0]
	return p, nil
}

func (p *pair) close(b *testing.B) {
	for _, r := range p.running() {
		r.process.Kill(b)
	}
	if err := os.RemoveAll(p.parent); err != nil {
		b.Error(err)
	}
}

// running are both brokers, and the bare server if there is one.
func (p *pair) running() []*rig {
	if p.bare == nil {
		return p.rigs
	}
	return append(slices.Clip(p.rigs), p.bare)
}

// addBare starts the bare server and gives it the data of a case.
func (p *pair) addBare(s *session, d data) error {
	if p.bare == nil {
		p.bare = &rig{name: "the bare server", dir: filepath.Join(p.parent, "bare"), other: p.rigs[0],
			has: map[string]bool{}}
		p.bare.process, p.bare.addr = startBare(s.b, p.bare.dir)
	}
	if p.bare.has[d.topic] {
		return nil
	}
	p.bare.has[d.topic] = true
	return d.fill(s.ctx, p.bare.addr)
}

var errNoDisk = errors.New("not measured: the file system for the data has no disk below it")

// workDir is a new directory for the brokers' data.
func workDir(disk bool) (string, error) {
	dir := *dirFlag
	if disk && inMemory(dir) {
		dir = ""
	}
	if disk && inMemory(dir) {
		return "", errNoDisk
	}
	return os.MkdirTemp(dir, "bench")
}

func inMemory(dir string) bool {
	var fs unix.Statfs_t
	if dir == "" {
		dir = os.TempDir()
	}
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

// run measures the cases of a group; a failure ends the group and not the session.
func (s *session) run(g group) {
	s.step++
	s.say("%s: both brokers start", g.name)
	s.step--
	p, err := s.startPair(g.disk)
	if err != nil {
		s.skip(g, g.trials, err)
		return
	}
	defer p.close(s.b)
	s.done += startsOfPair
	for i, t := range g.trials {
		s.step++
		result, err := s.trial(p, t)
		s.done += t.takes()
		if err != nil {
			s.skip(g, g.trials[i:], err)
			return
		}
		result.Group = g.name
		s.note(t, result)
	}
}

// skip notes why cases have no figures.
func (s *session) skip(g group, trials []trial, err error) {
	if s.ctx.Err() != nil {
		return
	}
	for _, t := range trials[1:] {
		s.step++
		s.done += t.takes()
	}
	if !errors.Is(err, errNoDisk) {
		s.b.Errorf("%s: %v", trials[0].name, err)
	}
	s.say("%s: %v", trials[0].name, err)
	for _, t := range trials {
		s.note(t, result{Name: t.name, Group: g.name, Failure: err.Error()})
	}
}

// note keeps what a trial was found to be.
func (s *session) note(t trial, r result) {
	var err error
	if t.curve != nil {
		err = s.doc.addPoint(t.curve, point{Size: t.size, Rounds: r.Rounds, Failure: r.Failure})
	} else {
		err = s.doc.addCase(r)
	}
	if err != nil {
		s.b.Fatal(err)
	}
}

// trial measures one case: each broker gets its data and its time to warm up, and then they are measured in turn, the
// other one idle meanwhile.
func (s *session) trial(p *pair, t trial) (out result, err error) {
	out = result{Name: t.name, Unit: t.unit, Target: isTarget(t.name), Date: time.Now().UTC().Format(time.RFC3339),
		KafkaWarmSeconds: t.warm().Seconds(), TidemarkWarmSeconds: ownFlag.Seconds(), Seconds: timeFlag.Seconds()}
	for _, r := range p.rigs {
		s.say("%s: prepare %s", t.name, r.name)
		if err := r.prepare(s.ctx, t.data); err != nil {
			return out, fmt.Errorf("prepare %s: %w", r.name, err)
		}
	}
	if t.bare {
		s.say("%s: prepare the bare server", t.name)
		if err := p.addBare(s, t.data); err != nil {
			return out, fmt.Errorf("prepare the bare server: %w", err)
		}
	}
	core := *pinFlag
	if t.pinned {
		core = max(0, core)
	}
	if core >= 0 {
		undo, err := apart(core, p.running()...)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, undo()) }()
		out.Core = &core
	}
	for i, d := range []time.Duration{t.warm(), *ownFlag} {
		s.say("%s: warm %s up for %v", t.name, p.rigs[i].name, d)
		if _, err := measure(s.ctx, p.rigs[i], t.load, d); err != nil {
			return out, fmt.Errorf("warm %s up: %w", p.rigs[i].name, err)
		}
	}
	if out.Rounds, err = s.rounds(p, t); err != nil || !t.data.temporary {
		return out, err
	}
	for _, r := range p.rigs {
		err = errors.Join(err, deleteTopic(s.ctx, r.addr, t.data.topic))
	}
	return out, err
}

// rounds measures both in turn, and the bare server after them where that is asked for.
func (s *session) rounds(p *pair, t trial) (out []round, err error) {
	for i := range t.rounds() {
		var each [3]figures
		for k, r := range p.running() {
			if k == len(p.rigs) && !t.bare {
				continue
			}
			s.say("%s: round %d of %d, %s", t.name, i+1, t.rounds(), r.name)
			if each[k], err = measure(s.ctx, r, t.load, *timeFlag); err == nil {
				err = s.ctx.Err() // a round that was cut short does not count
			}
			if err != nil {
				return out, fmt.Errorf("%s, round %d: %w", r.name, i+1, err)
			}
		}
		out = append(out, round{each[0], each[1], each[2]})
	}
	return out, nil
}
