package main

import (
	"math"
	"strconv"
	"strings"
	"time"

	"tidemark/cmd/internal/cli"
)

// timestamp is the time that --to-datetime or --by-duration say, in ms.
func (c *consumerGroupsCommand) timestamp() (int64, error) {
	if c.toDatetime.Has() {
		ms, err := parseDatetime(c.toDatetime.Values()[0])
		if err != nil {
			return 0, runtimeFailure(err)
		}
		return ms, nil
	}
	text, err := c.byDuration.Value()
	if err != nil {
		return 0, err
	}
	d, err := parseJavaDuration(text)
	if err != nil {
		return 0, err
	}
	return c.env.Now().Add(-d).UnixMilli(), nil
}

// datetime is what Kafka's format takes: numbers of any length, and a zone as Z, +hh or +hh:mm.
var datetime = cli.Pattern(`^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d(?::\d\d)?)`)

// parseDatetime reads a time of --to-datetime; without a zone it is in UTC. Fractions are whole milliseconds: .5 is
// 5 ms.
//
// Kafka: Utils.getDateTime, java.text.SimpleDateFormat, which ignores what follows a time.
func parseDatetime(text string) (int64, error) {
	const parseException = "java.text.ParseException"
	_, clock, ok := strings.Cut(text, "T")
	if !ok || clock == "" {
		return 0, cli.Fail(parseException,
			"Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
	}
	if clock, _, _ = strings.Cut(clock, "T"); !strings.ContainsAny(clock, "+-Z") {
		text += "Z"
	}
	unparseable := cli.Fail(parseException, "Unparseable date: \"%s\"", text)
	parts := datetime().FindStringSubmatch(text)
	if parts == nil {
		return 0, unparseable
	}
	var n [7]int
	for i := range n {
		value, err := strconv.Atoi(parts[i+1])
		if err != nil {
			return 0, unparseable
		}
		n[i] = value
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC)
	same := t.Year() == n[0] && int(t.Month()) == n[1] && t.Day() == n[2] && t.Hour() == n[3] && t.Minute() == n[4] &&
		t.Second() == n[5] && n[6] < 1000
	zone, ok := zoneOffset(parts[8])
	if !same || !ok {
		return 0, unparseable
	}
	return t.Add(-zone).UnixMilli() + int64(n[6]), nil
}

func zoneOffset(zone string) (time.Duration, bool) {
	if zone == "Z" {
		return 0, true
	}
	hours, minutes, _ := strings.Cut(zone[1:], ":")
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	offset := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if zone[0] == '-' {
		offset = -offset
	}
	return offset, h < 24 && m < 60
}

// javaDuration is what java.time.Duration takes.
var javaDuration = cli.Pattern(`(?i)^([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?` +
	`(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?$`)

// parseJavaDuration reads a duration of the form PnDTnHnMn.nS.
func parseJavaDuration(text string) (time.Duration, error) {
	const parseException = "java.time.format.DateTimeParseException"
	malformed := cli.Fail(parseException, "Text cannot be parsed to a Duration")
	parts := javaDuration().FindStringSubmatch(text)
	if parts == nil || strings.EqualFold(parts[3], "T") {
		return 0, malformed
	}
	if parts[2] == "" && parts[4] == "" && parts[5] == "" && parts[6] == "" {
		return 0, malformed
	}
	total := 0.0
	for _, unit := range []struct {
		text    string
		seconds float64
	}{{parts[2], 86400}, {parts[4], 3600}, {parts[5], 60}, {parts[6], 1}} {
		if unit.text == "" {
			continue
		}
		n, err := strconv.ParseInt(unit.text, 10, 64)
		if err != nil {
			return 0, malformed
		}
		total += float64(n) * unit.seconds
	}
	if fraction := parts[7]; fraction != "" {
		n, _ := strconv.ParseFloat("0."+fraction, 64)
		if strings.HasPrefix(parts[6], "-") {
			n = -n
		}
		total += n
	}
	if parts[1] == "-" {
		total = -total
	}
	if math.Abs(total) > math.MaxInt64/float64(time.Second) {
		return 0, cli.Fail(parseException, "Text cannot be parsed to a Duration: overflow")
	}
	return time.Duration(math.Round(total * float64(time.Second))), nil
}
