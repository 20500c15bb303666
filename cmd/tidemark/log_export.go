package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logExportHelp = `Export copies a range of partitions into new partition folders: whole batches with their
offsets, unchanged, with indexes, producer snapshot, leader epochs and topic id of their own.
The folders can be read by every tool here, by Kafka's, and served by a broker.

The range is as of "tidemark log cat". It begins with the batch that holds its first record.
Batches with a wrong checksum are left out and counted. A folder that is there already is
refused; until all is written, its name ends in .part.

--json: one object of type "export" a partition.`

const logExportExample = `  tidemark log export --from "time:2026-11-30 08:00" --to "time:2026-11-30 09:00" ` +
	`-o /tmp/hour /var/lib/kafka/orders-0
  tidemark log export --from 4000 --to 5000 -o /tmp/part /backup/orders-0`

func logExportCommand(o *logOptions) *cobra.Command {
	var from, to, out string
	c := &cobra.Command{
		Use: "export -o OUT DIR...", Short: "Copy a range into a new, valid partition folder",
		Long: logExportHelp, Example: logExportExample,
		RunE: func(_ *cobra.Command, args []string) error { return o.export(args, from, to, out) },
	}
	c.Flags().StringVar(&from, "from", "", "first OFFSET or time:TIME")
	c.Flags().StringVar(&to, "to", "", "OFFSET or time:TIME to end before")
	noFiles(c, "from", "to")
	c.Flags().StringVarP(&out, "output", "o", "", "folder in which the partitions' folders are made")
	return c
}

func (o *logOptions) export(args []string, from, to, out string) error {
	if out == "" {
		return errors.New("say where to with -o")
	}
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
	r, err := o.bounds(from, to, zone)
	if err != nil {
		return err
	}
	bar := o.startProgress("export", targets)
	defer bar.end()
	return o.each(targets, func(t inspect.Target) error {
		cfg, _ := settings.Topic(t)
		s, err := inspect.Export(o.fs, t, cfg, r, out, o.env.Now(), bar.add)
		if err != nil {
			return fmt.Errorf("export %s: %w", t.Name(), err)
		}
		if o.json {
			return o.emit(s)
		}
		fmt.Fprintf(o.env.Stdout, "%s: offsets %d to %d, %d batches, %s", s.Dir, s.From, s.To-1, s.Batches,
			humanBytes(s.Bytes))
		if s.Left > 0 {
			fmt.Fprintf(o.env.Stdout, "; %d damaged parts left out", s.Left)
		}
		fmt.Fprintln(o.env.Stdout)
		return nil
	})
}
