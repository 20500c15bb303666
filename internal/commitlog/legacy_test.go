package commitlog

import (
	"slices"
	"testing"
)

// TestLegacyOffsets holds the answers of ListOffsets v0 that are known from brokers which still had it.
func TestLegacyOffsets(t *testing.T) {
	hundreds := []LegacySegment{{0, 1000, 10}, {100, 2000, 10}, {200, 3000, 10}}
	query := func(change func(*LegacyQuery)) LegacyQuery {
		q := LegacyQuery{Segments: hundreds, LogEnd: 300, NowMs: 9000, Timestamp: LatestTimestamp, Max: 10,
			HighWatermark: 300}
		change(&q)
		return q
	}
	small := func(end, hw int64, bases ...int64) LegacyQuery {
		q := LegacyQuery{LogEnd: end, NowMs: 9000, Timestamp: LatestTimestamp, Max: 10, HighWatermark: hw}
		for _, b := range bases {
			q.Segments = append(q.Segments, LegacySegment{b, 1000, 10})
		}
		return q
	}
	tests := []struct {
		name string
		q    LegacyQuery
		want []int64
	}{
		{"latest", query(func(*LegacyQuery) {}), []int64{300, 200, 100, 0}},
		{"latest, one", query(func(q *LegacyQuery) { q.Max = 1 }), []int64{300}},
		{"earliest", query(func(q *LegacyQuery) { q.Timestamp = EarliestTimestamp }), []int64{0}},
		{"none wanted", query(func(q *LegacyQuery) { q.Max = 0 }), []int64{}},
		{"before the first", query(func(q *LegacyQuery) { q.Timestamp = 999 }), []int64{}},
		{"between", query(func(q *LegacyQuery) { q.Timestamp = 2500 }), []int64{100, 0}},
		{"at a change", query(func(q *LegacyQuery) { q.Timestamp = 2000 }), []int64{100, 0}},
		{"after now", query(func(q *LegacyQuery) { q.Timestamp = 9000 }), []int64{300, 200, 100, 0}},
		{"the last segment is empty", query(func(q *LegacyQuery) {
			q.Segments = append(slices.Clone(hundreds), LegacySegment{300, 4000, 0})
		}), []int64{300, 200, 100, 0}},
		{"log start inside a segment", query(func(q *LegacyQuery) { q.LogStart = 150 }), []int64{300, 200, 150, 150}},
		{"log start, segment deleted", query(func(q *LegacyQuery) {
			q.LogStart, q.Segments = 150, hundreds[1:]
		}), []int64{300, 200, 150}},
		{"high watermark below the end", small(11, 10, 5, 8), []int64{10, 8, 5}},
		{"high watermark below all", small(20, 10, 14, 17), []int64{10}},
		{"a replica sees all", small(20, -1, 14, 17), []int64{20, 17, 14}},
		{"empty log", LegacyQuery{Segments: []LegacySegment{{0, 1000, 0}}, NowMs: 9000, Timestamp: LatestTimestamp, Max: 5},
			[]int64{0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := LegacyOffsets(test.q); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestLegacyOffsetsOfLog takes the times of the files.
func TestLegacyOffsetsOfLog(t *testing.T) {
	w := newWorld(smallConfig())
	must(t, w.open())
	for i := range int64(3) {
		w.nowMs = 1_700_000_000_000 + i*1000
		_, err := w.append(0, -1, []row{{ts: 5, value: "a"}, {ts: 6, value: "b"}})
		must(t, err)
		if i < 2 {
			must(t, w.log.Roll())
		}
	}
	for ts, want := range map[int64][]int64{
		LatestTimestamp:   {6, 4, 2, 0},
		EarliestTimestamp: {0},
		1_699_999_999_999: {},
		1_700_000_000_000: {0},
		1_700_000_001_500: {2, 0},
		1_700_000_002_000: {6, 4, 2, 0},
	} {
		got, err := w.log.LegacyOffsets(ts, 10, 6)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", ts, got, want)
		}
	}
	must(t, w.log.Abandon())
}
