package cleaner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/record"
)

// Pass compacts the dirtiest of the logs that are due, and then deletes the old segments of all compacted logs, as
// retention and the log start offset say. cleaned is false when no log was due.
func (c *Cleaner) Pass(ctx context.Context) (cleaned bool) {
	c.metrics.lastPassMs.Store(c.o.Clock().UnixMilli())
	if p, job, end := c.choose(ctx); p != nil {
		cleaned = c.clean(job, p)
		end()
	}
	c.retain(ctx)
	return cleaned
}

// choose makes the plans for all logs, and takes the one with the largest dirty part, by name among equals.
func (c *Cleaner) choose(ctx context.Context) (*plan, context.Context, func()) {
	var wanted []*plan
	dirtiest, delay := 0.0, int64(0)
	for _, part := range c.compacted() {
		p := c.plan(part)
		if p == nil {
			continue
		}
		if p.cleanBytes+p.dirtyBytes > 0 {
			dirtiest = max(dirtiest, p.ratio())
		}
		delay = max(delay, p.delayMs)
		if p.wanted() {
			wanted = append(wanted, p)
		} else {
			p.release()
		}
	}
	c.metrics.sawDirt(dirtiest, delay, len(wanted))
	slices.SortFunc(wanted, func(a, b *plan) int {
		return cmp.Or(cmp.Compare(b.ratio(), a.ratio()), cmp.Compare(a.Name.Topic, b.Name.Topic),
			cmp.Compare(a.Name.Partition, b.Name.Partition))
	})
	for i, p := range wanted {
		ctx, end, ok := c.begin(ctx, p.Name)
		if !ok {
			p.release()
			continue
		}
		for _, other := range wanted[i+1:] {
			other.release()
		}
		return p, ctx, end
	}
	return nil, ctx, nil
}

// compacted lists the logs with the policy compact that are not being worked on and that can be compacted.
func (c *Cleaner) compacted() []Partition {
	logs := c.o.Logs()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(logs, func(p Partition) bool {
		_, broken := c.uncleanable[p.Name]
		return broken || c.busy[p.Name] != nil || c.paused[p.Name] > 0 || !p.Log.Config().CleanupPolicy.Compact()
	})
}

// plan looks at one log; nil when it cannot be worked on.
func (c *Cleaner) plan(part Partition) *plan {
	if to, ok := part.Log.TruncatedTo(); ok {
		c.note(part.Dir, func(all checkpoint.Offsets) {
			if all[part.Name] > to {
				all[part.Name] = to
			}
		})
	}
	checkpointed, known, err := c.points.of(part.Dir, part.Name)
	if err != nil {
		if c.o.Failed != nil {
			c.o.Failed(part.Dir, err)
		}
		return nil
	}
	p, err := makePlan(part, checkpointed, known, c.o.Clock())
	switch {
	case errors.Is(err, commitlog.ErrClosed):
		return nil
	case err != nil && isDisk(err):
		c.o.Logger.Error("compaction", "partition", part.Name.String(), "error", part.Log.ReplaceFailed(err))
		return nil
	case err != nil:
		c.giveUp(part, err)
		return nil
	}
	if p.reset {
		// Kafka: with retention that is the way of things, and nothing is said.
		if !p.cfg.CleanupPolicy.Delete() || checkpointed > p.held.End {
			c.o.Logger.Warn("the first dirty offset is not in the log: all of it counts as dirty",
				"partition", part.Name.String(), "offset", checkpointed, "start", p.held.Start, "end", p.held.End)
		}
		c.note(part.Dir, func(all checkpoint.Offsets) { all[part.Name] = p.firstDirty })
	}
	return p
}

