package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Arity says whether an option takes an argument.
type Arity int

// The three kinds of option.
const (
	NoArg       Arity = iota // --list
	RequiredArg              // --topic NAME or --topic=NAME
	OptionalArg              // --compression-codec, with or without a name
)

// Option is one long option of a tool.
type Option struct {
	Name      string
	Help      string   // own words; shown by usage
	Arity     Arity    //
	Type      string   // "String" (also when empty), "Integer" or "Long": checked when the value is read
	ArgName   string   // what usage calls the argument; may be empty
	Default   string   // used when the option is not given; empty = none
	Separator string   // one character that splits an argument into several values; empty = none
	values    []string // of the last Parse
	given     bool
}

// String is the option as Kafka's messages name it: "[topic]".
func (o *Option) String() string { return "[" + o.Name + "]" }

// OptionError is a command line that cannot be understood. Class is the exception
// name that Kafka's tools print for it.
type OptionError struct {
	Class   string
	Message string
	Cause   *Failure // or nil
}

func (e *OptionError) Error() string { return e.Message }

func optionError(class, format string, args ...any) error {
	return &OptionError{Class: "joptsimple." + class, Message: fmt.Sprintf(format, args...)}
}

// Parser holds the options of one tool, and after Parse what was given. The zero
// value is ready. It accepts what Kafka's tools accept: "--opt value", "--opt=value",
// the same with one dash, repeated options, and "--" before plain arguments.
type Parser struct {
	options []*Option
	order   []*Option // as given, one per occurrence
	args    []string
}

// Add declares an option and returns it for the questions below.
func (p *Parser) Add(o Option) *Option {
	added := &o
	p.options = append(p.options, added)
	return added
}

// Flag declares an option without argument.
func (p *Parser) Flag(name, help string) *Option { return p.Add(Option{Name: name, Help: help}) }

// Text declares an option with a required argument of type String.
func (p *Parser) Text(name, argName, help string) *Option {
	return p.Add(Option{Name: name, Help: help, ArgName: argName, Arity: RequiredArg})
}

// Number declares an option with a required numeric argument; kind is "Integer" or "Long".
func (p *Parser) Number(kind, name, argName, help, def string) *Option {
	return p.Add(Option{Name: name, Help: help, ArgName: argName, Arity: RequiredArg, Type: kind, Default: def})
}

// Options lists the declared options in the order of declaration.
func (p *Parser) Options() []*Option { return p.options }

// Parse reads a command line. It can fail with an *OptionError: an unknown option
// or a missing argument. Values are converted later, when they are asked for.
func (p *Parser) Parse(args []string) error {
	p.args = args
	for i := 0; i < len(args); {
		token := args[i]
		i++
		name, isOption := optionName(token)
		if token == "--" {
			return nil // the rest are plain arguments, which no tool reads
		}
		if !isOption {
			continue
		}
		used, err := p.take(name, token, args[i:])
		if err != nil {
			return err
		}
		i += used
	}
	return nil
}

// optionName strips the dashes; a lone "-" is a plain argument.
func optionName(token string) (string, bool) {
	if strings.HasPrefix(token, "--") {
		return token[2:], true
	}
	if strings.HasPrefix(token, "-") && token != "-" {
		return token[1:], true
	}
	return token, false
}

// take records one occurrence; it returns how many of the following tokens it used.
func (p *Parser) take(text, token string, rest []string) (int, error) {
	name, value, hasValue := strings.Cut(text, "=")
	o := p.find(name)
	if o == nil {
		if !strings.HasPrefix(token, "--") {
			name = string([]rune(text)[:1]) // a cluster of one-letter options, of which there are none
		}
		return 0, optionError("UnrecognizedOptionException", "%s is not a recognized option", name)
	}
	o.given = true
	p.order = append(p.order, o)
	switch {
	case o.Arity == NoArg:
		return 0, nil
	case hasValue:
		o.add(value)
		return 0, nil
	case len(rest) == 0 && o.Arity == RequiredArg:
		return 0, optionError("OptionMissingRequiredArgumentException", "Option %s requires an argument", o.Name)
	case o.Arity == OptionalArg && (len(rest) == 0 || looksLikeOption(rest[0])):
		return 0, nil
	}
	o.add(rest[0])
	return 1, nil
}

func looksLikeOption(token string) bool {
	_, is := optionName(token)
	return is && token != "--"
}

// add stores an argument, split by the separator. Empty pieces are dropped, an
// argument of nothing but separators is one empty value.
func (o *Option) add(value string) {
	if o.Separator == "" {
		o.values = append(o.values, value)
		return
	}
	before := len(o.values)
	for piece := range strings.SplitSeq(value, o.Separator) {
		if piece != "" {
			o.values = append(o.values, piece)
		}
	}
	if len(o.values) == before {
		o.values = append(o.values, "")
	}
}

func (p *Parser) find(name string) *Option {
	i := slices.IndexFunc(p.options, func(o *Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return p.options[i]
}

// Given lists the options of the command line, one entry per occurrence.
func (p *Parser) Given() []*Option { return p.order }

// Has reports whether the option was given.
func (o *Option) Has() bool { return o.given }

// Values are all values given, the default when none was.
func (o *Option) Values() []string {
	if len(o.values) == 0 && o.Default != "" {
		return []string{o.Default}
	}
	return o.values
}

// Value is the one value given, else the default, else "". More than one value is
// an *OptionError.
func (o *Option) Value() (string, error) {
	values := o.Values()
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", optionError("MultipleArgumentsForOptionException",
		"Found multiple arguments for option %s, but you asked for only one", o.Name)
}

// Int is Value as a number of the option's type. An option without value is 0.
func (o *Option) Int() (int64, error) {
	text, err := o.Value()
	if err != nil || text == "" && !o.given {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, o.bits())
	if err != nil {
		return 0, o.conversionError(text)
	}
	return n, nil
}

func (o *Option) conversionError(text string) error {
	number := Fail("java.lang.NumberFormatException", "For input string: \"%s\"", text)
	reflection := Fail("joptsimple.internal.ReflectionException", "%s", number.String())
	reflection.Cause = number
	return &OptionError{
		Class:   "joptsimple.OptionArgumentConversionException",
		Message: fmt.Sprintf("Cannot parse argument '%s' of option %s", text, o.Name),
		Cause:   reflection,
	}
}

func (o *Option) bits() int {
	if o.Type == "Integer" {
		return 32
	}
	return 64
}
