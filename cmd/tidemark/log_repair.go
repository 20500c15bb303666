package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/inspect"
)

const logRepairHelp = `Repair mends what "tidemark log verify" finds, as far as the bytes allow. Without --apply
it only tells what it would do.

  logs        one flipped bit is restored where the checksum proves it (also a wrong length);
              other bytes that are no batch are taken out, so that what is behind them can be
              read; a torn tail is cut. The old bytes stay in files cut-*, which Kafka ignores.
  indexes     .index, .timeindex and .txnindex that are missing or wrong are rebuilt, with the
              bytes that Kafka would write.
  the rest    producer snapshots and leader epochs are written anew from the batches, a broken
              checkpoint from its lines (it stays in a cut-* file), partition.metadata from the
              metadata log; an index whose log is missing is removed.

What cannot be improved is left alone. Every step leaves a directory that a broker can open,
also when the power fails before the next one. --apply refuses a directory whose .lock is held,
and one on a disk without room for the repair, before it changes anything.

For indexes with Kafka's bytes the topic's index.interval.bytes must be known: from the metadata
log in the log directory, from --set, or from the indexes that are whole.

--json: objects of type "action", after --apply "finding" for what is left, and a "summary".

Exit status: 0 nothing to do, or all errors and warnings mended; 1 something to do (without
--apply) or left (with it); 2 refused or failed.`

const logRepairExample = `  tidemark log repair /var/lib/kafka/orders-0
  tidemark log repair --apply /var/lib/kafka/orders-0
  tidemark log repair --apply --set index.interval.bytes=8192 /backup/orders-0`

func logRepairCommand(o *logOptions) *cobra.Command {
	var apply bool
	c := &cobra.Command{
		Use: "repair DIR...", Short: "Mend logs and indexes; a dry run unless told to --apply",
		Long: logRepairHelp, Example: logRepairExample,
		RunE: func(c *cobra.Command, args []string) error { return o.repair(c.Context(), args, apply) },
	}
	c.Flags().BoolVar(&apply, "apply", false, "make the changes")
	return c
}

func (o *logOptions) repair(ctx context.Context, args []string, apply bool) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	var failed error
	emit := func(v any) {
		if failed == nil {
			failed = o.emit(v)
		}
	}
	bar := o.startProgress("repair", targets)
	summary, err := inspect.Repair(ctx, o.fs, targets, inspect.RepairOptions{
		Settings: settings, Apply: apply, Progress: bar.add,
		Report: func(a inspect.Action) {
			if o.json {
				emit(a)
			} else {
				o.printAction(a)
			}
		},
		Left: func(f inspect.Finding) {
			if o.json {
				emit(f)
			} else {
				fmt.Fprint(o.env.Stdout, "left: ")
				o.printFinding(f)
			}
		},
	})
	bar.end()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if o.json {
		if err := o.emit(summary); err != nil {
			return err
		}
	} else {
		o.printRepairSummary(summary)
	}
	if summary.Left > 0 || !apply && summary.Actions > 0 {
		return &cli.Exit{Code: 1}
	}
	return nil
}

func (o *logOptions) printAction(a inspect.Action) {
	verb := "would"
	if a.Applied {
		verb = "do"
	}
	kept := ""
	if a.Kept != "" {
		kept = " in " + a.Kept
	}
	fmt.Fprintf(o.env.Stdout, "%s: %s: %s%s\n", verb, a.File, a.What, kept)
}

func (o *logOptions) printRepairSummary(s *inspect.RepairSummary) {
	w := o.env.Stdout
	switch {
	case s.Found == 0:
		fmt.Fprintln(w, "nothing found")
	case s.Applied:
		fmt.Fprintf(w, "%d changes made for %d findings; %d errors and warnings are left\n", s.Actions, s.Found, s.Left)
	case s.Actions == 0:
		fmt.Fprintf(w, "%d findings, nothing to do about them\n", s.Found)
	default:
		fmt.Fprintf(w, "%d changes would be made for %d findings; %d errors and warnings cannot be mended; "+
			"run with --apply\n", s.Actions, s.Found, s.Left)
	}
}
