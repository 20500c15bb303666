package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logFindHelp = `Find looks a record up by its time or its offset, as a broker does for a client.

--time finds, in each partition, the first record (lowest offset) whose timestamp is at
or after a time: milliseconds since 1970, RFC 3339, a date in --zone, "2h ago", now,
today, yesterday; or "max" for the first record with the largest timestamp. The time
understood is printed on the error output, with a warning when a bare number looks like
seconds, microseconds or nanoseconds.

--offset finds the record at an offset, or where compaction left a gap the next one.

--explain shows the way: the segments and their largest timestamps, the time index entry
(every record with a later timestamp lies behind its offset), the offset index entry
(the position where the scan of the log began), and how much was scanned.

--json: one object a partition, of type "found" or "none".`

const logFindExample = `  tidemark log find --time 2026-11-30T12:00:00Z --explain /var/lib/kafka/orders-0
  tidemark log find --time "2h ago" --topic 'orders*' /var/lib/kafka
  tidemark log find --time "2026-11-30 08:00" --zone Europe/Berlin /backup/orders-0
  tidemark log find --offset 4711 --json /var/lib/kafka/orders-0`

func logFindCommand(o *logOptions) *cobra.Command {
	var at, offset string
	var explain bool
	c := &cobra.Command{
		Use: "find --time T | --offset N DIR...", Short: "Find a record by time or offset, and show the way there",
		Long: logFindHelp, Example: logFindExample,
		RunE: func(_ *cobra.Command, args []string) error {
			zone, err := o.location()
			if err != nil {
				return err
			}
			q, err := o.query(at, offset, zone)
			if err != nil {
				return err
			}
			return o.find(args, q, explain, zone)
		},
	}
	c.Flags().StringVar(&at, "time", "", "the first record at this time or later")
	c.Flags().StringVar(&offset, "offset", "", "the record at this offset")
	noFiles(c, "time", "offset")
	c.Flags().BoolVar(&explain, "explain", false, "show the way through the indexes")
	return c
}

func (o *logOptions) query(at, offset string, zone *time.Location) (q inspect.Query, err error) {
	switch {
	case (at == "") == (offset == ""):
		return q, errors.New("give either --time or --offset")
	case offset != "":
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || n < 0 {
			return q, fmt.Errorf("--offset %s: want a number from 0 on", offset)
		}
		q.Offset = &n
	case at == "max", at == "-3":
		q.Max = true
	default:
		ms, err := o.instant(at, zone)
		if err != nil {
			return q, fmt.Errorf("--time: %w", err)
		}
		q.Time = &ms
	}
	return q, nil
}

func (o *logOptions) find(args []string, q inspect.Query, explain bool, zone *time.Location) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	return o.each(targets, func(t inspect.Target) error {
		cfg, _ := settings.Topic(t)
		f, err := inspect.Find(o.fs, t, cfg, q, explain)
		if err != nil {
			return err
		}
		if o.json {
			return o.emit(f)
		}
		o.printFound(f, zone)
		return nil
	})
}

func (o *logOptions) printFound(f *inspect.Found, zone *time.Location) {
	w := o.env.Stdout
	fmt.Fprintf(w, "%s-%d  ", f.Topic, f.Partition)
	switch {
	case f.Record != nil:
		r := f.Record
		fmt.Fprintf(w, "offset %d  %s (%d)  key %s  value %s", r.Offset, inspect.FormatTime(r.Timestamp, zone), r.Timestamp,
			preview(r.Key), preview(r.Value))
		if r.Control != "" {
			fmt.Fprintf(w, "  control %s", r.Control)
		}
		if q := f.Query.Offset; q != nil && r.Offset != *q {
			fmt.Fprintf(w, "  (offset %d holds no record; this is the next)", *q)
		}
		fmt.Fprintln(w)
	case f.Start == f.End:
		fmt.Fprintf(w, "none  (the log is empty at offset %d)\n", f.End)
	default:
		fmt.Fprintf(w, "none  (the log has the offsets %d to %d)\n", f.Start, f.End-1)
	}
	if f.Damage != "" {
		fmt.Fprintln(w, "  damage:", f.Damage)
	}
	if f.Explain != nil {
		o.printExplanation(f, zone)
	}
}

