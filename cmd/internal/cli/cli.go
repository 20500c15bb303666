// Package cli is the client side of Tidemark's copies of Kafka's command lines: how
// options are read, how usage, errors and log lines are printed, and how a broker is
// asked. It owns no file and no message of its own.
//
// What it prints follows the tools of Apache Kafka 4.3.1, with two deliberate
// differences: the description of each option is worded anew, and stack traces are cut
// to their first line, as there is no Java stack to show.
//
// A Parser and an Admin belong to one goroutine.
package cli

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Version is the Kafka release whose command lines are copied.
const Version = "4.3.1"

// Env is what a tool may touch of its surroundings. Stderr is written to by several
// goroutines at once: a client warns of brokers that it cannot reach.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time
}

// Log writes a log line to the error output, at the present time.
func (e *Env) Log(level, source, text string) { Log(e.Stderr, e.Now(), level, source, text) }

// Exit ends a tool early with a status and nothing more to print.
type Exit struct{ Code int }

func (e *Exit) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// AddHelp declares --help and --version, which every tool has.
func (p *Parser) AddHelp() {
	p.Flag("help", "Show this text.")
	p.Flag("version", "Show the Kafka version that this tool follows.")
}

// HelpOrVersion returns nil, or the error that ends the tool because the command line
// is empty or asks for help (usage under intro, status 1) or for the version (status 0).
func (p *Parser) HelpOrVersion(env *Env, intro string) error {
	switch {
	case len(p.args) == 0 || p.find("help").Has():
		return &UsageError{intro}
	case p.find("version").Has():
		fmt.Fprintln(env.Stdout, Version)
		return &Exit{0}
	}
	return nil
}

// Finish turns what a tool returned into an exit status: nil is 0, an Exit its own
// code, a UsageError prints its text and the usage. Anything else goes to other, and
// the status is 1.
func (p *Parser) Finish(env *Env, err error, other func(*Failure)) int {
	var exit *Exit
	var usage *UsageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &usage):
		fmt.Fprintln(env.Stderr, usage.Message)
		if err := p.WriteHelp(env.Stderr); err != nil {
			return 1
		}
		return 1
	}
	other(AsFailure(err))
	return 1
}

// Require fails with a UsageError when one of the options was not given.
func Require(options ...*Option) error {
	for _, o := range options {
		if !o.Has() {
			return Usagef("Missing required argument \"%s\"", o)
		}
	}
	return nil
}

// Forbid fails with a UsageError when used was given together with one of the others.
func Forbid(used *Option, others ...*Option) error {
	if !used.Has() {
		return nil
	}
	for _, o := range others {
		if o.Has() {
			return Usagef("Option \"%s\" can't be used with option \"%s\"", used, o)
		}
	}
	return nil
}
