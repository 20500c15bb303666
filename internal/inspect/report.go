package inspect

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"tidemark/vfs"
)

// ReportOptions say what a report shows.
type ReportOptions struct {
	Settings *Settings // required
	Now      time.Time
	Zone     *time.Location
	Title    string // what was looked at
	// MaxPartitions bounds the partitions that are drawn; the others are in the table only.
	MaxPartitions int
	Progress      func(bytes int64) // may be nil
}

// report is what the page shows.
type report struct {
	Title      string
	Made       string
	Summary    *Summary
	LogBytes   int64
	IndexBytes int64
	Partitions []*partitionReport
	Drawn      []*partitionReport
	Findings   []Finding
	More       int64 // findings that are not listed
	zone       *time.Location
	nowMs      int64
}

func (r *report) time(ms int64) string { return FormatTime(ms, r.zone) }

type partitionReport struct {
	Target    Target
	Stats     *Statistics
	Residency *Residency
	Findings  int
	report    *report
}

// maxListed bounds the findings of the page, and the segments of a partition.
const maxListed = 500

// Report writes one page of HTML with pictures of the targets. The page needs nothing else: no script, no font and no
// request. Errors are the disk's and the writer's.
func Report(ctx context.Context, fsys vfs.FS, targets []Target, o ReportOptions, w io.Writer) error {
	r := &report{Title: o.Title, Made: FormatTime(o.Now.UnixMilli(), o.Zone), zone: o.Zone, nowMs: o.Now.UnixMilli()}
	found := make(map[string]int)
	summary, err := Verify(ctx, fsys, targets,
		VerifyOptions{Settings: o.Settings, Progress: o.Progress, Report: func(f Finding) {
			found[f.Topic+" "+itoa(int64(f.Partition))]++
			if len(r.Findings) < maxListed {
				r.Findings = append(r.Findings, f)
			} else {
				r.More++
			}
		}})
	if err != nil {
		return err
	}
	r.Summary = summary
	for _, t := range targets {
		p := &partitionReport{Target: t, report: r, Findings: found[t.Topic+" "+itoa(int64(t.Partition))]}
		if p.Stats, err = Compute(fsys, t, o.Settings, o.Now, nil); err != nil {
			return err
		}
		r.LogBytes += p.Stats.LogBytes
		r.IndexBytes += p.Stats.IndexBytes
		r.Partitions = append(r.Partitions, p)
	}
	r.Drawn = slices.Clone(r.Partitions)
	slices.SortStableFunc(r.Drawn, func(a, b *partitionReport) int {
		return cmp.Or(cmp.Compare(b.Findings, a.Findings), cmp.Compare(b.Stats.LogBytes, a.Stats.LogBytes))
	})
	r.Drawn = r.Drawn[:min(len(r.Drawn), o.MaxPartitions)]
	for _, p := range r.Drawn {
		var files fileSample
		if p.Residency, err = CacheResidency(fsys, p.Target, files.add); err != nil {
			return err
		}
		p.Residency.Files = files.kept
	}
	return r.write(w)
}

// sizeOf is a size for people.
func sizeOf(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, i := float64(n), 0
	for size >= 1024 && i < len(units)-1 {
		size, i = size/1024, i+1
	}
	if i == 0 {
		return itoa(n) + " B"
	}
	return fixed(size, 1) + " " + units[i]
}

// thousands is a number with its digits in groups.
func thousands(n int64) string {
	text := itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}
