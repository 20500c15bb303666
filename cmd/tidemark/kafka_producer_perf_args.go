package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
)

// argDouble is an option's value of Java's type Double.
const argDouble argKind = "Double"

// perfArg is an option of a perfParser. Its name begins with "--".
type perfArg struct {
	name, metavar, help, def string
	kind                     argKind
	required                 bool
	many                     bool // one or more values
	flag                     bool // no value
	exclusive                bool // one of these options has to be given, and no two
}

// placeholder is what stands for the value in help.
func (o *perfArg) placeholder() string {
	switch {
	case o.flag:
		return ""
	case o.metavar != "":
		return " " + o.metavar
	}
	return " " + strings.ToUpper(strings.TrimPrefix(o.name, "--"))
}

// form is the option with its value as help shows it.
func (o *perfArg) form() string {
	if o.many {
		return o.name + o.placeholder() + " [" + o.metavar + " ...]"
	}
	return o.name + o.placeholder()
}

// check tells why a value is not of the option's type; "" when it is.
func (o *perfArg) check(value string) string {
	if o.kind != argDouble {
		plain := argOption{name: o.name, kind: o.kind}
		return plain.check(value)
	}
	if _, err := parseJavaDouble(value); err == nil {
		return ""
	}
	return fmt.Sprintf("argument %s: could not convert '%s' to Double (For input string: %q)", o.name, value, value)
}

// parseJavaDouble reads a number as Double.valueOf does, without hexadecimal ones.
func parseJavaDouble(text string) (float64, error) {
	text = strings.TrimSpace(text)
	switch strings.TrimLeft(text, "+-") {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1 - 2*strings.Count(text, "-")), nil
	}
	if n := len(text); n > 1 && strings.ContainsRune("dDfF", rune(text[n-1])) {
		text = text[:n-1]
	}
	if strings.ContainsAny(text, "xX_pPiInN") {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(n, 0) {
		return 0, err
	}
	return n, nil
}

// perfValues are the values given, by the option's name.
type perfValues map[string][]string

func (v perfValues) has(name string) bool { return len(v[name]) > 0 && v[name][0] != "false" }

func (v perfValues) text(name string) string {
	if len(v[name]) == 0 {
		return ""
	}
	return v[name][0]
}

// number is the value of an option whose text was checked; 0 when it was not given.
func (v perfValues) number(name string) int64 {
	n, _ := strconv.ParseInt(v.text(name), 10, 64)
	return n
}

func (v perfValues) double(name string) float64 {
	n, _ := parseJavaDouble(v.text(name))
	return n
}

// perfParser reads a command line of options alone, as argparse4j does.
type perfParser struct {
	program, about string
	args           []perfArg
	required       []string // names, in the order in which a missing one is told
}

// parse reads a command line; when it asks for no work, or makes no sense, that is told and ok is false.
func (p *perfParser) parse(env *cli.Env, args []string) (values perfValues, status int, ok bool) {
	if len(args) == 0 {
		fmt.Fprint(env.Stdout, p.usage()+p.help())
		return nil, 0, false
	}
	values = perfValues{}
	for _, o := range p.args {
		if o.def != "" {
			values[o.name] = []string{o.def}
		}
	}
	given := map[string]bool{}
	for len(args) > 0 {
		name, rest, refused := p.take(args, values, given)
		if name == "--help" {
			fmt.Fprint(env.Stdout, p.usage()+p.help())
			return nil, 1, false
		}
		if refused != "" {
			return nil, p.refuse(env, refused), false
		}
		given[name], args = true, rest
	}
	if refused := p.missing(given); refused != "" {
		return nil, p.refuse(env, refused), false
	}
	return values, 0, true
}

// refuse tells why a command line makes no sense.
func (p *perfParser) refuse(env *cli.Env, why string) int {
	fmt.Fprint(env.Stderr, p.usage()+justify(p.program+": error: "+why+"\n", 0, ""))
	return 1
}

