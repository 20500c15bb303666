package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logCacheHelp = `Cache shows how much of the files is in the system's page cache, by kind and, with --files,
for each file: a broker that looks something up waits for the disk where an index page is not.
The files are not read.

Below 90 % of the index pages it says which settings would make the indexes smaller, and by how
much, computed from this directory (which is read for that).

Linux tells the residency of a file only to its owner and to those who may write to it; for other
files, and on other systems, it is unknown.

--json: one object of type "residency" a partition.`

const logCacheExample = `  sudo -u kafka tidemark log cache /var/lib/kafka
  tidemark log cache --files --topic orders /var/lib/kafka`

func logCacheCommand(o *logOptions) *cobra.Command {
	var files bool
	c := &cobra.Command{
		Use: "cache DIR...", Short: "Show how much of indexes and logs is in the page cache",
		Long: logCacheHelp, Example: logCacheExample,
		RunE: func(_ *cobra.Command, args []string) error { return o.cache(args, files) },
	}
	c.Flags().BoolVar(&files, "files", false, "show each file")
	return c
}

func (o *logOptions) cache(args []string, files bool) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	total := map[string]*inspect.KindResidency{}
	var cold []inspect.Target
	err = o.each(targets, func(t inspect.Target) error {
		r, err := o.residency(t, files)
		if err == nil && addResidency(total, r) {
			cold = append(cold, t)
		}
		return err
	})
	if o.json || len(total) == 0 {
		return err
	}
	for _, kind := range []string{"index", "timeindex", "txnindex", "log"} {
		if k := total[kind]; k != nil && k.Files > 0 {
			fmt.Fprintf(o.env.Stdout, "%-9s  %6d files  %10s  %s\n", kind, k.Files, humanBytes(k.Bytes), residencyText(*k))
		}
	}
	return errors.Join(err, o.printAdvice(cold, settings))
}

// residency asks for the residency of a partition's files, and prints them as they come: with --json all of them.
func (o *logOptions) residency(t inspect.Target, files bool) (*inspect.Residency, error) {
	if !o.json {
		return inspect.CacheResidency(o.fs, t, func(f inspect.FileResidency) error {
			if !files {
				return nil
			}
			return printFileResidency(o.env.Stdout, t, f)
		})
	}
	line := startLine(o.env.Stdout, residencyHead{"residency", t.Topic, t.Partition, t.Dir}, "files")
	r, err := inspect.CacheResidency(o.fs, t, func(f inspect.FileResidency) error { return line.element(f) })
	if err != nil {
		return nil, line.fail(err)
	}
	return r, line.end(residencyTail{r.Kinds})
}

// residencyHead and residencyTail are an [inspect.Residency] before and behind its files.
type residencyHead struct {
	Type      string `json:"type"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Dir       string `json:"dir"`
}

type residencyTail struct {
	Kinds []inspect.KindResidency `json:"kinds"`
}

// addResidency adds a partition to the totals, and reports whether its indexes are below the goal.
func addResidency(total map[string]*inspect.KindResidency, r *inspect.Residency) (cold bool) {
	for _, k := range r.Kinds {
		sum := total[k.Kind]
		if sum == nil {
			sum = &inspect.KindResidency{Kind: k.Kind}
			total[k.Kind] = sum
		}
		sum.Files += k.Files
		sum.Bytes += k.Bytes
		sum.Pages += k.Pages
		sum.Resident += k.Resident
		sum.Unknown += k.Unknown
		if k.Kind != "log" && k.Pages > 0 && k.Percent() < inspect.ResidencyGoal {
			cold = true
		}
	}
	return cold
}

func residencyText(k inspect.KindResidency) string {
	text := "unknown"
	if k.Pages > 0 {
		text = fmt.Sprintf("%.1f%% resident", k.Percent())
	} else if k.Unknown == 0 {
		return "empty"
	}
	if k.Unknown > 0 && k.Pages > 0 {
		text += fmt.Sprintf(" (%d files unknown)", k.Unknown)
	}
	return text
}

func printFileResidency(w io.Writer, t inspect.Target, f inspect.FileResidency) (err error) {
	name := filepath.Join(filepath.Base(t.Dir), filepath.Base(f.File))
	switch {
	case f.Resident < 0:
		_, err = fmt.Fprintf(w, "%s  %s  unknown: %s\n", name, humanBytes(f.Bytes), f.Why)
	case f.Pages == 0:
		_, err = fmt.Fprintf(w, "%s  empty\n", name)
	default:
		_, err = fmt.Fprintf(w, "%s  %s  %d of %d pages  %s\n", name, humanBytes(f.Bytes), f.Resident, f.Pages,
			strip(f.Strip))
	}
	return err
}

// strip draws shares in percent as blocks.
func strip(parts []int8) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteRune([]rune(" ░▒▓█")[(int(p)+24)/25])
	}
	return b.String()
}

func (o *logOptions) printAdvice(cold []inspect.Target, settings *inspect.Settings) error {
	if len(cold) == 0 {
		return nil
	}
	bar := o.startProgress("cache", cold)
	defer bar.end()
	for _, t := range cold {
		s, err := inspect.Compute(o.fs, t, settings, o.env.Now(), bar.add)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.env.Stdout, "%s: less than %d%% of its index pages are resident\n", t.Name(), inspect.ResidencyGoal)
		for _, a := range inspect.CacheAdvice(s) {
			fmt.Fprintf(o.env.Stdout, "  %s: indexes of %s instead of %s; %s\n", a.Setting, humanBytes(a.IndexBytes),
				humanBytes(a.Now), a.Cost)
		}
	}
	return nil
}
