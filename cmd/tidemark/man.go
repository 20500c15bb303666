package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidemark/cmd/internal/cli"
)

const manHelp = `Man writes one manual page for each command, made from the help texts, into DIR:
tidemark.1, tidemark-log.1, tidemark-log-find.1, …, kafka-topics.1, …

DIR is made when it is not there; pages of an older version are replaced. A DIR named
man1 in a folder that MANPATH names is where man looks for them.`

const manExample = `  tidemark man ~/.local/share/man/man1
  tidemark man /tmp/pages && man /tmp/pages/tidemark-log-find.1`

// manCommand writes the manual pages of all commands.
func manCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages of all commands", Long: manHelp, Example: manExample,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			pages := manPages(c.Root())
			for name, text := range pages {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(env.Stdout, "%d pages in %s\n", len(pages), args[0])
			return err
		},
	}
}

// manPages are the pages of a command and all below it, by file name.
func manPages(c *cobra.Command) map[string]string {
	pages := map[string]string{manName(c) + ".1": manPage(c)}
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		for name, text := range manPages(sub) {
			pages[name] = text
		}
	}
	return pages
}

// manName is the name of a command's page; that of one of Kafka's tools is the tool's own.
func manName(c *cobra.Command) string {
	if toolNamed(c.Name()) != nil {
		return c.Name()
	}
	return strings.ReplaceAll(c.CommandPath(), " ", "-")
}

// manPage is the page of one command in the man macros of roff.
func manPage(c *cobra.Command) string {
	var p roff
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	p.macro("TH", strings.ToUpper(manName(c)), "1", "", "tidemark "+version, "Tidemark")
	p.macro("SH", "NAME")
	p.text(manName(c) + " - " + c.Short)
	p.macro("SH", "SYNOPSIS")
	t := toolNamed(c.Name())
	switch {
	case t != nil:
		p.bold(c.Name() + " [OPTION...]")
		p.macro("br")
		p.bold("tidemark " + c.Name() + " [OPTION...]")
	case c.HasSubCommands():
		p.bold(c.CommandPath() + " " + cmp.Or(argsOf(c), "COMMAND") + " [OPTION...]")
	default:
		p.bold(strings.TrimSuffix(c.UseLine(), " [flags]") + " [OPTION...]")
	}
	p.macro("SH", "DESCRIPTION")
	description, exit := splitExit(c.Long)
	if description == "" {
		description = c.Short + "."
	}
	p.paragraphs(description)
	if c.HasSubCommands() {
		p.commands(c)
	}
	if t != nil {
		p.paragraphs("The options, the output and the exit status are those of Kafka's tool of that name.")
		p.macro("SH", "OPTIONS")
		p.toolOptions(t.options())
	} else {
		p.flags(c)
	}
	if c.Example != "" {
		p.macro("SH", "EXAMPLES")
		p.verbatim(c.Example)
	}
	p.macro("SH", "EXIT STATUS")
	p.paragraphs(exit)
	p.seeAlso(c)
	return p.String()
}

func argsOf(c *cobra.Command) string {
	_, rest, _ := strings.Cut(c.Use, " ")
	return rest
}

// splitExit takes the paragraph on the exit status out of a help text.
func splitExit(long string) (description, exit string) {
	exit = "0 done, 1 it failed."
	var rest []string
	for paragraph := range strings.SplitSeq(long, "\n\n") {
		if status, ok := strings.CutPrefix(paragraph, exitPrefix); ok {
			exit = strings.TrimSpace(status)
			continue
		}
		rest = append(rest, paragraph)
	}
	return strings.Join(rest, "\n\n"), exit
}

// exitPrefix begins the paragraph of a help text that tells the exit status.
const exitPrefix = "Exit status:"

// roff writes a page.
type roff struct{ strings.Builder }

// macro writes a line that is a request or macro with arguments.
func (p *roff) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, a := range args {
		p.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	p.WriteByte('\n')
}

// escape keeps roff from reading anything into a text.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
}

// text writes lines of text.
func (p *roff) text(s string) {
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		line = escape(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		p.WriteString(line + "\n")
	}
}

func (p *roff) bold(s string) { p.WriteString(`\fB` + escape(s) + `\fR` + "\n") }

func (p *roff) verbatim(s string) {
	p.macro("nf")
	p.text(s)
	p.macro("fi")
}

// table recognises a line whose breaks and blanks mean something.
var table = cli.Pattern(`^ |\S {2,}\S`)

// paragraphs writes a help text: tables as they are, other text filled.
func (p *roff) paragraphs(s string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		p.macro("PP")
		lines := strings.Split(paragraph, "\n")
		for i := 0; i < len(lines); {
			from, set := i, table().MatchString(lines[i])
			for i < len(lines) && table().MatchString(lines[i]) == set {
				i++
			}
			if block := strings.Join(lines[from:i], "\n"); set {
				p.verbatim(block)
			} else {
				p.text(block)
			}
		}
	}
}

// commands lists the subcommands, one line each.
func (p *roff) commands(c *cobra.Command) {
	p.macro("SH", "COMMANDS")
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		p.option(sub.Name(), sub.Short)
	}
}

func (p *roff) option(name, help string) {
	p.macro("TP")
	p.bold(name)
	p.text(help)
}

// flags lists a command's own options and those that it shares.
func (p *roff) flags(c *cobra.Command) {
	p.macro("SH", "OPTIONS")
	c.InitDefaultHelpFlag()
	each := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, help := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			help += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		p.option(name, help)
	}
	c.NonInheritedFlags().VisitAll(each)
	c.InheritedFlags().VisitAll(each)
}

// toolOptions lists the options of one of Kafka's tools.
func (p *roff) toolOptions(options *cli.Parser) {
	for _, o := range options.Options() {
		name := "--" + o.Name
		switch {
		case o.ArgName != "":
			name += " <" + o.ArgName + ">"
		case o.Arity != cli.NoArg:
			name += " <value>"
		}
		help := o.Help
		if o.Default != "" {
			help += fmt.Sprintf(" (default %s)", o.Default)
		}
		p.option(name, help)
	}
}

// seeAlso names the pages around a command's.
func (p *roff) seeAlso(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, manName(c.Parent()))
	}
	around := c.Commands()
	if c.HasParent() && !c.HasSubCommands() && c.Parent().HasParent() {
		around = c.Parent().Commands()
	}
	for _, other := range around {
		if other != c && !other.Hidden && other.Name() != "help" {
			names = append(names, manName(other))
		}
	}
	if len(names) == 0 {
		return
	}
	p.macro("SH", "SEE ALSO")
	p.text(strings.Join(names, "(1), ") + "(1)")
}
