package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	helpWidth     = 80 // columns of a usage line
	helpGap       = 2  // blanks between the two columns
	helpIndent    = 2  // of continuation lines
	helpLeftLimit = (helpWidth - helpGap) / 2
)

// WriteHelp prints the options in two columns, sorted by name, in the shape that
// Kafka's tools print them.
func (p *Parser) WriteHelp(w io.Writer) error {
	rows := [][2]string{{"Option", "Description"}, {"------", "-----------"}}
	sorted := slices.Clone(p.options)
	slices.SortFunc(sorted, func(a, b *Option) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range sorted {
		rows = append(rows, [2]string{o.usage(), o.description()})
	}
	left, right := columnWidths(rows)
	var fitted [][2]string
	for _, row := range rows {
		fitted = append(fitted, fitRow(row, left, right)...)
	}
	left, right = columnWidths(fitted)
	var text strings.Builder
	for _, row := range fitted {
		text.WriteString(pad(row[0], left) + strings.Repeat(" ", helpGap) + pad(row[1], right) + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (o *Option) usage() string {
	if o.Arity == NoArg {
		return "--" + o.Name
	}
	kind := o.Type
	if kind == "" {
		kind = "String"
	}
	if o.ArgName != "" {
		kind += ": " + o.ArgName
	}
	if o.Arity == OptionalArg {
		return "--" + o.Name + " [" + kind + "]"
	}
	return "--" + o.Name + " <" + kind + ">"
}

func (o *Option) description() string {
	if o.Default == "" {
		return o.Help
	}
	return strings.TrimSpace(o.Help + " (default: " + o.Default + ")")
}

func columnWidths(rows [][2]string) (left, right int) {
	for _, row := range rows {
		left = max(left, utf8.RuneCountInString(row[0]))
		right = max(right, utf8.RuneCountInString(row[1]))
	}
	left = min(left, helpLeftLimit)
	return left, min(right, helpWidth-left-helpGap)
}

func fitRow(row [2]string, left, right int) [][2]string {
	a, b := wrap(row[0], left), wrap(row[1], right)
	lines := make([][2]string, max(len(a), len(b)))
	for i := range lines {
		if i < len(a) {
			lines[i][0] = a[i]
		}
		if i < len(b) {
			lines[i][1] = b[i]
		}
	}
	return lines
}

// wrap breaks text into lines of at most width columns; words that are longer stay whole.
func wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		current := ""
		for _, word := range breakable(line) {
			if strings.TrimSpace(current) != "" && utf8.RuneCountInString(current)+utf8.RuneCountInString(word) > width {
				lines = append(lines, strings.TrimRight(current, " \t"))
				current = strings.Repeat(" ", helpIndent)
			}
			current += word
		}
		if current != "" {
			lines = append(lines, current)
		}
	}
	return lines
}

// breakable cuts a line after blanks: each piece may start a new line.
func breakable(line string) []string {
	var pieces []string
	start := 0
	for i := 1; i < len(line); i++ {
		if line[i-1] == ' ' && line[i] != ' ' {
			pieces = append(pieces, line[start:i])
			start = i
		}
	}
	return append(pieces, line[start:])
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
