package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logReportHelp = `Report writes one HTML page about partitions: findings, offsets against time with disorder and
outliers, how many bytes look-ups scan, page cache residency, and when retention deletes what.

The page is a single file that asks nothing of any server; it follows the browser's light or dark
setting and fits a phone. It reads all of the logs. --json is not available here: use verify, stats
and cache.`

const logReportExample = `  tidemark log report -o report.html /var/lib/kafka
  tidemark log report --topic 'orders*' --zone UTC -o orders.html /var/lib/kafka`

func logReportCommand(o *logOptions) *cobra.Command {
	var out string
	var most int
	c := &cobra.Command{
		Use: "report -o FILE DIR...", Short: "Write an HTML page with pictures of partitions",
		Long: logReportHelp, Example: logReportExample, Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.report(c.Context(), args, out, most) },
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write; an older one is replaced")
	c.Flags().IntVar(&most, "max-partitions", 50, "partitions that are drawn; the others are in the table only")
	return c
}

func (o *logOptions) report(ctx context.Context, args []string, out string, most int) (err error) {
	if out == "" || o.json {
		return errors.New("say where to with -o FILE; there is no --json")
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
	bar := o.startProgress("report", targets)
	defer bar.end()
	f, err := os.CreateTemp(filepath.Dir(out), ".report-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = inspect.Report(ctx, o.fs, targets, inspect.ReportOptions{
		Settings: settings, Now: o.env.Now(), Zone: zone, Title: strings.Join(args, ", "), MaxPartitions: most,
		Progress: bar.add,
	}, f)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), out); err != nil {
		return err
	}
	fmt.Fprintf(o.env.Stderr, "%s: %d partitions\n", out, len(targets))
	return nil
}
