package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logStatsHelp = `Stats measures what decides how fast look-ups are and what retention does:

  indexes     entries, bytes of log between them against index.interval.bytes, size against
              the log and against segment.index.bytes
  look-ups    how many bytes of log a look-up scans: over all offsets, and over all times
              that a look-up can find (those of records newer than all before)
  timestamps  records out of order (how many, the worst and where), records that move the
              largest timestamp, times in the future, times that look like seconds or
              microseconds instead of milliseconds
  retention   what the next pass deletes and why, what goes after that and when, and which
              segment's newer timestamps hold back older data behind it

It reads all of the logs. --json: one object of type "statistics" a partition.`

const logStatsExample = `  tidemark log stats /var/lib/kafka/orders-0
  tidemark log stats --segments --topic 'orders*' /var/lib/kafka
  tidemark log stats --json /var/lib/kafka | jq '{topic, partition, p99: .scanBytesByTime.p99}'`

func logStatsCommand(o *logOptions) *cobra.Command {
	var segments bool
	c := &cobra.Command{
		Use: "stats DIR...", Short: "Measure index density, scan lengths, order of timestamps, retention",
		Long: logStatsHelp, Example: logStatsExample,
		RunE: func(_ *cobra.Command, args []string) error { return o.stats(args, segments) },
	}
	c.Flags().BoolVar(&segments, "segments", false, "show each segment too")
	return c
}

func (o *logOptions) stats(args []string, segments bool) error {
	zone, err := o.location()
	if err != nil {
		return err
	}
	settings, err := o.settings()
	if err != nil {
		return err
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	bar := o.startProgress("stats", targets)
	defer bar.end()
	return o.each(targets, func(t inspect.Target) error {
		s, err := inspect.Compute(o.fs, t, settings, o.env.Now(), bar.add)
		if err != nil {
			return err
		}
		if o.json {
			return o.emit(s)
		}
		printStats(o.env.Stdout, s, zone)
		if !segments {
			return nil
		}
		return printSegmentStats(o.env.Stdout, s, zone)
	})
}

func printStats(w io.Writer, s *inspect.Statistics, zone *time.Location) {
	var offsets, times int64
	for _, g := range s.Segments {
		offsets, times = offsets+g.OffsetEntries, times+g.TimeEntries
	}
	fmt.Fprintf(w, "%s-%d: %d segments, %d batches, %d records, %s\n", s.Topic, s.Partition, len(s.Segments), s.Batches,
		s.Records, humanBytes(s.LogBytes))
	fmt.Fprintf(w, "  indexes     %d offset and %d time entries, %s", offsets, times, humanBytes(s.IndexBytes))
	if s.LogBytes > 0 {
		fmt.Fprintf(w, " (%.3f%% of the log)", 100*float64(s.IndexBytes)/float64(s.LogBytes))
	}
	fmt.Fprintf(w, "; segment.index.bytes=%d\n", s.SegmentIndexBytes)
	if d := s.BetweenEntries; d.Count > 0 {
		assumed := ""
		if !s.IntervalKnown {
			assumed = " (the default; nothing here tells)"
		}
		fmt.Fprintf(w, "  density     an entry every %s on average, %s at most; index.interval.bytes=%d%s\n",
			humanBytes(d.Mean), humanBytes(d.Max), s.IndexIntervalBytes, assumed)
	}
	printScan(w, "by offset", s.ScanByOffset)
	printScan(w, "by time", s.ScanByTime)
	t := s.Timestamps
	fmt.Fprintf(w, "  timestamps  first %s, smallest %s, largest %s\n", inspect.FormatTime(t.First, zone),
		inspect.FormatTime(t.Smallest, zone), inspect.FormatTime(t.Largest, zone))
	if s.Records > 0 {
		fmt.Fprintf(w, "              %d records move the largest timestamp, %d are out of order (%.1f%%)", t.MovesMaximum,
			t.OutOfOrder,
			100*float64(t.OutOfOrder)/float64(s.Records))
		if t.OutOfOrder > 0 {
			fmt.Fprintf(w, ", the worst by %s at offset %d", time.Duration(t.WorstLagMs)*time.Millisecond, t.WorstLagOffset)
		}
		fmt.Fprintln(w)
	}
	if t.None > 0 {
		fmt.Fprintf(w, "              %d records have no timestamp: look-ups by time never find them\n", t.None)
	}
	printOutlier(w, "lie more than an hour in the future: retention keeps their segments, and all behind them", t.Future,
		zone)
	printOutlier(w, "look like seconds, not milliseconds", t.Seconds, zone)
	printOutlier(w, "look like microseconds or nanoseconds", t.Microseconds, zone)
	printRetention(w, s, zone)
}

func printScan(w io.Writer, what string, d inspect.Distribution) {
	if d.Count > 0 {
		fmt.Fprintf(w, "  look-ups    %s scan %s on average, half of them up to %s, 90%% %s, 99%% %s, at most %s\n", what,
			humanBytes(d.Mean), humanBytes(d.P50), humanBytes(d.P90), humanBytes(d.P99), humanBytes(d.Max))
	}
}

func printOutlier(w io.Writer, what string, o inspect.Outlier, zone *time.Location) {
	if o.Count > 0 {
		fmt.Fprintf(w, "              %d records %s (the first: offset %d, %d = %s)\n", o.Count, what, o.Offset, o.Timestamp,
			inspect.FormatTime(o.Timestamp, zone))
	}
}

func printRetention(w io.Writer, s *inspect.Statistics, zone *time.Location) {
	r := s.Retention
	fmt.Fprintf(w, "  retention   cleanup.policy=%s retention.ms=%d retention.bytes=%d\n", r.Policy, r.RetentionMs,
		r.RetentionBytes)
	if r.Expired > 0 {
		fmt.Fprintf(w, "              the next pass deletes %d segments (%s)\n", r.Expired, r.ExpiredReason)
	}
	if r.NextBase >= 0 {
		fmt.Fprintf(w, "              then segment %d goes by age on %s\n", r.NextBase, inspect.FormatTime(r.NextDueMs, zone))
	}
	if r.HeldBy >= 0 {
		fmt.Fprintf(w, "              segment %d holds back older data behind it\n", r.HeldBy)
	}
}

func printSegmentStats(out io.Writer, s *inspect.Statistics, zone *time.Location) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "  SEGMENT\tLOG\tOFFSET ENTRIES\tTIME ENTRIES\tSCAN P99\tLARGEST TIME\tRETENTION DUE")
	for _, g := range s.Segments {
		due := "never"
		if g.DueMs >= 0 {
			due = inspect.FormatTime(g.DueMs, zone)
		}
		fmt.Fprintf(w, "  %020d\t%s\t%d\t%d\t%s\t%s\t%s\n", g.BaseOffset, humanBytes(g.SizeBytes), g.OffsetEntries,
			g.TimeEntries,
			humanBytes(g.ScanP99), inspect.FormatTime(g.LargestTimestamp, zone), due)
	}
	return w.Flush()
}
