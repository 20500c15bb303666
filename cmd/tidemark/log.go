package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/config"
	"tidemark/internal/inspect"
	"tidemark/vfs"
)

const logHelp = `Log looks into log directories without a broker: those of a Kafka node or of Tidemark,
in use or stopped, a copy, a snapshot, or what is left on a broken disk.

DIR is a partition's folder (.../orders-0), a log directory (an entry of log.dirs, with
all partitions in it), or single files of a partition (.../00000000000000000000.log).

Only repair --apply and export write anything; everything else reads, takes no lock, and
is safe beside a running broker.

With --json every line of the output is one JSON object with a field "type"; offsets,
sizes and timestamps are numbers (timestamps in ms since 1970, -1 for none). Fields are
added in later versions, never renamed. Messages for people go to the error output.

What a topic sets (index.interval.bytes, retention.ms, …) is read from the metadata log
in the log directory. For a folder that stands alone, give it with --set, or the
broker's settings with --config; else Kafka's defaults hold.

Exit status: 0 done (verify: nothing found), 1 something was found (verify) or is left
(repair), 2 it could not be done.`

// logOptions are the options that all log subcommands share.
type logOptions struct {
	env    *cli.Env
	fs     vfs.FS
	json   bool
	zone   string
	topics []string
	parts  []int32
	set    []string
	config string
}

// logCommand holds the offline tools.
func logCommand(env *cli.Env) *cobra.Command {
	out, own := &output{Writer: env.Stdout, terminal: onTerminal(env.Stdout)}, *env
	own.Stdout = out
	o := &logOptions{env: &own, fs: vfs.OS()}
	c := &cobra.Command{
		Use:   "log COMMAND DIR...",
		Short: "Look into, check, explain and mend log directories, without a broker",
		Long:  logHelp,
		Args:  cobra.ArbitraryArgs,
		RunE:  unknownLogCommand,
	}
	c.SuggestionsMinimumDistance = 2
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return couldNot{err} })
	f := c.PersistentFlags()
	f.BoolVar(&o.json, "json", false, "one JSON object a line instead of text")
	f.StringVar(&o.zone, "zone", "Local",
		"`ZONE` of dates in arguments and output: UTC, Local or a name as Europe/Berlin")
	f.StringSliceVar(&o.topics, "topic", nil, "only topics of these `NAMES`; * and ? match as in a shell")
	f.Int32SliceVar(&o.parts, "partition", nil, "only partitions of these `NUMBERS`")
	f.StringArrayVar(&o.set, "set", nil, "`KEY=VALUE`, a topic config that holds for all topics looked at")
	_ = c.RegisterFlagCompletionFunc("topic", o.completeTopics)
	_ = c.RegisterFlagCompletionFunc("partition", o.completePartitions)
	_ = c.RegisterFlagCompletionFunc("set", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("zone", cobra.FixedCompletions([]string{"UTC", "Local"},
		cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&o.config, "config", "", "`FILE` of the broker's settings (server.properties), for what topics do not set")
	for _, add := range []func(*logOptions) *cobra.Command{
		logListCommand, logFindCommand, logCatCommand, logVerifyCommand, logRepairCommand, logStatsCommand, logTxnsCommand,
		logExportCommand, logCacheCommand, logReportCommand,
	} {
		sub := add(o)
		if !strings.Contains(sub.Long, exitPrefix) {
			sub.Long += "\n\n" + exitPrefix + " 0 done, 2 it could not be done."
		}
		sub.Args = wantDirs
		run := sub.RunE
		sub.RunE = func(c *cobra.Command, args []string) error {
			if err := run(c, args); err != nil && out.failed == nil {
				return asCouldNot(err)
			}
			return asCouldNot(out.failed)
		}
		c.AddCommand(sub)
	}
	return c
}

// output is the standard output of a log command. A command whose output was lost did not do its work.
type output struct {
	io.Writer
	failed   error // the first error
	terminal bool
}

func (w *output) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.failed == nil {
		w.failed = err
	}
	return n, err
}

// unknownLogCommand answers "tidemark log" without a command, and with one that there is not.
func unknownLogCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := ""
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		hint = ": did you mean " + strings.Join(like, ", ") + "?"
	}
	return couldNot{fmt.Errorf("log %s: no such command%s (tidemark log --help lists them)", args[0], hint)}
}

