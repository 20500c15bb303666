package commitlog

import "testing"

func TestExpired(t *testing.T) {
	policy := func(p CleanupPolicy, ms, bytes int64) *Config {
		return &Config{CleanupPolicy: p, RetentionMs: ms, RetentionBytes: bytes}
	}
	// Three segments and an active one, by size, largest timestamp and end.
	four := []Candidate{
		{1000146, 1000, 10, false}, {1000146, 2000, 20, false}, {500073, 3000, 30, false}, {10, 4000, 40, true},
	}
	future := []Candidate{{600, 90000, 10, false}, {600, 1000, 20, false}, {600, 1000, 30, true}}
	empty := []Candidate{{600, 1000, 10, false}, {0, -1, 10, true}}
	tests := []struct {
		name     string
		why      Reason
		r        Retention
		segments []Candidate
		want     int
	}{
		{"log start inside", BelowStart, Retention{StartOffset: 19, HighWatermark: 40}, four, 1},
		{"log start at a base", BelowStart, Retention{StartOffset: 20, HighWatermark: 40}, four, 2},
		{"log start at the end", BelowStart, Retention{StartOffset: 40, HighWatermark: 40}, four, 3},
		{"log start, high watermark lower", BelowStart, Retention{StartOffset: 30, HighWatermark: 19}, four, 1},
		{"size", TooLarge, Retention{HighWatermark: 40, Config: policy(CleanupDelete, -1, 1500000)}, four, 1},
		{"size reached exactly", TooLarge, Retention{HighWatermark: 40, Config: policy(CleanupDelete, -1, 1500229)}, four, 1},
		{"size, one byte more to keep", TooLarge, Retention{HighWatermark: 40, Config: policy(CleanupDelete, -1, 1500230)},
			four, 0},
		{"size 0", TooLarge, Retention{HighWatermark: 40, Config: policy(CleanupDelete, -1, 0)}, four, 4},
		{"size without limit", TooLarge, Retention{HighWatermark: 40, Config: policy(CleanupDelete, -1, -1)}, four, 0},
		{"size, compacted", TooLarge, Retention{HighWatermark: 40, Config: policy(CleanupCompact, -1, 0)}, four, 0},
		{"time", TooOld, Retention{NowMs: 7001, HighWatermark: 40, Config: policy(CleanupDelete, 5000, -1)}, four, 2},
		{"time, exactly old enough is too young", TooOld,
			Retention{NowMs: 7000, HighWatermark: 40, Config: policy(CleanupDelete, 5000, -1)}, four, 1},
		{"time, all", TooOld, Retention{NowMs: 99999, HighWatermark: 40, Config: policy(CleanupDelete, 5000, -1)}, four, 4},
		{"time, a future one first", TooOld,
			Retention{NowMs: 60000, HighWatermark: 40, Config: policy(CleanupDelete, 5000, -1)}, future, 0},
		{"an empty last segment stays", TooOld,
			Retention{NowMs: 60000, HighWatermark: 40, Config: policy(CleanupDelete, 5000, -1)}, empty, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.r.Config == nil {
				test.r.Config = policy(CleanupCompact, 0, 0)
			}
			if got := test.r.Expired(test.why, test.segments); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