// clean does a round, and reports whether it came to its end.
func (c *Cleaner) clean(ctx context.Context, p *plan) bool {
	defer p.release()
	cfg := c.config()
	threads := max(cfg.Threads, 1)
	r := &round{
		ctx: ctx, plan: p, throttle: &c.throttle,
		offsets: newOffsetMap(cfg.DedupeBufferBytes/int64(threads), cfg.LoadFactor),
		options: record.IterOptions{MaxBytes: c.o.MaxDecompressedBytes, Memory: c.o.Memory},
		room:    max(cfg.IOBufferBytes/threads/2, 1),
	}
	end, err := r.run(c.o.Clock)
	switch {
	case err == nil:
		c.note(p.Dir, func(all checkpoint.Offsets) { all[p.Name] = end })
		c.metrics.add(&r.stats)
		c.report(p, end, &r.stats)
		return true
	case errors.Is(err, errStopped), errors.Is(err, commitlog.ErrClosed), errors.Is(err, commitlog.ErrChanged):
		c.o.Logger.Debug("compaction was interrupted", "partition", p.Name.String(), "reason", err)
	case errors.Is(err, commitlog.ErrDiskFull):
		c.o.Logger.Warn("compaction needs more room on the disk; it is tried again", "partition", p.Name.String(),
			"error", err)
	case errors.Is(err, commitlog.ErrFailed):
		c.o.Logger.Error("compaction", "partition", p.Name.String(), "error", err)
	default:
		c.giveUp(p.Partition, err)
	}
	return false
}

// giveUp marks a partition as one that is not compacted any more.
func (c *Cleaner) giveUp(part Partition, reason error) {
	c.o.Logger.Error("a log cannot be compacted; it stays as it is until the next start, all else goes on",
		"partition", part.Name.String(), "dir", part.Log.Dir(), "reason", reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uncleanable[part.Name] = Uncleanable{Name: part.Name, Dir: part.Dir, Reason: reason}
}

// Uncleanable lists the partitions that are not compacted any more, by name.
func (c *Cleaner) Uncleanable() []Uncleanable {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Uncleanable, 0, len(c.uncleanable))
	for _, u := range c.uncleanable {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Uncleanable) int {
		return cmp.Or(cmp.Compare(a.Name.Topic, b.Name.Topic), cmp.Compare(a.Name.Partition, b.Name.Partition))
	})
	return out
}

// UncleanableBytes are the dirty bytes of the partitions that are not compacted any more.
func (c *Cleaner) UncleanableBytes() int64 {
	total := int64(0)
	broken := c.Uncleanable()
	if len(broken) == 0 {
		return 0
	}
	for _, part := range c.o.Logs() {
		if !slices.ContainsFunc(broken, func(u Uncleanable) bool { return u.Name == part.Name }) {
			continue
		}
		checkpointed, known, err := c.points.of(part.Dir, part.Name)
		if err != nil {
			continue
		}
		if p, err := makePlan(part, checkpointed, known, c.o.Clock()); err == nil {
			total += p.dirtyBytes
			p.release()
		}
	}
	return total
}

// retain deletes the old segments of the compacted logs that nobody works on.
//
// Kafka: the cleaner does it, so that it does not meet the retention of other logs.
func (c *Cleaner) retain(ctx context.Context) {
	for _, part := range c.compacted() {
		if ctx.Err() != nil {
			return
		}
		_, end, ok := c.begin(ctx, part.Name)
		if !ok {
			continue
		}
		n, err := part.Log.DeleteOldSegments(c.o.Clock())
		end()
		if err != nil && !errors.Is(err, commitlog.ErrClosed) {
			c.o.Logger.Error("retention", "partition", part.Name.String(), "error", err)
		}
		if n > 0 {
			c.o.Logger.Info("old segments deleted", "partition", part.Name.String(), "segments", n,
				"log_start_offset", part.Log.StartOffset())
		}
	}
}

func (c *Cleaner) report(p *plan, end int64, s *Stats) {
	c.o.Logger.Info("log compacted", "partition", p.Name.String(), "from", p.firstDirty, "to", end,
		"bytes_before", s.BytesRead, "bytes_after", s.BytesWritten, "records_before", s.RecordsRead,
		"records_after", s.RecordsWritten, "segments_before", s.SegmentsBefore, "segments_after", s.SegmentsAfter,
		"keys", s.Keys, "took", s.Took.Round(time.Millisecond))
	if s.InvalidRecords > 0 {
		c.o.Logger.Warn("records without a key were dropped", "partition", p.Name.String(), "records", s.InvalidRecords)
	}
}
