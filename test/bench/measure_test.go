//go:build oracle

package bench

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of CPU times in /proc on Linux.
const clockTick = 10 * time.Millisecond

// cpuTime is what a process has used of all cores so far.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold blanks; utime and stime are the 14th and 15th field.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, text := range fields[11:13] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
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

// pin binds all threads of a process to one core.
func pin(pid, core int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	var set unix.CPUSet
	set.Set(core)
	for _, e := range threads {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil {
			return err
		}
	}
	return nil
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

// quantile of sorted latencies, in ms.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}

// outcome is what a load did in a time.
type outcome struct {
	ops, bytes int64
	latencies  []time.Duration
	wall, cpu  time.Duration
}

// figures are the numbers of one measurement, by name. Names end with their unit.
type figures map[string]float64

func (o outcome) figures() figures {
	f := figures{}
	if o.ops > 0 {
		f["operations/s"] = float64(o.ops) / o.wall.Seconds()
		f["broker CPU µs/operation"] = float64(o.cpu.Microseconds()) / float64(o.ops)
	} else {
		f["broker CPU ms/s"] = float64(o.cpu.Milliseconds()) / o.wall.Seconds()
	}
	if o.bytes > 0 {
		gb := float64(o.bytes) / 1e9
		f["MB/s"] = gb * 1000 / o.wall.Seconds()
		f["broker CPU s/GB"] = o.cpu.Seconds() / gb
	}
	if len(o.latencies) > 0 {
		slices.Sort(o.latencies)
		f["p50 ms"], f["p99 ms"], f["p99.9 ms"] = quantile(o.latencies, .5), quantile(o.latencies, .99),
			quantile(o.latencies, .999)
	}
	return f
}