// previewBytes is how much of a key or value find prints.
const previewBytes = 60

func preview(b inspect.Text) string {
	if b == nil {
		return "null"
	}
	rest := ""
	if len(b) > previewBytes {
		rest = fmt.Sprintf("… (%d bytes)", len(b))
		b = b[:previewBytes]
		for len(b) > 0 && !utf8.Valid(b) && previewBytes-len(b) < utf8.UTFMax {
			b = b[:len(b)-1]
		}
	}
	if !utf8.Valid(b) {
		return fmt.Sprintf("0x%x%s", []byte(b), rest)
	}
	return strconv.Quote(string(b)) + rest
}

func (o *logOptions) printExplanation(f *inspect.Found, zone *time.Location) {
	e, w := f.Explain, o.env.Stdout
	if f.Query.Time != nil {
		fmt.Fprintf(w, "  1. segments: %d; the largest timestamp of %d compared with %s\n", len(e.Segments),
			e.SegmentsConsidered, inspect.FormatTime(*f.Query.Time, zone))
	} else {
		fmt.Fprintf(w, "  1. segments: %d; the last one that begins at or below the offset\n", len(e.Segments))
	}
	o.printConsidered(f, zone)
	if e.SegmentBase < 0 {
		fmt.Fprintln(w, "     no segment can hold the answer: nothing was searched")
		return
	}
	step := 2
	if t := e.TimeEntry; t != nil {
		if t.Timestamp < 0 {
			fmt.Fprintf(w, "  2. %020d.timeindex: the time is before its first entry: nothing is ruled out\n", e.SegmentBase)
		} else {
			fmt.Fprintf(w, "  2. %020d.timeindex: entry (%s, offset %d): later records lie behind that offset\n", e.SegmentBase,
				inspect.FormatTime(t.Timestamp, zone), t.Offset)
		}
		step++
	}
	fmt.Fprintf(w, "  %d. %020d.index: entry (offset %d, position %d): the scan begins at byte %d\n", step, e.SegmentBase,
		e.OffsetEntry.Offset, e.OffsetEntry.Pos, e.OffsetEntry.Pos)
	fmt.Fprintf(w, "  %d. %020d.log: %d batch headers looked at, %d batches decoded, %d bytes read\n",
		step+1, e.SegmentBase,
		e.BatchesScanned, e.BatchesDecoded, e.BytesScanned)
}

// shownAround is how many segments before and behind the one searched are listed.
const shownAround = 3

func (o *logOptions) printConsidered(f *inspect.Found, zone *time.Location) {
	e, w := f.Explain, o.env.Stdout
	searched := len(e.Segments) - 1
	for i, s := range e.Segments {
		if s.Searched {
			searched = i
		}
	}
	from, to := max(0, searched-shownAround), min(len(e.Segments), searched+shownAround+1)
	if from > 0 {
		fmt.Fprintf(w, "       … %d before\n", from)
	}
	for _, s := range e.Segments[from:to] {
		mark, verdict := " ", ""
		switch {
		case s.Searched:
			mark, verdict = ">", "searched"
		case f.Query.Time != nil && s.LargestTimestamp < *f.Query.Time:
			verdict = "passed over: too old"
		case f.Query.Time != nil && e.SegmentBase >= 0 && s.BaseOffset < e.SegmentBase:
			verdict = "searched before, without a hit"
		}
		fmt.Fprintf(w, "     %s %020d  offsets %d to %d  %s  largest %s  %s\n", mark, s.BaseOffset, s.BaseOffset,
			s.NextOffset-1, humanBytes(s.SizeBytes), inspect.FormatTime(s.LargestTimestamp, zone), verdict)
	}
	if to < len(e.Segments) {
		fmt.Fprintf(w, "       … %d behind\n", len(e.Segments)-to)
	}
}
