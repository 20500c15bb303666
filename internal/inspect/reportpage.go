package inspect

import (
	_ "embed" // the style
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

//go:embed report.css
var reportStyle string

// markup is HTML: made of numbers, and of text that was escaped.
type markup string

// page is HTML in the making. (A template of html/template would keep every method of every type in the binary, a
// quarter of its size.)
type page struct{ strings.Builder }

// put writes markup with a verb for each value: those that are not markup or numbers are escaped.
func (p *page) put(format markup, values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case markup, int, int32, int64:
		default:
			values[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	fmt.Fprintf(p, string(format), values...)
}

// write makes the page and writes it. Errors are the writer's.
func (r *report) write(w io.Writer) error {
	p := &page{}
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%v: log report</title>
<style>
%v</style>
</head>
<body>
<main>
<h1>Log report</h1>
<p class="soft">made %v by tidemark log report, of <code>%v</code></p>
`, r.Title, markup(reportStyle), r.Made, r.Title)
	r.tiles(p)
	r.findings(p)
	r.partitions(p)
	for _, one := range r.Drawn {
		one.write(p)
	}
	p.put("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

func (r *report) tiles(p *page) {
	p.put("<div class=\"tiles\">\n")
	tile := func(value any, what string) { p.put("<div class=\"tile\"><b>%v</b>%v</div>\n", value, what) }
	tile(len(r.Partitions), "partitions")
	tile(r.Summary.Segments, "segments")
	tile(thousands(r.Summary.Records), "records")
	tile(sizeOf(r.LogBytes), "of log")
	tile(sizeOf(r.IndexBytes), "of index entries")
	if r.Summary.Found() == 0 {
		p.put("<div class=\"tile\"><b class=\"good\">none</b>findings</div>\n")
	} else {
		counted := r.Summary.Findings
		p.put("<div class=\"tile\"><b class=\"error\">%v / %v / %v</b>errors / warnings / notes</div>\n",
			counted[Error], counted[Warning], counted[Note])
	}
	p.put("</div>\n")
}

func (r *report) findings(p *page) {
	p.put("\n<section class=\"card\">\n<h2>Findings</h2>\n")
	if len(r.Findings) == 0 {
		p.put("<p class=\"good\">Nothing found: every batch, index and small file fits the others.</p>\n</section>\n")
		return
	}
	p.put(`<div class="scroll"><table class="stack">
<tr><th>Severity</th><th>What</th><th>Where</th><th>Breaks</th><th>Repair</th></tr>
`)
	for _, f := range r.Findings {
		p.put("<tr><td class=\"%v\">%v</td><td>%v: %v", f.Severity, f.Severity, f.Kind, f.What)
		if f.Count > 1 {
			p.put(" (the first of %v)", f.Count)
		}
		p.put("</td>\n<td><code>%v</code>", f.File)
		if f.Pos >= 0 {
			p.put(" position %v", f.Pos)
		}
		if f.Offset >= 0 {
			p.put(" offset %v", f.Offset)
		}
		p.put("</td><td>%v</td><td>%v</td></tr>\n", f.Breaks, f.Repair)
	}
	p.put("</table></div>\n")
	if r.More > 0 {
		p.put("<p class=\"soft\">and %v more: see tidemark log verify</p>\n", r.More)
	}
	p.put("</section>\n")
}

func (r *report) partitions(p *page) {
	p.put(`
<section class="card">
<h2>Partitions</h2>
<div class="scroll"><table>
<tr><th>Partition</th><th class="n">Segments</th><th class="n">Records</th><th class="n">Log</th>` +
		`<th>Largest time</th><th class="n">Out of order</th><th class="n">Scan p99 by offset</th>` +
		`<th class="n">by time</th><th class="n">Findings</th></tr>
`)
	for _, one := range r.Partitions {
		p.put("<tr><td>%v", one.Target.Name())
		if one.Target.Mark != "" {
			p.put(" (%v)", one.Target.Mark)
		}
		s := one.Stats
		p.put("</td>")
		p.numbers(len(s.Segments), thousands(s.Records), sizeOf(s.LogBytes))
		p.put("<td>%v</td>", r.time(s.Timestamps.Largest))
		p.numbers(thousands(s.Timestamps.OutOfOrder), sizeOf(s.ScanByOffset.P99), sizeOf(s.ScanByTime.P99), one.Findings)
		p.put("</tr>\n")
	}
	p.put("</table></div>\n")
	if len(r.Drawn) < len(r.Partitions) {
		p.put("<p class=\"soft\">%v of them are drawn below: those with findings, then the largest.</p>\n", len(r.Drawn))
	}
	p.put("</section>\n")
}

// numbers writes cells of a table that are aligned to the right.
func (p *page) numbers(values ...any) {
	for _, v := range values {
		p.put("<td class=\"n\">%v</td>", v)
	}
}

// write draws one partition.
func (one *partitionReport) write(p *page) {
	p.put(`
<section class="card">
<h2>%v</h2>
<p class="soft"><code>%v</code></p>
<h3>Offsets against time</h3>
%v
`, one.Target.Name(), one.Target.Dir, one.OffsetTime())
	p.put(`<p class="soft key"><span><i style="background:var(--accent)"></i>batch</span>` +
		`<span><i style="background:var(--late)"></i>older than one before</span>` +
		`<span><i style="background:var(--bad)"></i>far outside</span></p>
`)
	one.Stats.Timestamps.write(p)
	p.put(`<h3>Bytes that look-ups scan</h3>
<div class="pair"><div>%v</div><div>%v</div></div>
<div class="pair">
<div><h3>Page cache</h3>%v</div>
<div><h3>Retention</h3>%v
`, one.ScanByOffset(), one.ScanByTime(), one.Heat(), one.Timeline())
	one.retention(p)
	p.put("</div>\n</div>\n")
	one.segments(p)
	p.put("</section>\n")
}

// write says in words how far timestamps are out of order.
func (t *Timestamps) write(p *page) {
	p.put("<p class=\"soft\">%v records move the largest timestamp, %v are out of order", thousands(t.MovesMaximum),
		thousands(t.OutOfOrder))
	if t.OutOfOrder > 0 {
		p.put(", the worst by %v at offset %v", time.Duration(t.WorstLagMs)*time.Millisecond, t.WorstLagOffset)
	}
	p.put(".")
	if t.None > 0 {
		p.put(" %v have no timestamp.", thousands(t.None))
	}
	odd := func(o Outlier, what string) {
		if o.Count > 0 {
			p.put(" <span class=\"warning\">%v %v</span> (first: offset %v).", thousands(o.Count), what, o.Offset)
		}
	}
	odd(t.Future, "lie in the future")
	odd(t.Seconds, "look like seconds")
	odd(t.Microseconds, "look like microseconds")
	p.put("</p>\n")
}

// retention says in words what goes next.
func (one *partitionReport) retention(p *page) {
	r := one.Stats.Retention
	p.put("<p class=\"soft\">cleanup.policy=%v retention.ms=%v retention.bytes=%v.", r.Policy, r.RetentionMs,
		r.RetentionBytes)
	if r.Expired > 0 {
		p.put(" The next pass deletes %v segments (%v).", r.Expired, r.ExpiredReason)
	}
	if r.NextBase >= 0 {
		p.put(" Then segment %v goes on %v.", r.NextBase, one.report.time(r.NextDueMs))
	}
	if r.HeldBy >= 0 {
		p.put(" Segment %v holds back older data behind it.", r.HeldBy)
	}
	p.put("</p>")
}

func (one *partitionReport) segments(p *page) {
	p.put(`<details><summary>%v segments</summary>
<div class="scroll"><table>
<tr><th>Base offset</th><th class="n">Log</th><th class="n">Offset entries</th><th class="n">Time entries</th>`+
		`<th class="n">Scan p99</th><th>Largest time</th></tr>
`, len(one.Stats.Segments))
	for i, s := range one.Stats.Segments {
		if i == maxListed {
			p.put(`<tr><td colspan="6">… and %v more: tidemark log stats --segments</td></tr>`, len(one.Stats.Segments)-i)
			break
		}
		p.put("<tr><td>%v</td>", s.BaseOffset)
		p.numbers(sizeOf(s.SizeBytes), s.OffsetEntries, s.TimeEntries, sizeOf(s.ScanP99))
		p.put("<td>%v</td></tr>\n", one.report.time(s.LargestTimestamp))
	}
	p.put("</table></div></details>\n")
}
