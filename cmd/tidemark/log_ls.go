package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tidemark/internal/commitlog"
	"tidemark/internal/inspect"
	"tidemark/internal/segment"
)

const logListHelp = `List partitions, or with --segments their segments too: offsets, sizes, times, codecs.

Codecs and batch sizes are told from the first 16 KiB of each segment and marked with ~,
unless --scan reads the headers of all batches. --json gives one object of type
"partition" a line, with its segments.`

const logListExample = `  tidemark log ls /var/lib/kafka
  tidemark log ls --sort size --topic 'orders*' /var/lib/kafka
  tidemark log ls --segments --scan /var/lib/kafka/orders-0
  tidemark log ls --json /var/lib/kafka | jq -s 'map(.sizeBytes) | add'`

func logListCommand(o *logOptions) *cobra.Command {
	var sortKey string
	var segments, scan bool
	c := &cobra.Command{
		Use: "ls DIR...", Aliases: []string{"list"},
		Short: "List topics, partitions and segments", Long: logListHelp, Example: logListExample,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(inspect.SortKeys, sortKey) {
				return fmt.Errorf("--sort %s: want one of %s", sortKey, strings.Join(inspect.SortKeys, ", "))
			}
			return o.list(args, sortKey, segments, scan)
		},
	}
	c.Flags().StringVar(&sortKey, "sort", "name", "order: "+strings.Join(inspect.SortKeys, ", "))
	c.Flags().BoolVar(&segments, "segments", false, "list segments too")
	c.Flags().BoolVar(&scan, "scan", false, "read the headers of all batches, for exact counts")
	_ = c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(inspect.SortKeys, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// lister prints partitions, each as soon as it was looked at, or all in another order at the end.
type lister struct {
	o        *logOptions
	zone     *time.Location
	sort     string
	segments bool // print them
	table    *tabwriter.Writer
	widths   []int // of the columns so far
	rows     int
	all      []*inspect.PartitionInfo // for another order
	n        int
	bytes    int64
	indexes  int64
}

func (o *logOptions) list(args []string, sortKey string, segments, scan bool) error {
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
	inspect.SortTargets(targets)
	bar := noProgress()
	if scan {
		bar = o.startProgress("ls", targets)
	}
	defer bar.end()
	l := &lister{o: o, zone: zone, sort: sortKey, segments: segments}
	if !o.json {
		l.table = tabwriter.NewWriter(o.env.Stdout, 0, 4, 2, ' ', 0)
		if err := l.row("PARTITION", "SEGMENT", "START", "END", "LOG", "INDEXES", "FIRST TIME", "LARGEST TIME", "CODECS",
			"BATCH SIZE"); err != nil {
			return err
		}
	}
	err = o.each(targets, func(t inspect.Target) error {
		cfg, _ := settings.Topic(t)
		return l.add(t, cfg, inspect.ListOptions{Scan: scan, Progress: bar.add})
	})
	return errors.Join(err, l.end())
}

// add looks at a partition. Segments are kept only where something needs them after the last one.
func (l *lister) add(t inspect.Target, cfg commitlog.Config, o inspect.ListOptions) error {
	line := (*jsonLine)(nil)
	switch {
	case l.o.json && l.sort == "name":
		line = startLine(l.o.env.Stdout, inspect.NameOf(t), "segments")
		o.Segment = func(s inspect.SegmentInfo) error { return line.element(s) }
	case !l.o.json && !l.segments:
		o.Segment = func(inspect.SegmentInfo) error { return nil }
	}
	p, err := inspect.List(l.o.fs, t, cfg, o)
	switch {
	case err != nil && line != nil:
		return line.fail(err)
	case err != nil:
		return err
	case line != nil:
		return line.end(p.PartitionTotals)
	case l.sort == "name":
		return l.print(p)
	}
	l.all = append(l.all, p)
	return nil
}

func (l *lister) end() error {
	inspect.Sort(l.all, l.sort)
	for _, p := range l.all {
		if err := l.print(p); err != nil {
			return err
		}
	}
	if l.o.json {
		return nil
	}
	if l.n > 1 {
		if err := l.row(fmt.Sprintf("%d partitions", l.n), "", "", "", humanBytes(l.bytes),
			humanBytes(l.indexes)); err != nil {
			return err
		}
	}
	return l.table.Flush()
}

func (l *lister) print(p *inspect.PartitionInfo) error {
	if l.o.json {
		return l.o.emit(p)
	}
	l.n, l.bytes, l.indexes = l.n+1, l.bytes+p.SizeBytes, l.indexes+p.IndexBytes
	err := l.row(append([]string{partitionText(p), strconv.Itoa(p.SegmentCount), itoa(p.StartOffset), itoa(p.EndOffset),
		humanBytes(p.SizeBytes), humanBytes(p.IndexBytes), inspect.FormatTime(p.FirstTimestamp, l.zone),
		inspect.FormatTime(p.LargestTimestamp, l.zone)}, mixText(p.Mix)...)...)
	if !l.segments {
		return err
	}
	for i := 0; i < len(p.Segments) && err == nil; i++ {
		s := &p.Segments[i]
		err = l.row(append([]string{"", segment.Name(s.BaseOffset, ""), itoa(s.BaseOffset), itoa(s.NextOffset),
			humanBytes(s.SizeBytes), humanBytes(s.IndexBytes), inspect.FormatTime(s.FirstTimestamp, l.zone),
			inspect.FormatTime(s.LargestTimestamp, l.zone)}, mixText(s.Mix)...)...)
	}
	return err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func partitionText(p *inspect.PartitionInfo) string {
	name := fmt.Sprintf("%s-%d", p.Topic, p.Partition)
	if p.Mark != "" {
		return name + " (" + p.Mark + ")"
	}
	return name
}

// tableRows is how many rows are in memory, to be written in columns of one width.
const tableRows = 1024

// row adds a row. Its columns are not narrower than those of the rows before, which may be written.
func (l *lister) row(cells ...string) error {
	for len(l.widths) < len(cells) {
		l.widths = append(l.widths, 0)
	}
	for i, cell := range cells[:len(cells)-1] {
		l.widths[i] = max(l.widths[i], utf8.RuneCountInString(cell))
		cells[i] += strings.Repeat(" ", l.widths[i]-utf8.RuneCountInString(cell))
	}
	if _, err := fmt.Fprintln(l.table, strings.Join(cells, "\t")); err != nil {
		return err
	}
	if l.rows++; l.rows%tableRows != 0 {
		return nil
	}
	return l.table.Flush()
}

// mixText is two columns: the codecs with their share, and the mean and largest batch.
func mixText(m inspect.Mix) []string {
	if m.Batches == 0 {
		return []string{"-", "-"}
	}
	mark := "~"
	if m.Whole {
		mark = ""
	}
	var parts []string
	codecs := m.Codecs.ByName()
	for _, codec := range slices.Sorted(maps.Keys(codecs)) {
		if n := codecs[codec]; n == m.Batches {
			parts = append(parts, codec)
		} else {
			parts = append(parts, fmt.Sprintf("%s %d%%", codec, n*100/m.Batches))
		}
	}
	parts = append(parts, slices.Sorted(maps.Keys(m.Magics.ByName()))...)
	return []string{mark + strings.Join(parts, " "),
		fmt.Sprintf("%s%s (max %s)", mark, humanBytes(m.Bytes/m.Batches), humanBytes(m.LargestBatch))}
}