// take reads one option with its values.
func (p *perfParser) take(args []string, values perfValues, given map[string]bool) (name string, rest []string,
	refused string) {
	word, value, hasValue := strings.Cut(args[0], "=")
	if !isArgFlag(args[0]) {
		return "", nil, "unrecognized arguments: '" + args[0] + "'"
	}
	if word == "-h" {
		return "--help", nil, ""
	}
	var options []argOption
	for _, o := range p.args {
		options = append(options, argOption{name: o.name})
	}
	found := sortedNames(optionsNamed(options, word, false))
	switch {
	case len(found) > 1:
		return "", nil, fmt.Sprintf("ambiguous option: %s could match %s", word, strings.Join(found, ", "))
	case len(found) == 0:
		return "", nil, "unrecognized arguments: '" + args[0] + "'"
	case found[0] == "--help":
		return "--help", nil, ""
	}
	o := p.arg(found[0])
	if refused := p.excluded(o, given); refused != "" {
		return "", nil, refused
	}
	list, rest, refused := o.take(args[1:], value, hasValue)
	if refused != "" {
		return "", nil, refused
	}
	for _, one := range list {
		if why := o.check(one); why != "" {
			return "", nil, why
		}
	}
	values[o.name] = list
	return o.name, rest, ""
}

// take reads the values of an option from what follows it.
func (o *perfArg) take(args []string, value string, hasValue bool) (values, rest []string, refused string) {
	switch {
	case o.flag && hasValue:
		return nil, nil, fmt.Sprintf("argument %s: ignore implicit argument '%s'", o.name, value)
	case o.flag:
		return []string{"true"}, args, ""
	case hasValue:
		values = []string{value}
	}
	for len(args) > 0 && !isArgFlag(args[0]) && (o.many || len(values) == 0) {
		values, args = append(values, args[0]), args[1:]
	}
	switch {
	case len(values) > 0:
		return values, args, ""
	case o.many:
		return nil, nil, "argument " + o.name + ": expected 1 argument(s)"
	}
	return nil, nil, "argument " + o.name + ": expected one argument"
}

func (p *perfParser) arg(name string) *perfArg {
	for i := range p.args {
		if p.args[i].name == name {
			return &p.args[i]
		}
	}
	return nil
}

// excluded tells which option that was given forbids another one.
func (p *perfParser) excluded(o *perfArg, given map[string]bool) string {
	for _, other := range p.args {
		if o.exclusive && other.exclusive && other.name != o.name && given[other.name] {
			return fmt.Sprintf("argument %s: not allowed with argument %s", o.name, other.name)
		}
	}
	return ""
}

func (p *perfParser) missing(given map[string]bool) string {
	for _, name := range p.required {
		if !given[name] {
			return "argument " + name + " is required"
		}
	}
	var exclusive []string
	for _, o := range p.args {
		if o.exclusive && given[o.name] {
			return ""
		}
		if o.exclusive {
			exclusive = append(exclusive, o.name)
		}
	}
	return "one of the arguments " + strings.Join(exclusive, " ") + " is required"
}

// usage is the form of the command line.
func (p *perfParser) usage() string {
	parts, exclusive := []string{"[-h]"}, []string(nil)
	for _, o := range p.args {
		switch {
		case o.exclusive:
			exclusive = append(exclusive, o.form())
		case o.required:
			parts = append(parts, o.form())
		default:
			parts = append(parts, "["+o.form()+"]")
		}
	}
	for i, form := range exclusive {
		if i == 0 {
			form = "(" + form
		}
		if i == len(exclusive)-1 {
			form += ")"
		} else {
			form += " |"
		}
		parts = append(parts, form)
	}
	const indent = "      "
	text, line := "usage: "+p.program+"\n", indent
	for _, part := range parts {
		if len(line)+1+len(part) > argWidth && line != indent {
			text, line = text+line+"\n", indent
		}
		line += " " + part
	}
	return text + line + "\n"
}

func (p *perfParser) help() string {
	var text, exclusive strings.Builder
	text.WriteString("\n" + justify(p.about, 0, "") + "\n\noptional arguments:\n" +
		helpRow("-h, --help", "Print this help."))
	for _, o := range p.args {
		help := o.help
		if o.def != "" {
			help += " (default: " + o.def + ")"
		}
		into := &text
		if o.exclusive {
			into = &exclusive
		}
		into.WriteString(helpRow(o.form(), help))
	}
	return text.String() + "\nexactly one of these:\n" + exclusive.String()
}
