package inspect

import (
	"fmt"
	"html"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int64) string                { return strconv.FormatInt(n, 10) }
func fixed(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }
func scale(v, from, to, size int64) float64 {
	return float64(size) * float64(v-from) / float64(max(to-from, 1))
}
func svgText(s string, args ...any) string    { return html.EscapeString(fmt.Sprintf(s, args...)) }
func (p *partitionReport) at(ms int64) string { return FormatTime(ms, p.report.zone) }

// drawing is an SVG picture.
type drawing struct{ strings.Builder }

// The widths of pictures, in the units of their coordinates: as wide as the page, or half of that.
const (
	drawingWidth = 720
	halfWidth    = 360
)

func newDrawing(width, height int64, title string) *drawing {
	d := &drawing{}
	class := ""
	if width == drawingWidth {
		class = ` class="wide"`
	}
	fmt.Fprintf(d, `<svg%s viewBox="0 0 %d %d" role="img" aria-label="%s"><title>%s</title>`, class, width, height,
		html.EscapeString(title), html.EscapeString(title))
	return d
}

func (d *drawing) end() markup {
	d.WriteString("</svg>")
	return markup(d.String())
}

func (d *drawing) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor,
		html.EscapeString(text))
}

func (d *drawing) rect(x, y, w, h float64, class, title string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%s</title></rect>`, x, y,
		max(w, 0.5), h, class,
		html.EscapeString(title))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// plotTop to plotBottom is where curves are; the axis' numbers are below.
const (
	plotTop, plotBottom = 22, 230
	plotHeight          = plotBottom - plotTop
)

// OffsetTime draws offsets against time: a dot for a batch, late ones apart, segments as bands. Times far from the
// others are drawn at the edge, so that the rest keeps its shape.
func (p *partitionReport) OffsetTime() markup {
	samples := p.Stats.Samples
	d := newDrawing(drawingWidth, 256, fmt.Sprintf("Offsets against time of %s", p.Target.Name()))
	if len(samples) == 0 || len(p.Stats.Segments) == 0 {
		d.text(drawingWidth/2, 120, "label", "middle", "no records with timestamps")
		return d.end()
	}
	from, to := p.Stats.Segments[0].BaseOffset, p.Stats.Segments[len(p.Stats.Segments)-1].NextOffset
	low, high := usualRange(samples)
	for i, b := range p.bands() {
		x := scale(b.from, from, to, drawingWidth)
		class := "band"
		if i%2 == 1 {
			class = "band odd"
		}
		d.rect(x, plotTop, scale(b.to, from, to, drawingWidth)-x, plotHeight, class, b.title)
	}
	outside := 0
	for _, s := range samples {
		x, class := scale(s.Offset, from, to, drawingWidth), "dot"
		if s.Late {
			class = "dot late"
		}
		y := plotBottom - scale(s.Timestamp, low, high, plotHeight)
		if s.Timestamp < low || s.Timestamp > high {
			y, class = min(max(y, plotTop), plotBottom), "dot outlier"
			outside++
			fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="4" class="%s"><title>%s</title></circle>`, x, y, class,
				svgText("offset %d: %s", s.Offset, p.at(s.Timestamp)))
			continue
		}
		fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="2" class="%s"/>`, x, y, class)
	}
	d.text(2, plotTop-3, "label", "start", p.at(high))
	d.text(2, plotBottom-3, "label", "start", p.at(low))
	d.text(0, plotBottom+20, "label", "start", itoa(from))
	d.text(drawingWidth, plotBottom+20, "label", "end", itoa(to))
	if outside > 0 {
		d.text(drawingWidth/2, plotBottom+20, "label", "middle", fmt.Sprintf("%d far outside, drawn at the edge", outside))
	}
	return d.end()
}

// band is the offsets [from, to) of a segment, or of some that follow each other.
type band struct {
	from, to int64
	title    string
}

// maxBands bounds the bands of a picture: more would be narrower than a line.
const maxBands = 256

func (p *partitionReport) bands() (out []band) {
	all := p.Stats.Segments
	together := (len(all) + maxBands - 1) / maxBands
	for some := range slices.Chunk(all, max(together, 1)) {
		first, last := some[0], some[len(some)-1]
		bytes, largest, what := int64(0), int64(-1), fmt.Sprintf("segment %d", first.BaseOffset)
		for _, g := range some {
			bytes, largest = bytes+g.SizeBytes, max(largest, g.LargestTimestamp)
		}
		if len(some) > 1 {
			what = fmt.Sprintf("%d segments, %d to %d", len(some), first.BaseOffset, last.BaseOffset)
		}
		out = append(out, band{first.BaseOffset, last.NextOffset, fmt.Sprintf("%s: offsets %d to %d, %s, largest time %s",
			what, first.BaseOffset, last.NextOffset-1, sizeOf(bytes), p.at(largest))})
	}
	return out
}

// usualRange is the range of times that leaves out what lies far from the middle half.
func usualRange(samples []Sample) (low, high int64) {
	times := make([]int64, len(samples))
	for i, s := range samples {
		times[i] = s.Timestamp
	}
	slices.Sort(times)
	q1, q3 := times[len(times)/4], times[len(times)*3/4]
	reach := max((q3-q1)*5, 60_000)
	low, high = times[0], times[len(times)-1]
	if low < q1-reach {
		low = times[slices.IndexFunc(times, func(t int64) bool { return t >= q1-reach })]
	}
	if high > q3+reach {
		i := slices.IndexFunc(times, func(t int64) bool { return t > q3+reach })
		high = times[max(i-1, 0)]
	}
	return low, max(high, low+1)
}

// ScanByOffset draws what look-ups by offset scan.
func (p *partitionReport) ScanByOffset() markup {
	return p.scans("by offset", p.Stats.ScanByOffset)
}

// ScanByTime draws what look-ups by time scan.
func (p *partitionReport) ScanByTime() markup { return p.scans("by time", p.Stats.ScanByTime) }

// scans draws a histogram; bars far above the index interval, where it is known, stand out.
func (p *partitionReport) scans(what string, h Distribution) markup {
	d := newDrawing(halfWidth, 160, "What look-ups "+what+" scan in "+p.Target.Name())
	p.histogram(d, what, h, 0, halfWidth)
	return d.end()
}

func (p *partitionReport) histogram(d *drawing, what string, h Distribution, left, width float64) {
	const top, bottom = 24.0, 140.0
	d.text(left, 14, "label strong", "start",
		fmt.Sprintf("%s: half up to %s, 99%% up to %s", what, sizeOf(h.P50), sizeOf(h.P99)))
	if h.Count == 0 {
		d.text(left+width/2, 80, "label", "middle", "none")
		return
	}
	most := int64(1)
	for _, b := range h.Buckets {
		most = max(most, b.Count)
	}
	step := width / float64(len(h.Buckets))
	for i, b := range h.Buckets {
		tall := (bottom - top) * float64(b.Count) / float64(most)
		class := "bar"
		if b.UpTo > 2*p.Stats.IndexIntervalBytes && p.Stats.IntervalKnown {
			class = "bar long"
		}
		d.rect(left+float64(i)*step, bottom-max(tall, 1), step*0.85, max(tall, 1), class,
			fmt.Sprintf("%s look-ups scan up to %s", thousands(b.Count), sizeOf(b.UpTo)))
	}
	d.line(left, bottom, left+width, bottom, "axis")
	d.text(left, bottom+14, "label", "start", sizeOf(h.Buckets[0].UpTo))
	d.text(left+width, bottom+14, "label", "end", sizeOf(h.Max))
}

// Heat draws the residency of files: a row for each kind, a part for each file or part of it.
func (p *partitionReport) Heat() markup {
	const row, left, right = 22, 60, 92
	d := newDrawing(halfWidth, int64(row*len(residencyKinds)+4), "Page cache residency of "+p.Target.Name())
	for i, kind := range residencyKinds {
		y := float64(i * row)
		d.text(0, y+15, "label", "start", kind)
		files := slices.DeleteFunc(slices.Clone(p.Residency.Files),
			func(f FileResidency) bool { return f.Kind != kind || f.Pages == 0 })
		d.text(halfWidth, y+15, "label", "end", percentText(p.Residency.Kinds[i]))
		cells := heatCells(files)
		if len(cells) == 0 {
			continue
		}
		width := float64(halfWidth-left-right) / float64(len(cells))
		for j, c := range cells {
			d.rect(left+float64(j)*width, y+3, width, row-6, c.class, c.title)
		}
	}
	return d.end()
}

func percentText(k KindResidency) string {
	switch {
	case k.Files == k.Unknown && k.Files > 0:
		return "unknown"
	case k.Pages == 0:
		return "empty"
	}
	return fixed(k.Percent(), 0) + " % resident"
}

type heatCell struct{ class, title string }

// maxCells bounds the parts of a heat strip.
const maxCells = 256

// fileSample keeps some of the files of each kind, evenly spread: all of them, or half of maxCells at least.
type fileSample struct {
	kept         []FileResidency
	first        int // in kept, of the kind at hand
	seen, stride int
}

func (s *fileSample) add(f FileResidency) error {
	if n := len(s.kept); n == 0 || s.kept[n-1].Kind != f.Kind {
		s.first, s.seen, s.stride = n, 0, 1
	}
	if s.seen++; (s.seen-1)%s.stride != 0 {
		return nil
	}
	s.kept = append(s.kept, f)
	if len(s.kept)-s.first <= maxCells {
		return nil
	}
	thin := s.kept[:s.first]
	for i := s.first; i < len(s.kept); i += 2 {
		thin = append(thin, s.kept[i])
	}
	s.kept, s.stride = thin, 2*s.stride
	return nil
}

func heatCells(files []FileResidency) (out []heatCell) {
	for _, f := range files {
		name := filepath.Base(f.File)
		if f.Resident < 0 {
			out = append(out, heatCell{"heat unknown", name + ": unknown, " + f.Why})
			continue
		}
		parts := f.Strip
		if len(files)*len(parts) > maxCells {
			parts = []int8{int8(100 * f.Resident / f.Pages)}
		}
		for _, percent := range parts {
			out = append(out, heatCell{"heat h" + itoa(int64(percent+9)/10),
				fmt.Sprintf("%s: %d of %d pages", name, f.Resident, f.Pages)})
		}
	}
	if len(out) > maxCells {
		step := (len(out) + maxCells - 1) / maxCells
		kept := out[:0]
		for i := 0; i < len(out); i += step {
			kept = append(kept, out[i])
		}
		out = kept
	}
	return out
}

// Timeline draws, for each segment, the time from its newest record until retention may delete it, and the present.
func (p *partitionReport) Timeline() markup {
	segments := p.Stats.Segments
	const most, row = 24, 9
	shown := segments[:min(len(segments), most)]
	d := newDrawing(halfWidth, int64(len(shown)*row+26), "Retention of "+p.Target.Name())
	if p.Stats.Retention.RetentionMs < 0 || !strings.Contains(p.Stats.Retention.Policy, "delete") || len(shown) == 0 {
		d.text(halfWidth/2, 16, "label", "middle", "nothing is deleted by age")
		return d.end()
	}
	low, high := p.report.nowMs, p.report.nowMs
	for _, g := range shown {
		low, high = min(low, max(g.LargestTimestamp, 0)),
			max(high, min(g.DueMs, p.report.nowMs+10*p.Stats.Retention.RetentionMs))
	}
	for i, g := range shown {
		x, end := scale(max(g.LargestTimestamp, low), low, high, halfWidth), scale(min(g.DueMs, high), low, high, halfWidth)
		class := "due"
		if g.DueMs <= p.report.nowMs {
			class = "due over"
		} else if g.DueMs > g.LargestTimestamp+p.Stats.Retention.RetentionMs+1 {
			class = "due held"
		}
		d.rect(x, float64(i*row)+2, end-x, row-2, class,
			fmt.Sprintf("segment %d: newest record %s, may go on %s", g.BaseOffset,
				p.at(g.LargestTimestamp), p.at(g.DueMs)))
	}
	now := scale(p.report.nowMs, low, high, halfWidth)
	d.line(now, 0, now, float64(len(shown)*row+4), "now")
	anchor := "middle"
	if now < 20 {
		anchor = "start"
	} else if now > halfWidth-20 {
		anchor = "end"
	}
	d.text(now, float64(len(shown)*row+18), "label strong", anchor, "now")
	if len(segments) > most {
		d.text(halfWidth, float64(len(shown)*row+18), "label", "end",
			fmt.Sprintf("the oldest %d of %d segments", most, len(segments)))
	}
	return d.end()
}
