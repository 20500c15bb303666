package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
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
	var all []*inspect.PartitionInfo
	for _, t := range targets {
		cfg, _ := settings.Topic(t)
		p, err := inspect.List(o.fs, t, cfg, scan)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	inspect.Sort(all, sortKey)
	if !o.json {
		return o.printList(all, segments, zone)
	}
	for _, p := range all {
		if err := o.emit(p); err != nil {
			return err
		}
	}
	return nil
}

func (o *logOptions) printList(all []*inspect.PartitionInfo, segments bool, zone *time.Location) error {
	w := tabwriter.NewWriter(o.env.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tSEGMENT\tSTART\tEND\tLOG\tINDEXES\tFIRST TIME\tLARGEST TIME\tCODECS\tBATCH SIZE")
	var total, indexes int64
	for _, p := range all {
		name := fmt.Sprintf("%s-%d", p.Topic, p.Partition)
		if p.Mark != "" {
			name += " (" + p.Mark + ")"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", name, len(p.Segments), p.StartOffset, p.EndOffset,
			humanBytes(p.SizeBytes), humanBytes(p.IndexBytes), inspect.FormatTime(p.FirstTimestamp, zone),
			inspect.FormatTime(p.LargestTimestamp, zone), mixText(p.Mix))
		total, indexes = total+p.SizeBytes, indexes+p.IndexBytes
		if !segments {
			continue
		}
		for _, s := range p.Segments {
			fmt.Fprintf(w, "\t%020d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", s.BaseOffset, s.BaseOffset, s.NextOffset,
				humanBytes(s.SizeBytes), humanBytes(s.IndexBytes), inspect.FormatTime(s.FirstTimestamp, zone),
				inspect.FormatTime(s.LargestTimestamp, zone), mixText(s.Mix))
		}
	}
	if len(all) > 1 {
		fmt.Fprintf(w, "%d partitions\t\t\t\t%s\t%s\n", len(all), humanBytes(total), humanBytes(indexes))
	}
	return w.Flush()
}

// mixText is two columns: the codecs with their share, and the mean and largest batch.
func mixText(m inspect.Mix) string {
	if m.Batches == 0 {
		return "-\t-"
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
	return fmt.Sprintf("%s%s\t%s%s (max %s)", mark, strings.Join(parts, " "), mark,
		humanBytes(m.Bytes/m.Batches), humanBytes(m.LargestBatch))
}
