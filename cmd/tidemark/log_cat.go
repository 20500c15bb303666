package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logCatHelp = `Cat prints records. --from and --to bound them, [from, to): a number that is an offset,
or time: and a time in any form that "tidemark log find" takes. A time stands for the offset
of the first record at that time or later.

--format text   offset, time, key and value, with tabs between; null is null, other than text in hex
--format json   one object a record (the same as --json)
--format hex    a hex dump of key and value

--isolation read_committed leaves out aborted records and what is not yet decided.
What is damaged is told on the error output and passed over.`

const logCatExample = `  tidemark log cat --from 1000 --to 1100 /var/lib/kafka/orders-0
  tidemark log cat --from "time:2h ago" --grep 'error|fatal' /var/lib/kafka/logs-3
  tidemark log cat --format json --isolation read_committed --limit 10 /var/lib/kafka/orders-0`

// catOptions are the options of cat.
type catOptions struct {
	from, to, key, grep, format, isolation string
	limit                                  int64
	control                                bool
}

var (
	catFormats = []string{"text", "json", "hex"}
	isolations = []string{"read_uncommitted", "read_committed"}
)

func logCatCommand(o *logOptions) *cobra.Command {
	var a catOptions
	c := &cobra.Command{
		Use: "cat DIR...", Short: "Print records of a range of offsets or times",
		Long: logCatHelp, Example: logCatExample,
		RunE: func(_ *cobra.Command, args []string) error { return o.cat(args, a) },
	}
	f := c.Flags()
	f.StringVar(&a.from, "from", "", "first OFFSET or time:TIME")
	f.StringVar(&a.to, "to", "", "OFFSET or time:TIME to end before")
	f.StringVar(&a.key, "key", "", "only records whose key matches this regular expression")
	f.StringVar(&a.grep, "grep", "", "only records with a match of this regular expression in key, value or a header")
	f.StringVar(&a.format, "format", "text", strings.Join(catFormats, ", "))
	f.StringVar(&a.isolation, "isolation", isolations[0], strings.Join(isolations, " or "))
	f.Int64Var(&a.limit, "limit", 0, "end after so many records of a partition (0: no limit)")
	f.BoolVar(&a.control, "control", false, "show control records too")
	noFiles(c, "from", "to", "key", "grep", "limit")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(catFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("isolation", cobra.FixedCompletions(isolations, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *logOptions) cat(args []string, a catOptions) error {
	if !slices.Contains(catFormats, a.format) || !slices.Contains(isolations, a.isolation) {
		return fmt.Errorf("--format wants %s; --isolation %s",
			strings.Join(catFormats, ", "), strings.Join(isolations, " or "))
	}
	if a.limit < 0 {
		return fmt.Errorf("--limit %d: want a number from 0 on", a.limit)
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
	wanted, err := o.catWanted(a, zone)
	if err != nil {
		return err
	}
	bar := o.startProgress("cat", targets)
	defer bar.end()
	wanted.Progress = bar.add
	out := bufio.NewWriterSize(o.env.Stdout, 64<<10)
	return o.each(targets, func(t inspect.Target) error {
		cfg, _ := settings.Topic(t)
		prefix := ""
		if len(targets) > 1 {
			prefix = t.Name() + "\t"
		}
		err := inspect.Cat(o.fs, t, cfg, wanted, func(r inspect.Record) error {
			return printRecord(out, prefix, t, r, a.format == "json" || o.json, a.format == "hex", zone)
		})
		return errors.Join(err, out.Flush())
	})
}

func (o *logOptions) catWanted(a catOptions, zone *time.Location) (w inspect.CatOptions, err error) {
	if w.Range, err = o.bounds(a.from, a.to, zone); err != nil {
		return w, err
	}
	w.Committed, w.Control, w.Limit = a.isolation == "read_committed", a.control, a.limit
	w.Warn = func(text string) { fmt.Fprintln(o.env.Stderr, "warning:", text) }
	if a.key != "" {
		if w.Keys, err = regexp.Compile(a.key); err != nil {
			return w, fmt.Errorf("--key: %w", err)
		}
	}
	if a.grep != "" {
		if w.Grep, err = regexp.Compile(a.grep); err != nil {
			return w, fmt.Errorf("--grep: %w", err)
		}
	}
	return w, nil
}

// bounds reads --from and --to.
func (o *logOptions) bounds(from, to string, zone *time.Location) (r inspect.Range, err error) {
	if r.FromOffset, r.FromTime, err = o.bound("--from", from, zone); err != nil {
		return r, err
	}
	if r.ToOffset, r.ToTime, err = o.bound("--to", to, zone); err != nil {
		return r, err
	}
	if backwards(r.FromOffset, r.ToOffset) || backwards(r.FromTime, r.ToTime) {
		return r, fmt.Errorf("--from %s lies behind --to %s: the range is empty", from, to)
	}
	return r, nil
}

func backwards(from, to *int64) bool { return from != nil && to != nil && *from > *to }

func (o *logOptions) bound(flag, text string, zone *time.Location) (offset, ms *int64, err error) {
	if text == "" {
		return nil, nil, nil
	}
	if at, ok := strings.CutPrefix(text, "time:"); ok {
		n, err := o.instant(at, zone)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", flag, err)
		}
		return nil, &n, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, nil, fmt.Errorf("%s %s: want an offset, or time:TIME", flag, text)
	}
	return &n, nil, nil
}

// catLine is a record with its partition, as JSON.
type catLine struct {
	Type      string `json:"type"` // "record"
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	inspect.Record
}

func printRecord(w io.Writer, prefix string, t inspect.Target, r inspect.Record, asJSON, asHex bool,
	zone *time.Location) error {
	if asJSON {
		return writeJSON(w, catLine{"record", t.Topic, t.Partition, r})
	}
	if asHex {
		_, err := fmt.Fprintf(w, "%soffset %d  %s  key %s\n%svalue %s\n%s", prefix, r.Offset,
			inspect.FormatTime(r.Timestamp, zone),
			sizeText(r.Key), hex.Dump(r.Key), sizeText(r.Value), hex.Dump(r.Value))
		return err
	}
	control := ""
	if r.Control != "" {
		control = "\tcontrol " + r.Control
	}
	_, err := fmt.Fprintf(w, "%s%d\t%s\t%s\t%s%s\n", prefix, r.Offset, inspect.FormatTime(r.Timestamp, zone), plain(r.Key),
		plain(r.Value), control)
	return err
}

func sizeText(b inspect.Text) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%d bytes", len(b))
}

// plain is text as it is, where it holds no tabs, line ends or other control characters.
func plain(b inspect.Text) string {
	if b == nil {
		return "null"
	}
	switch {
	case !utf8.Valid(b):
		return "0x" + hex.EncodeToString(b)
	case !bytes.ContainsFunc(b, isControl):
		return string(b)
	}
	quoted := strconv.Quote(string(b))
	if strings.Contains(quoted, `\x`) {
		return "0x" + hex.EncodeToString(b)
	}
	return quoted
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
