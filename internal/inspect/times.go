package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A number outside these bounds is probably not in milliseconds: 10^11 ms is in 1973, 10^14 ms in 5138.
const (
	leastPlausibleMs    = 100_000_000_000
	greatestPlausibleMs = 100_000_000_000_000
)

// Instant is a time that was asked for.
type Instant struct {
	Ms int64 // since 1970
	// Warning is set when the argument probably means something else, as seconds where milliseconds are meant.
	Warning string
}

// timeLayouts are the forms of a date that a zone has to be stated for, the most precise first.
var timeLayouts = []string{
	"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

// ParseTime reads a time argument: milliseconds since 1970; RFC 3339; a date with or without a time of day, in zone;
// "now", "today", "yesterday" (midnight in zone); or a span before now, as "2h ago", "1d12h ago" or "3 weeks ago".
func ParseTime(text string, zone *time.Location, now time.Time) (Instant, error) {
	text = strings.TrimSpace(text)
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Instant{Ms: ms, Warning: unitWarning(ms, zone)}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1)); err == nil {
		return Instant{Ms: t.UnixMilli()}, nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return Instant{Ms: t.UnixMilli()}, nil
		}
	}
	if t, ok := wordTime(strings.ToLower(text), zone, now); ok {
		return Instant{Ms: t.UnixMilli()}, nil
	}
	return Instant{}, fmt.Errorf("%q is no time: give milliseconds since 1970, RFC 3339 (2026-11-30T12:00:00+01:00), "+
		"a date (2026-11-30 or \"2026-11-30 12:00\", in --zone), \"2h ago\", now, today or yesterday", text)
}

func wordTime(text string, zone *time.Location, now time.Time) (time.Time, bool) {
	local := now.In(zone)
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, zone)
	switch text {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.AddDate(0, 0, -1), true
	}
	span, ago := strings.CutSuffix(text, "ago")
	if !ago {
		return now, false
	}
	d, ok := parseSpan(span)
	return now.Add(-d), ok
}

var spanUnits = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

// parseSpan reads numbers with units, as "1d12h" or "3 weeks".
func parseSpan(text string) (total time.Duration, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		digits := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' })
		if digits <= 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(text[:digits], 64)
		if err != nil {
			return 0, false
		}
		text = strings.TrimLeft(text[digits:], " ")
		letters := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
		if letters < 0 {
			letters = len(text)
		}
		word := text[:letters]
		unit, known := spanUnits[word]
		if !known {
			unit, known = spanUnits[strings.TrimSuffix(word, "s")]
		}
		if !known || n*float64(unit) > float64(1<<62) {
			return 0, false
		}
		total, ok, text = total+time.Duration(n*float64(unit)), true, text[letters:]
	}
	return total, ok
}

// unitWarning says what a number would mean in milliseconds, and what it probably means.
func unitWarning(n int64, zone *time.Location) string {
	size := n
	if size < 0 {
		size = -size
	}
	divisor, unit := int64(0), ""
	switch {
	case n >= -10 && n <= 0 || size >= leastPlausibleMs && size <= greatestPlausibleMs:
		return ""
	case size < leastPlausibleMs:
		return fmt.Sprintf("%d ms is %s; if seconds are meant (%s), give %d", n, FormatTime(n, zone),
			FormatTime(n*1000, zone), n*1000)
	case size < greatestPlausibleMs*1000:
		divisor, unit = 1000, "microseconds"
	default:
		divisor, unit = 1_000_000, "nanoseconds"
	}
	return fmt.Sprintf("%d ms is beyond the year 5000; if %s are meant (%s), give %d", n, unit,
		FormatTime(n/divisor, zone), n/divisor)
}

// FormatTime writes a timestamp with its zone, "none" for -1, and only the number where no calendar reaches.
func FormatTime(ms int64, zone *time.Location) string {
	t := time.UnixMilli(ms).In(zone)
	switch {
	case ms == -1:
		return "none"
	case t.Year() < 0 || t.Year() > 9999:
		return strconv.FormatInt(ms, 10) + " ms"
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}
