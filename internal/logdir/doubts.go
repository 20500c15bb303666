package logdir

import (
	"errors"
	"log/slog"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/segment"
)

const (
	// warningsAtOnce bounds the warnings of one look at all logs.
	warningsAtOnce = 20
	// warnedAtMost bounds what is remembered of warnings.
	warnedAtMost = 100_000
)

// doubtKey is a cause of a warning.
type doubtKey struct {
	tp      checkpoint.TopicPartition
	kind    commitlog.DoubtKind
	segment int64
}

// doubts warns of what is odd about retention by time, once for each cause. Only the task of retention uses it.
type doubts struct {
	warned map[doubtKey]bool
	left   int // warnings that may still be given in this look
	unsaid int
}

// begin starts a look at all logs.
func (d *doubts) begin() {
	if d.warned == nil || len(d.warned) > warnedAtMost {
		d.warned = map[doubtKey]bool{}
	}
	d.left, d.unsaid = warningsAtOnce, 0
}

// end tells how many causes the next look will warn of.
func (d *doubts) end(logger *slog.Logger) {
	if d.unsaid > 0 {
		logger.Warn("more about retention by time is odd; it is told with the next looks", "causes", d.unsaid)
	}
}

// look warns of a log, before its old segments go.
func (d *doubts) look(logger *slog.Logger, tp checkpoint.TopicPartition, log *commitlog.Log, now time.Time) {
	found, err := log.RetentionDoubts(now)
	if err != nil && !errors.Is(err, commitlog.ErrClosed) {
		logger.Debug("retention by time cannot be explained", "partition", tp.String(), "error", err)
	}
	for _, doubt := range found {
		key := doubtKey{tp, doubt.Kind, doubt.Segment}
		if doubt.Kind == commitlog.NoTimestamp {
			key.segment = 0 // once for the partition: it is so for all of its segments
		}
		if d.warned[key] {
			continue
		}
		if d.left == 0 {
			d.unsaid++
			continue
		}
		d.left--
		d.warned[key] = true
		logger.Warn("retention: "+string(doubt.Kind), doubtFields(tp, log, doubt, now)...)
	}
}

func doubtFields(tp checkpoint.TopicPartition, log *commitlog.Log, d commitlog.Doubt, now time.Time) []any {
	retentionMs := log.Config().RetentionMs
	fields := []any{"topic", tp.Topic, "partition", tp.Partition,
		"segment", segment.Name(d.Segment, segment.LogSuffix), "offset", d.Offset,
		"timestamp_ms", d.Timestamp, "timestamp", time.UnixMilli(d.Timestamp).UTC().Format(time.RFC3339),
		"retention_ms", retentionMs}
	if d.Unit != "" {
		fields = append(fields, "likely_unit", d.Unit)
	}
	if d.Kind == commitlog.FutureTimestamp || d.Kind == commitlog.YoungRecord {
		held := time.Duration(min(d.Timestamp-now.UnixMilli()+retentionMs, int64(never/time.Millisecond))) * time.Millisecond
		fields = append(fields, "held_for", held.Round(time.Second).String())
	}
	return fields
}
