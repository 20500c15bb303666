//go:build oracle

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what a process has used of all cores so far, by the kernel's clock of that process.
func cpuTime(pid int) (time.Duration, error) {
	const ofAllThreads = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofAllThreads), &t); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// statusKiB is a line of /proc/PID/status: VmRSS, or VmHWM for the most so far.
func statusKiB(pid int, key string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc/%d/status", key, pid)
}

// bind lets all threads of a process run on some cores only. Threads that they start later are bound likewise.
func bind(pid int, cores unix.CPUSet) error {
	bound := map[string]bool{}
	for again := true; again; {
		again = false
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, e := range threads {
			id, err := strconv.Atoi(e.Name())
			if err != nil || bound[e.Name()] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &cores); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("bind process %d: %w", pid, err)
			}
			bound[e.Name()], again = true, true
		}
	}
	return nil
}

// apart binds servers to one core, and this process, the client, to the others. The function it returns undoes it.
func apart(core int, servers ...*rig) (undo func() error, err error) {
	var all, one, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	one.Set(core)
	others = all
	if others.Clear(core); others.Count() == 0 {
		others = all
	}
	undo = func() error {
		err := bind(os.Getpid(), all)
		for _, r := range servers {
			err = errors.Join(err, bind(r.process.PID(), all))
		}
		return err
	}
	err = bind(os.Getpid(), others)
	for _, r := range servers {
		err = errors.Join(err, bind(r.process.PID(), one))
	}
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// dropFromCache takes a file's pages out of the page cache.
func dropFromCache(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// meter counts what a load does to a broker, from begin for a time; then it ends the load.
type meter struct {
	ops, bytes atomic.Int64
	mu         sync.Mutex
	latencies  []time.Duration

	pid    int // of the broker
	other  int // of the one that should be idle meanwhile
	length time.Duration
	end    context.CancelFunc
	once   sync.Once
	over   chan struct{}
	out    outcome
	err    error
}

// outcome is what a load did in a time.
type outcome struct {
	ops, bytes int64
	wall, cpu  time.Duration
	otherCPU   time.Duration
	residentKB int64 // the largest of some samples
}

// measure runs a load for a time and counts what it does.
func measure(ctx context.Context, r *rig, l load, length time.Duration) (figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &meter{pid: r.process.PID(), other: r.other.process.PID(), length: length, end: cancel,
		over: make(chan struct{})}
	err := l.run(ctx, r, m)
	cancel()
	begun := true
	m.once.Do(func() { begun = false })
	if begun {
		<-m.over
	}
	switch {
	case err != nil:
		return nil, err
	case !begun:
		return nil, errors.New("nothing was done")
	case m.err != nil:
		return nil, m.err
	}
	return m.figures(), nil
}

// begin starts the count; the load calls it when its connections stand.
func (m *meter) begin(ctx context.Context) {
	m.once.Do(func() { go m.count(ctx) })
}

func (m *meter) count(ctx context.Context) {
	defer close(m.over)
	defer m.end()
	start, ops, bytes := time.Now(), m.ops.Load(), m.bytes.Load()
	before, err := cpuTime(m.pid)
	otherBefore, otherErr := cpuTime(m.other)
	if m.err = errors.Join(err, otherErr); m.err != nil {
		return
	}
	sample := time.NewTicker(100 * time.Millisecond)
	defer sample.Stop()
	over := time.NewTimer(m.length)
	defer over.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-over.C:
			done = true
		case <-sample.C:
		}
		resident, err := statusKiB(m.pid, "VmRSS")
		if m.out.residentKB = max(m.out.residentKB, resident); err != nil {
			m.err = err
			return
		}
	}
	after, err := cpuTime(m.pid)
	otherAfter, otherErr := cpuTime(m.other)
	m.err = errors.Join(err, otherErr)
	m.out.wall, m.out.cpu, m.out.otherCPU = time.Since(start), after-before, otherAfter-otherBefore
	m.out.ops, m.out.bytes = m.ops.Load()-ops, m.bytes.Load()-bytes
}

func (m *meter) did(ops, bytes int) {
	m.ops.Add(int64(ops))
	m.bytes.Add(int64(bytes))
}

func (m *meter) took(latencies []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latencies = append(m.latencies, latencies...)
}

// figures are the numbers of one measurement. Their names, which bench.json has too, end with their unit.
type figures map[string]float64

func (m *meter) figures() figures {
	o := m.out
	f := figures{"residentMiB": float64(o.residentKB) / 1024, "coresUsed": o.cpu.Seconds() / o.wall.Seconds(),
		"otherCoresUsed": o.otherCPU.Seconds() / o.wall.Seconds()}
	if o.ops > 0 {
		f["operationsPerSecond"] = float64(o.ops) / o.wall.Seconds()
		f["cpuMicrosPerOperation"] = float64(o.cpu.Nanoseconds()) / 1000 / float64(o.ops)
	}
	if o.bytes > 0 {
		gb := float64(o.bytes) / 1e9
		f["megabytesPerSecond"] = gb * 1000 / o.wall.Seconds()
		f["cpuSecondsPerGB"] = o.cpu.Seconds() / gb
	}
	if n := len(m.latencies); n > 0 {
		slices.Sort(m.latencies)
		f["samples"] = float64(n)
		f["p50Millis"], f["p99Millis"], f["p999Millis"] = quantile(m.latencies, .5), quantile(m.latencies, .99),
			quantile(m.latencies, .999)
	}
	return f
}

// quantile of sorted latencies, in ms.
func quantile(sorted []time.Duration, q float64) float64 {
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Nanoseconds()) / 1e6
}
