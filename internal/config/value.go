package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// value is a parsed configuration value. Only the field of its type is set.
type value struct {
	typ  Type
	null bool
	b    bool
	i    int64 // Int, Short, Long
	f    float64
	s    string // String, Class, Password
	list []string
}

// number returns the value of a numeric type, for comparison with a bound.
func (v value) number() float64 {
	if v.typ == Double {
		return v.f
	}
	return float64(v.i)
}

// canonical is the form in which the value is shown to clients.
func (v value) canonical() string {
	switch v.typ {
	case Boolean:
		return strconv.FormatBool(v.b)
	case Int, Short, Long:
		return strconv.FormatInt(v.i, 10)
	case Double:
		return formatDouble(v.f)
	case List:
		return strings.Join(v.list, ",")
	default:
		return v.s
	}
}

// inText is the form in which the value stands in an error text: null, secrets hidden, lists in brackets.
func (v value) inText() string {
	switch {
	case v.null:
		return "null"
	case v.typ == List:
		return "[" + strings.Join(v.list, ", ") + "]"
	case v.typ == Password:
		return "[hidden]"
	default:
		return v.canonical()
	}
}

// parseValue reads a value of type t. Like Kafka it ignores white space and control characters around it.
// The error is an [*Error] that names the key.
func parseValue(name, text string, t Type) (value, error) {
	trimmed := strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	v := value{typ: t}
	ok := true
	switch t {
	case Boolean:
		v.b = strings.EqualFold(trimmed, "true")
		if !v.b && !strings.EqualFold(trimmed, "false") {
			return v, badValue(name, text, "Expected value to be either true or false")
		}
	case Int:
		v.i, ok = parseInteger(trimmed, 32)
	case Short:
		v.i, ok = parseInteger(trimmed, 16)
	case Long:
		v.i, ok = parseInteger(trimmed, 64)
	case Double:
		v.f, ok = parseDouble(trimmed)
	case List:
		v.list = splitList(trimmed)
	default:
		v.s = trimmed
	}
	if !ok {
		return v, badValue(name, text, "Not a number of type "+t.String())
	}
	return v, nil
}

// splitList keeps empty elements, even at the end; the empty text is the empty list. Blanks count at both ends of the
// text only.
func splitList(text string) []string {
	if text == "" {
		return []string{}
	}
	const blanks = " \t\n\v\f\r"
	parts := strings.Split(text, ",")
	for i := range parts {
		if i > 0 {
			parts[i] = strings.TrimLeft(parts[i], blanks)
		}
		if i < len(parts)-1 {
			parts[i] = strings.TrimRight(parts[i], blanks)
		}
	}
	return parts
}

func parseInteger(text string, bits int) (int64, bool) {
	i, err := strconv.ParseInt(text, 10, bits)
	return i, err == nil
}

// Kafka: Double.parseDouble takes a type suffix and hexadecimal floats, and knows NaN and Infinity only so written.
func parseDouble(text string) (float64, bool) {
	digits := text
	if text != "" && (text[0] == '+' || text[0] == '-') {
		digits = text[1:]
	}
	if digits != "NaN" && digits != "Infinity" {
		if digits == "" || !strings.ContainsRune(".0123456789", rune(digits[0])) || strings.Contains(digits, "_") {
			return 0, false // Go reads more than Java
		}
		if strings.ContainsRune("fFdD", rune(text[len(text)-1])) {
			text = text[:len(text)-1]
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange) // out of range is ±Inf or 0, as in Java
}

// formatDouble writes f as Java does: 0.5, 1.0E10, 1.7976931348623157E308.
func formatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e-3 && a < 1e7 {
		return withFraction(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	n, _ := strconv.Atoi(exponent) // drops the plus sign and leading zeros
	return withFraction(mantissa) + "E" + strconv.Itoa(n)
}

func withFraction(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}
