package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

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
		Long: logReportHelp, Example: logReportExample,
		RunE: func(c *cobra.Command, args []string) error { return o.report(c.Context(), args, out, most) },
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write, - for the standard output; an older one is replaced")
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
	info, err := os.Stat(out)
	if err == nil && info.IsDir() {
		return fmt.Errorf("-o %s: a folder; give the file to write", out)
	}
	bar := o.startProgress("report", targets)
	defer bar.end()
	ro := inspect.ReportOptions{
		Settings: settings, Now: o.env.Now(), Zone: zone, Title: strings.Join(args, ", "), MaxPartitions: most,
		Progress: bar.add,
	}
	write := func(w io.Writer) error { return inspect.Report(ctx, o.fs, targets, ro, w) }
	switch {
	case out == "-":
		err = write(o.env.Stdout)
	case info != nil && !info.Mode().IsRegular():
		err = writeDevice(out, write)
	default:
		err = replaceFile(out, write)
	}
	if err == nil {
		fmt.Fprintf(o.env.Stderr, "%s: %d partitions\n", out, len(targets))
	}
	return err
}

// writeDevice writes to what is no file that could be replaced: a pipe, a terminal.
func writeDevice(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replaceFile writes a file that has its name only when all is written. A link stays one.
func replaceFile(name string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".report-*")
	if err != nil {
		return fmt.Errorf("-o %s: %w", name, errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	defer removeOnSignal(f.Name())()
	if err = errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// removeOnSignal removes a file when the program is told to end, until the function returned is called.
func removeOnSignal(name string) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			_ = os.Remove(name)
			os.Exit(128 + int(s.(syscall.Signal)))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
