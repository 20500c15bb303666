package main

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"tidemark/cmd/internal/cli"
)

// argCommand is a command of an argParser.
type argCommand struct {
	name, help, about string
	args              []argOption
	run               func(context.Context, *transactionsCall) error
}

const (
	argWidth  = 75 // of a line of help
	argColumn = 25 // where descriptions begin

	kafkaCommit = "26b251a451ce941d" // of the release whose tool is copied
)

// end prints what a command line that asks for no work is answered with, and returns the exit status.
func (p *argParser) end(env *cli.Env, command *argCommand, stop *argStop) int {
	switch {
	case stop.version:
		fmt.Fprintln(env.Stdout, cli.Version+" (Commit:"+kafkaCommit+")")
		return 0
	case stop.help:
		fmt.Fprint(env.Stdout, p.usage(command)+p.help(command))
		return 1
	}
	fmt.Fprint(env.Stderr, p.usage(command)+justify(p.program+": error: "+stop.text+"\n", 0, "")+stop.more)
	return 1
}

// usage is the form of the command line of a command, or of the program when command is nil.
func (p *argParser) usage(command *argCommand) string {
	parts := []string{"[-h]", "[-v]"}
	options := p.args
	if command != nil {
		parts, options = nil, command.args
		for _, o := range p.args {
			if o.required {
				parts = append(parts, o.usage())
			}
		}
		parts = append(parts, command.name, "[-h]")
	}
	for _, o := range options {
		parts = append(parts, o.usage())
	}
	if command == nil {
		parts = append(parts, "COMMAND ...")
	}
	line := "usage: " + p.program
	indent := strings.Repeat(" ", len(line)+1)
	var text strings.Builder
	for i, part := range parts {
		if i > 0 && len(line)+1+len(part) > argWidth {
			text.WriteString(line + "\n")
			line = indent + part
			continue
		}
		line += " " + part
	}
	return text.String() + line + "\n"
}

func (p *argParser) help(command *argCommand) string {
	var text strings.Builder
	about, options := p.about, p.args
	if command != nil {
		about, options = command.about, command.args
	}
	if about != "" {
		text.WriteString("\n" + justify(about, 0, "") + "\n")
	}
	text.WriteString("\noptional arguments:\n" + helpRow("-h, --help", "Print this help."))
	if command == nil {
		text.WriteString(helpRow("-v, --version", "Print the version."))
	}
	group := ""
	for _, o := range options {
		if o.group != group {
			group = o.group
			text.WriteString("\n" + group + ":\n")
		}
		text.WriteString(helpRow(o.name+" "+o.placeholder(), o.help))
	}
	if command == nil {
		text.WriteString("\ncommands:\n  COMMAND\n")
		for _, c := range p.commands {
			text.WriteString(helpRow("  "+c.name, c.help))
		}
	}
	return text.String()
}

func helpRow(name, help string) string {
	indent := strings.Repeat(" ", argColumn)
	row := "  " + name
	if len(row)+2 > argColumn {
		row += "\n" + indent
	} else {
		row += indent[len(row):]
	}
	return row + justify(help, argColumn, indent) + "\n"
}

// justify breaks text into lines that end at argWidth, with wider blanks; the first line begins at column.
func justify(text string, column int, indent string) string {
	var out, line strings.Builder
	width := column
	for _, piece := range breakPieces(text) {
		if n := len([]rune(piece)); width+n > argWidth {
			out.WriteString(spread(line.String(), argWidth, width) + "\n" + indent)
			line.Reset()
			width = len(indent) + n
		} else {
			width += n
		}
		line.WriteString(piece)
	}
	return out.String() + line.String()
}

// breakPieces cuts text where a line may end: behind blanks, and behind hyphens before a letter.
func breakPieces(text string) (pieces []string) {
	start, runes := 0, []rune(text)
	for i := 1; i < len(runes); i++ {
		before, at := runes[i-1], runes[i]
		if before == ' ' && at != ' ' || before == '-' && unicode.IsLetter(at) {
			pieces = append(pieces, string(runes[start:i]))
			start = i
		}
	}
	return append(pieces, string(runes[start:]))
}

// spread widens the blanks of a line that ends at width so that it ends at the edge: all of them evenly, and those in
// the middle by one more for what is left over.
func spread(line string, edge, width int) string {
	trimmed := strings.Trim(line, " ")
	width -= len([]rune(line)) - len([]rune(trimmed))
	words := strings.FieldsFunc(trimmed, func(r rune) bool { return r == ' ' })
	gaps := len(words) - 1
	if gaps < 1 {
		return trimmed
	}
	each, over := (edge-width)/gaps, (edge-width)%gaps
	first := (gaps - over + 1) / 2
	var out strings.Builder
	gap := 0
	for i, r := range trimmed {
		out.WriteRune(r)
		if r == ' ' && trimmed[i+1] != ' ' {
			n := each
			if first <= gap && gap < first+over {
				n++
			}
			out.WriteString(strings.Repeat(" ", n))
			gap++
		}
	}
	return out.String()
}
