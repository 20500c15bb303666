package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/inspect"
)

const logVerifyHelp = `Verify checks everything in a directory against everything else: every batch (frame,
checksum, offsets, records decoded by their codec), every index entry against the log,
the largest timestamps, aborted transactions, producer snapshots, leader epochs,
checkpoints, and files that do not belong there.

It reads only, and is safe on the directory of a running broker: an append under way is
no finding while the log directory's .lock is held.

Each finding is one line: severity, kind, file, position and offset, what is wrong, what
it breaks for users, and what "tidemark log repair" would do. Of the same kind only the
first in a file is shown, with a count.
  error    records are lost or hidden, answers are wrong, or a broker will not start
  warning  answers are right, but slow or at risk, or the next start changes something
  note     harmless: nobody looks at it

--json: objects of type "finding", and at the end one of type "summary".

What cannot be read is told on the error output, and the rest is checked.

Exit status: 0 nothing found, 1 something found, 2 could not look at all of it.`

const logVerifyExample = `  tidemark log verify /var/lib/kafka
  tidemark log verify /backup/orders-0
  tidemark log verify --json /var/lib/kafka | jq -r 'select(.severity == "error") | .file'
  tidemark log verify --jobs 2 --topic orders /var/lib/kafka`

func logVerifyCommand(o *logOptions) *cobra.Command {
	var jobs int
	c := &cobra.Command{
		Use: "verify DIR...", Short: "Check logs, indexes and all other files; exit status tells",
		Long: logVerifyHelp, Example: logVerifyExample,
		RunE: func(c *cobra.Command, args []string) error { return o.verify(c.Context(), args, jobs) },
	}
	c.Flags().IntVar(&jobs, "jobs", 0, "segments checked side by side (0: one for each processor)")
	return c
}

func (o *logOptions) verify(ctx context.Context, args []string, jobs int) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	bar := o.startProgress("verify", targets)
	var failed error
	summary, err := inspect.Verify(ctx, o.fs, targets, inspect.VerifyOptions{
		Settings: settings, Jobs: jobs, Progress: bar.add, Unreadable: o.tellFailed,
		Report: func(f inspect.Finding) {
			if o.json && failed == nil {
				failed = o.emit(f)
			} else if !o.json {
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
		o.printSummary(summary)
	}
	switch {
	case summary.Unreadable > 0:
		return &cli.Exit{Code: 2}
	case summary.Found() > 0:
		return &cli.Exit{Code: 1}
	}
	return nil
}

func (o *logOptions) printFinding(f inspect.Finding) {
	place := f.File
	if f.Pos >= 0 {
		place += fmt.Sprintf(" position %d", f.Pos)
	}
	if f.Offset >= 0 {
		place += fmt.Sprintf(" offset %d", f.Offset)
	}
	count := ""
	if f.Count > 1 {
		count = fmt.Sprintf(" (the first of %d)", f.Count)
	}
	severity := string(f.Severity)
	if colored(o.env.Stdout) {
		colors := map[inspect.Severity]string{inspect.Error: "\x1b[31m", inspect.Warning: "\x1b[33m", inspect.Note: "\x1b[2m"}
		severity = colors[f.Severity] + severity + "\x1b[0m"
	}
	fmt.Fprintf(o.env.Stdout, "%s %s: %s: %s%s; breaks: %s; repair: %s\n", severity, f.Kind, place, f.What, count,
		f.Breaks, f.Repair)
}

func (o *logOptions) printSummary(s *inspect.Summary) {
	use := ""
	if s.InUse {
		use = "; in use by a broker"
	}
	found := "nothing found"
	if s.Found() > 0 {
		found = fmt.Sprintf("%d errors, %d warnings, %d notes", s.Findings[inspect.Error], s.Findings[inspect.Warning],
			s.Findings[inspect.Note])
	}
	if s.Unreadable > 0 {
		use += fmt.Sprintf("; %d files or folders could not be read", s.Unreadable)
	}
	if s.Unproven > 0 {
		use += fmt.Sprintf("; %d segments without a seal", s.Unproven)
	}
	fmt.Fprintf(o.env.Stdout, "%d partitions, %d segments, %d batches, %d records, %s%s: %s\n",
		s.Partitions, s.Segments, s.Batches, s.Records, humanBytes(s.Bytes), use, found)
}
