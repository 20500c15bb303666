package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// check refuses values of the right type; the error is an [*Error] with Kafka's text.
type check func(name string, v value) error

// atLeast refuses numbers below low, and null.
func atLeast(low int64) check {
	return func(name string, v value) error {
		if v.null {
			return badValue(name, "null", "Value must be non-null")
		}
		if v.number() < float64(low) {
			return badValue(name, v.inText(), fmt.Sprintf("Value must be at least %d", low))
		}
		return nil
	}
}

// between refuses numbers outside low…high (both allowed), and null.
func between(low, high float64) check {
	return func(name string, v value) error {
		if v.null {
			return badValue(name, "null", "Value must be non-null")
		}
		if v.number() < low {
			return badValue(name, v.inText(), "Value must be at least "+formatBound(low))
		}
		if v.number() > high {
			return badValue(name, v.inText(), "Value must be no more than "+formatBound(high))
		}
		return nil
	}
}

func formatBound(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// oneOf allows the given texts only.
func oneOf(allowed ...string) check {
	return func(name string, v value) error {
		if slices.Contains(allowed, v.s) {
			return nil
		}
		return badValue(name, v.inText(), "String must be one of: "+strings.Join(allowed, ", "))
	}
}

// oneOfFold is oneOf without regard to case; allowed are in upper case, in the order of Kafka's error text.
func oneOfFold(allowed ...string) check {
	return func(name string, v value) error {
		if slices.Contains(allowed, strings.ToUpper(v.s)) {
			return nil
		}
		return badValue(name, v.inText(), "String must be one of (case insensitive): "+strings.Join(allowed, ", "))
	}
}

// listOptions say what a list may be.
type listOptions struct {
	nonEmpty bool     // the empty list is refused
	nullable bool     // null is allowed
	allowed  []string // nil: any element
}

// list refuses empty elements, and what o forbids.
func list(o listOptions) check {
	return func(name string, v value) error {
		if v.null {
			if o.nullable {
				return nil
			}
			return invalidConfig("Configuration '%s' values must not be null.", name)
		}
		if o.nonEmpty && len(v.list) == 0 {
			return emptyList(name, o.allowed)
		}
		for _, element := range v.list {
			if element == "" {
				return invalidConfig("Configuration '%s' values must not be empty.", name)
			}
			if o.allowed != nil && !slices.Contains(o.allowed, element) {
				return badValue(name, element, "String must be one of: "+strings.Join(o.allowed, ", "))
			}
		}
		return nil
	}
}

func emptyList(name string, allowed []string) error {
	valid := "any non-empty value"
	if allowed != nil {
		valid = "[" + strings.Join(allowed, ", ") + "]"
	}
	return invalidConfig("Configuration '%s' must not be empty. Valid values include: %s", name, valid)
}

// anyList allows every list without empty elements, the empty one too.
var anyList = list(listOptions{})

// nonEmptyString refuses the empty text; null is allowed.
func nonEmptyString(name string, v value) error {
	if !v.null && v.s == "" {
		return badValue(name, "", "String must be non-empty")
	}
	return nil
}

// gzipLevel allows 1…9, and -1 for the codec's own default.
func gzipLevel(name string, v value) error {
	if v.i > 9 || v.i < 1 && v.i != -1 {
		return badValue(name, v.inText(), "Value must be between 1 and 9 or equal to -1")
	}
	return nil
}

var throttledReplica = pattern(`^([0-9]+:[0-9]+)?$`)

// throttledReplicas allows PARTITION:BROKER,… and the literal *.
func throttledReplicas(name string, v value) error {
	bad := slices.ContainsFunc(v.list, func(s string) bool { return !throttledReplica().MatchString(s) })
	if bad && strings.Join(v.list, "") != "*" {
		return badValue(name, v.inText(), name+" must be the literal '*' or a list of replicas in the following "+
			"format: [partitionId]:[brokerId],[partitionId]:[brokerId],...")
	}
	return nil
}

// offsetReset allows earliest, latest and by_duration: with an ISO-8601 duration that is not negative.
func offsetReset(name string, v value) error {
	if v.s == "earliest" || v.s == "latest" {
		return nil
	}
	if text, ok := strings.CutPrefix(v.s, "by_duration:"); ok && validDuration(text) {
		return nil
	}
	return badValue(name, v.s, fmt.Sprintf("Invalid value `%s` for configuration %s. The value must be either "+
		"'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.", v.s, name))
}

// pattern is a regular expression that is compiled when it is first asked for.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// Kafka: Duration.parse, as in by_duration:P1DT2H3M4.5S.
var isoDuration = pattern(`(?i)^([-+]?)P(?:([-+]?[0-9]+)D)?` +
	`(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?$`)

func validDuration(text string) bool {
	m := isoDuration().FindStringSubmatch(text)
	if m == nil || strings.EqualFold(m[3], "T") || m[2] == "" && m[3] == "" {
		return false
	}
	var seconds int64
	for group, unit := range map[int]int64{2: 86400, 4: 3600, 5: 60, 6: 1} {
		if m[group] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[group], 10, 64)
		if err != nil {
			return false
		}
		seconds += n * unit
	}
	fraction := strings.Trim(m[7], "0") != ""
	if fraction && strings.HasPrefix(m[6], "-") {
		seconds-- // the sum lies between this second and the next
	}
	if m[1] == "-" {
		return seconds < 0 || seconds == 0 && !fraction
	}
	return seconds >= 0
}
