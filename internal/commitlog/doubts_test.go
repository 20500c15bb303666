package commitlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/record"
)

// TestRetentionDoubts has what people report about retention by time: it works as Kafka's does, and is explained.
func TestRetentionDoubts(t *testing.T) {
	const minute, day = 60_000, 86_400_000
	type segment struct{ ts, arrived []int64 }
	at := func(ts int64) segment { return segment{ts: []int64{ts}} }
	tests := []struct {
		name      string
		retention int64
		segments  []segment // arrived: t0 when nil
		want      []Doubt
		deleted   int
	}{
		{"all is well", 60 * minute, []segment{
			{[]int64{t0 - 90*minute}, []int64{t0 - 90*minute}}, at(t0 - 20*minute), at(t0)}, nil, 1},
		{"clocks differ", minute, []segment{at(t0 + 30_000), at(t0)}, nil, 0},
		{"a future timestamp", minute, []segment{
			{ts: []int64{t0 - 10*minute, t0 + 50*minute, t0}}, at(t0 - 10*minute), at(t0 - 10*minute), at(t0 - 10*minute)},
			[]Doubt{{FutureTimestamp, 0, 1, t0 + 50*minute, ""}}, 0},
		{"microseconds", day, []segment{at(t0), {ts: []int64{t0 * 1000}}, at(t0)},
			nil, 0},
		{"microseconds first", day, []segment{{ts: []int64{t0 * 1000, t0}}, at(t0)},
			[]Doubt{{FutureTimestamp, 0, 0, t0 * 1000, "microseconds"}}, 0},
		{"nanoseconds", day, []segment{at(t0 * 1_000_000)},
			[]Doubt{{FutureTimestamp, 0, 0, t0 * 1_000_000, "nanoseconds"}}, 0},
		{"seconds", day, []segment{at(t0 / 1000), {ts: []int64{t0/1000 + 1, t0/1000 + 3, t0 / 1000}}, at(t0)},
			[]Doubt{{OldOnArrival, 1, 2, t0/1000 + 3, "seconds"}}, 2},
		{"seconds alone", day, []segment{at(t0 / 1000)}, []Doubt{{OldOnArrival, 0, 0, t0 / 1000, "seconds"}}, 1},
		{"old events", 7 * day, []segment{at(t0 - 10*day), at(t0 - 9*day), at(t0 - 8*day), at(t0 - 6*day)},
			[]Doubt{{OldOnArrival, 2, 2, t0 - 8*day, ""}}, 3},
		{"out of order", 60 * minute, []segment{at(t0), at(t0 - 120*minute), at(t0)},
			[]Doubt{{YoungRecord, 0, 0, t0, ""}}, 0},
		{"gone, then held back", 60 * minute, []segment{at(t0 - 120*minute), at(t0 + 120*minute), at(t0 - 120*minute)},
			[]Doubt{{OldOnArrival, 0, 0, t0 - 120*minute, ""}, {FutureTimestamp, 1, 1, t0 + 120*minute, ""}}, 1},
		{"no timestamps, new", minute, []segment{at(-1), at(-1), at(t0)},
			[]Doubt{{NoTimestamp, 0, 0, t0, ""}}, 0},
		{"no timestamps, old", minute, []segment{{[]int64{-1}, []int64{t0 - 2*minute}}, at(t0)},
			[]Doubt{{NoTimestamp, 0, 0, t0 - 2*minute, ""}}, 1},
		{"no retention by time", -1, []segment{at(t0 * 1000), at(t0)}, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(smallConfig())
			w.cfg.RetentionMs = test.retention
			must(t, w.open())
			for i, s := range test.segments {
				if i > 0 {
					must(t, w.log.Roll())
				}
				if w.nowMs = t0; s.arrived != nil {
					w.nowMs = s.arrived[0]
				}
				for _, ts := range s.ts {
					_, err := w.append(record.None, -1, []row{{ts: ts}})
					must(t, err)
				}
			}
			w.nowMs = t0
			doubts, err := w.log.RetentionDoubts(w.clock())
			must(t, err)
			if d := cmp.Diff(test.want, doubts); d != "" {
				t.Error(d)
			}
			n, err := w.log.DeleteOldSegments(w.clock())
			if must(t, err); n != test.deleted {
				t.Errorf("%d deleted, want %d", n, test.deleted)
			}
			must(t, w.log.Abandon())
		})
	}
}

// TestManySegmentsGoInSteps: between the steps of a long deletion appends get on, and all goes that must.
func TestManySegmentsGoInSteps(t *testing.T) {
	for _, n := range []int{deletedAtOnce - 1, deletedAtOnce, deletedAtOnce + 1, 3*deletedAtOnce + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(smallConfig())
			w.cfg.RetentionMs = 1000
			must(t, w.open())
			for i := range n {
				if i > 0 {
					must(t, w.log.Roll())
				}
				_, err := w.append(record.None, -1, []row{{ts: t0}})
				must(t, err)
			}
			got, err := w.log.DeleteOldSegments(time.UnixMilli(t0 + 2000))
			if must(t, err); got != n || w.log.StartOffset() != int64(n) || w.log.EndOffset() != int64(n) {
				t.Errorf("%d deleted, log %d to %d", got, w.log.StartOffset(), w.log.EndOffset())
			}
			must(t, w.log.Abandon())
		})
	}
}
