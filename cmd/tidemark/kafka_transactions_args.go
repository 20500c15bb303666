package main

import (
	"fmt"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
)

// argKind is the type of an option's value, by its Java name.
type argKind string

const (
	argString  argKind = ""
	argLong    argKind = "Long"
	argInteger argKind = "Integer"
	argShort   argKind = "Short"
)

// argOption is an option of a parser that takes commands. Its name begins with "--".
type argOption struct {
	name, metavar, help, group, def string
	kind                            argKind
	required                        bool
}

// placeholder is what stands for the value in help.
func (o *argOption) placeholder() string {
	if o.metavar != "" {
		return o.metavar
	}
	return strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(o.name, "--"), "-", "_"))
}

func (o *argOption) usage() string {
	if o.required {
		return o.name + " " + o.placeholder()
	}
	return "[" + o.name + " " + o.placeholder() + "]"
}

// check tells why a value is not of the option's type; "" when it is.
func (o *argOption) check(value string) string {
	bits := map[argKind]int{argLong: 64, argInteger: 32, argShort: 16}[o.kind]
	if bits == 0 {
		return ""
	}
	if _, err := strconv.ParseInt(value, 10, bits); err == nil {
		return ""
	}
	why := fmt.Sprintf("For input string: %q", value)
	if _, err := strconv.ParseInt(value, 10, 32); err == nil {
		why = fmt.Sprintf("Value out of range. Value:%q Radix:10", value)
	}
	return fmt.Sprintf("argument %s: could not convert '%s' to %s (%s)", o.name, value, o.kind, why)
}

// argValues are the values given, by the option's name.
type argValues map[string]string

func (v argValues) text(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// number is the value of an option whose text was checked.
func (v argValues) number(name string) (int64, bool) {
	value, ok := v[name]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}

// argParser reads a command line of options, a command, and the command's options, as argparse4j does.
type argParser struct {
	program, about string
	args           []argOption
	commands       []argCommand
}

// argStop ends the reading of a command line: text follows the usage on the error output, or help and version are
// printed on standard output.
type argStop struct {
	text, more    string
	help, version bool
}

// parse reads a command line. Without a command there is nothing more to do than to end with the status.
func (p *argParser) parse(env *cli.Env, args []string) (command *argCommand, values argValues, status int) {
	values = argValues{}
	rest, stop := p.take(p.args, args, values, true)
	if stop == nil && len(rest) == 0 {
		stop = &argStop{text: "too few arguments"}
	}
	if stop == nil {
		if command, stop = p.command(rest[0]); command != nil {
			stop = p.readCommand(command, rest[1:], values)
		}
	}
	shown := command
	if stop == nil {
		if missing := missingOption(p.args, values); missing != "" {
			stop, shown = &argStop{text: missing}, nil
		}
	}
	if stop == nil {
		return command, values, 0
	}
	return nil, nil, p.end(env, shown, stop)
}

func (p *argParser) readCommand(command *argCommand, args []string, values argValues) *argStop {
	for _, o := range command.args {
		if o.def != "" {
			values[o.name] = o.def
		}
	}
	rest, stop := p.take(command.args, args, values, false)
	if stop == nil && len(rest) > 0 {
		stop = &argStop{text: "unrecognized arguments: '" + rest[0] + "'"}
	}
	if stop == nil {
		if missing := missingOption(command.args, values); missing != "" {
			stop = &argStop{text: missing}
		}
	}
	return stop
}

func missingOption(options []argOption, values argValues) string {
	for _, o := range options {
		if _, ok := values[o.name]; o.required && !ok {
			return "argument " + o.name + " is required"
		}
	}
	return ""
}

// take reads options into values, up to the first word that is none.
func (p *argParser) take(options []argOption, args []string, values argValues, main bool) ([]string, *argStop) {
	for len(args) > 0 && isArgFlag(args[0]) {
		name, value, hasValue := strings.Cut(args[0], "=")
		switch {
		case name == "-h" || name == "--help":
			return nil, &argStop{help: true}
		case main && (name == "-v" || name == "--version"):
			return nil, &argStop{version: true}
		}
		found := optionsNamed(options, name, main)
		if len(found) > 1 {
			return nil, &argStop{text: fmt.Sprintf("ambiguous option: %s could match %s", name, strings.Join(found, ", "))}
		}
		if len(found) == 0 {
			return nil, &argStop{text: "unrecognized arguments: '" + args[0] + "'"}
		}
		switch found[0] {
		case "--help":
			return nil, &argStop{help: true}
		case "--version":
			return nil, &argStop{version: true}
		}
		args = args[1:]
		if !hasValue {
			if len(args) == 0 || isArgFlag(args[0]) {
				return nil, &argStop{text: "argument " + found[0] + ": expected one argument"}
			}
			value, args = args[0], args[1:]
		}
		for i := range options {
			if why := options[i].check(value); options[i].name == found[0] && why != "" {
				return nil, &argStop{text: why}
			}
		}
		values[found[0]] = value
	}
	return args, nil
}

func isArgFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil // a negative number is a value
}

// optionsNamed are the options of a name, or, when there is none, those that begin with it.
func optionsNamed(options []argOption, name string, main bool) (found []string) {
	names := []string{"--help"}
	if main {
		names = append(names, "--version")
	}
	for _, o := range options {
		names = append(names, o.name)
	}
	for _, n := range names {
		if n == name {
			return []string{n}
		}
		if strings.HasPrefix(name, "--") && strings.HasPrefix(n, name) {
			found = append(found, n)
		}
	}
	return found
}

// command finds a command by its name or the beginning of it.
func (p *argParser) command(word string) (*argCommand, *argStop) {
	var found []*argCommand
	var names []string
	for i := range p.commands {
		c := &p.commands[i]
		names = append(names, "'"+c.name+"'")
		if c.name == word {
			return c, nil
		}
		if strings.HasPrefix(c.name, word) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) > 1 {
		var could []string
		for _, c := range found {
			could = append(could, c.name)
		}
		return nil, &argStop{text: fmt.Sprintf("ambiguous command: %s could match %s", word, strings.Join(could, ", "))}
	}
	stop := &argStop{text: fmt.Sprintf("invalid choice: '%s' (choose from %s)", word, strings.Join(names, ", "))}
	return nil, stop
}