// wantDirs wants a DIR at least.
func wantDirs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return couldNot{fmt.Errorf("give a partition's folder, a log directory or files: tidemark log %s", c.Use)}
}

// couldNot is an error that ends a log subcommand with status 2.
type couldNot struct{ error }

func (e couldNot) Unwrap() error { return e.error }

func asCouldNot(err error) error {
	var exit *cli.Exit
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return couldNot{err}
}

// exitStatus prints what ended a command, and returns the status of the process.
func exitStatus(env *cli.Env, err error) int {
	var exit *cli.Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	fmt.Fprintln(env.Stderr, "tidemark:", err)
	if errors.As(err, new(couldNot)) {
		return 2
	}
	return 1
}

// targets finds the partitions that the arguments mean, without those that the filters leave out.
func (o *logOptions) targets(args []string) ([]inspect.Target, error) {
	all, err := inspect.Resolve(o.fs, args)
	if err != nil {
		return nil, err
	}
	var out []inspect.Target
	for _, t := range all {
		ok, err := o.wanted(t)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no partition in %s%s", strings.Join(args, ", "), o.filterText())
	}
	return out, nil
}

// each does something with each partition. What the disk refuses of one is told, and the others are looked at; the
// status is then that of an error.
func (o *logOptions) each(targets []inspect.Target, do func(t inspect.Target) error) error {
	var status error
	for _, t := range targets {
		err := do(t)
		switch lost := o.env.Stdout.(*output).failed; {
		case err == nil:
		case len(targets) == 1 || lost != nil:
			return err
		default:
			o.tellFailed(t, err)
			status = &cli.Exit{Code: 2}
		}
	}
	return status
}

func (o *logOptions) tellFailed(t inspect.Target, err error) {
	fmt.Fprintf(o.env.Stderr, "tidemark: %s: %v\n", t.Name(), err)
}

func (o *logOptions) filterText() string {
	if len(o.topics)+len(o.parts) == 0 {
		return ""
	}
	return " that --topic and --partition let through"
}

func (o *logOptions) wanted(t inspect.Target) (bool, error) {
	match := len(o.topics) == 0
	for _, pattern := range o.topics {
		ok, err := path.Match(pattern, t.Topic)
		if err != nil {
			return false, fmt.Errorf("--topic %s: %w", pattern, err)
		}
		match = match || ok
	}
	number := len(o.parts) == 0
	for _, p := range o.parts {
		number = number || p == t.Partition
	}
	return match && number, nil
}

// settings reads --config and --set.
func (o *logOptions) settings() (*inspect.Settings, error) {
	var properties map[string]string
	if o.config != "" {
		data, err := os.ReadFile(o.config)
		if err != nil {
			return nil, err
		}
		if properties, err = config.ParseProperties(data); err != nil {
			return nil, fmt.Errorf("%s: %w", o.config, err)
		}
	}
	overrides := make(map[string]string)
	for _, pair := range o.set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("--set %s: want KEY=VALUE", pair)
		}
		overrides[key] = value
	}
	return inspect.NewSettings(o.fs, properties, overrides)
}

// location is the zone of --zone.
func (o *logOptions) location() (*time.Location, error) {
	zone, err := time.LoadLocation(o.zone)
	if err != nil {
		return nil, fmt.Errorf("--zone %s: no such time zone", o.zone)
	}
	return zone, nil
}

// instant reads a time argument and says on the error output how it was understood.
func (o *logOptions) instant(text string, zone *time.Location) (int64, error) {
	t, err := inspect.ParseTime(text, zone, o.env.Now())
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(o.env.Stderr, "time: %s (%d ms)\n", inspect.FormatTime(t.Ms, zone), t.Ms)
	if t.Warning != "" {
		fmt.Fprintln(o.env.Stderr, "warning:", t.Warning)
	}
	return t.Ms, nil
}

// humanBytes is a size for people.
func humanBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, letter := float64(n)/unit, 0
	for size >= unit && letter < 4 {
		size, letter = size/unit, letter+1
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[letter])
}

// onTerminal reports whether a stream is a terminal that can show progress.
func onTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		return o.terminal
	}
	return os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// colored reports whether a stream is a terminal that wants colours.
func colored(w io.Writer) bool { return onTerminal(w) && os.Getenv("NO_COLOR") == "" }
