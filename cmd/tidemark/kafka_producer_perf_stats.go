package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// perfStats are the latencies and sizes of the records that were acknowledged, of all and of those since the last line
// of progress. Times are ms.
type perfStats struct {
	out       io.Writer
	now       func() time.Time
	reporting int64
	steady    bool // without the first records
	quiet     bool // no progress

	start     int64
	latencies []int64 // of one in sampling records
	sampling  int64
	all       perfSums
	window    perfSums
	windowAt  int64 // when it began
}

type perfSums struct{ count, bytes, latency, maxLatency int64 }

func (s *perfSums) add(latency, bytes int64) {
	s.count++
	s.bytes += bytes
	s.latency += latency
	s.maxLatency = max(s.maxLatency, latency)
}

// maxLatencies bounds how many latencies are kept.
const maxLatencies = 500_000

func newPerfStats(out io.Writer, now func() time.Time, records, reportingMs int64, steady bool) *perfStats {
	at := now().UnixMilli()
	return &perfStats{out: out, now: now, reporting: reportingMs, steady: steady, start: at, windowAt: at,
		sampling: records / min(records, maxLatencies)}
}

// record takes note of a record that was acknowledged at a time.
func (s *perfStats) record(latency, bytes, at int64) {
	if s.all.count%s.sampling == 0 {
		s.latencies = append(s.latencies, latency)
	}
	s.all.add(latency, bytes)
	s.window.add(latency, bytes)
	if at-s.windowAt < s.reporting {
		return
	}
	if s.steady && s.all.count == s.window.count {
		fmt.Fprintln(s.out, "In steady state.")
	}
	if !s.quiet {
		s.printWindow()
	}
	s.window, s.windowAt = perfSums{}, s.now().UnixMilli()
}

const bytesPerMB = 1024 * 1024

// perSecond is how many there were of n in a second.
func perSecond(n, elapsedMs int64) float64 { return 1000 * float64(n) / float64(elapsedMs) }

func (s *perfStats) printWindow() {
	elapsed := s.now().UnixMilli() - s.windowAt
	fmt.Fprintf(s.out, "%d records sent, %s records/sec (%s MB/sec), %s ms avg latency, %s ms max latency.\n",
		s.window.count, decimals(perSecond(s.window.count, elapsed), 1),
		decimals(perSecond(s.window.bytes, elapsed)/bytesPerMB, 2),
		decimals(float64(s.window.latency)/float64(s.window.count), 1), decimals(float64(s.window.maxLatency), 1))
}

// printTotal prints the summary.
func (s *perfStats) printTotal() {
	elapsed := s.now().UnixMilli() - s.start
	kind := ""
	if s.steady {
		kind = " steady state"
	}
	fmt.Fprintf(s.out, "%d%s records sent, %s records/sec (%s MB/sec), %s ms avg latency, %s ms max latency, %d ms 50th, "+
		"%d ms 95th, %d ms 99th, %d ms 99.9th.\n", s.all.count, kind, decimals(perSecond(s.all.count, elapsed), 6),
		decimals(perSecond(s.all.bytes, elapsed)/bytesPerMB, 2),
		decimals(float64(s.all.latency)/float64(s.all.count), 2), decimals(float64(s.all.maxLatency), 2),
		s.percentile(0.5), s.percentile(0.95), s.percentile(0.99), s.percentile(0.999))
}

// percentile is the latency that a share of the records did not exceed.
func (s *perfStats) percentile(share float64) int64 {
	slices.Sort(s.latencies)
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[int(share*float64(len(s.latencies)))]
}

// decimals is a number with so many decimals, as Java's %.nf prints it.
func decimals(n float64, digits int) string {
	switch {
	case math.IsNaN(n):
		return "NaN"
	case math.IsInf(n, 1):
		return "Infinity"
	case math.IsInf(n, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(n, 'f', digits, 64)
}

// splittable is Java's SplittableRandom with the seed 0: the payloads are those of Kafka's tool.
type splittable struct{ seed uint64 }

func (r *splittable) next() int32 {
	const gamma = 0x9e3779b97f4a7c15
	r.seed += gamma
	z := r.seed
	z = (z ^ z>>33) * 0x62a9d9ed799705f5
	z = (z ^ z>>28) * 0xcb24d0a5c88c35b3
	return int32(z >> 32)
}

// below is a number from 0 to bound−1.
func (r *splittable) below(bound int32) int32 {
	n, m := r.next(), bound-1
	if bound&m == 0 {
		return n & m
	}
	for u := int32(uint32(n) >> 1); ; u = int32(uint32(r.next()) >> 1) {
		n = u % bound
		if u+m-n >= 0 { // an overflow is negative: such numbers would be drawn more often
			return n
		}
	}
}
