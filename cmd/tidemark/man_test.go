package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidemark/cmd/internal/cli"
)

// everyCommand calls a function for each command below a root.
func everyCommand(c *cobra.Command, each func(*cobra.Command)) {
	each(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, each)
	}
}

// TestManPages writes the pages and checks each: the parts that a page has, in their order, every option, and nothing
// that roff would take for a request.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	out, errs, status := call(t, "", "man", dir)
	if status != 0 || !strings.Contains(out, "pages in "+dir) {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	everyCommand(rootCommand(&cli.Env{}), func(c *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, manName(c)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		page := string(text)
		checkRoff(t, manName(c), page)
		parts := []string{".SH \"NAME\"", ".SH \"SYNOPSIS\"", ".SH \"DESCRIPTION\"", ".SH \"OPTIONS\"", ".SH \"EXIT STATUS\""}
		if c.HasParent() && c.Parent().Name() == "log" {
			parts = append(parts[:4], ".SH \"EXAMPLES\"", ".SH \"EXIT STATUS\"")
		}
		at := 0
		for _, part := range parts {
			found := strings.Index(page[at:], part)
			if found < 0 {
				t.Errorf("%s: no %s behind byte %d", manName(c), part, at)
				return
			}
			at += found
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, escape("--"+f.Name)) {
				t.Errorf("%s: no --%s", manName(c), f.Name)
			}
		})
		if tool := toolNamed(c.Name()); tool != nil {
			for _, o := range tool.options().Options() {
				if !strings.Contains(page, escape("--"+o.Name)) {
					t.Errorf("%s: no --%s", manName(c), o.Name)
				}
			}
		}
	})
}

// roffLine is what a line may be: a macro that the pages use, or text that begins with neither of roff's two marks.
var roffLine = regexp.MustCompile(`^(\.(TH|SH|PP|TP|nf|fi|br)( "[^"]*")*|[^.'].*|)$`)

func checkRoff(t *testing.T, name, page string) {
	if !strings.HasPrefix(page, ".TH ") {
		t.Errorf("%s: begins with %.20q", name, page)
	}
	if strings.Count(page, "\n.nf\n") != strings.Count(page, "\n.fi\n") {
		t.Errorf("%s: .nf without .fi", name)
	}
	for line := range strings.SplitSeq(page, "\n") {
		if !roffLine.MatchString(line) {
			t.Errorf("%s: line %q", name, line)
		}
		for _, r := range line {
			if r > '~' {
				t.Errorf("%s: %q in %q", name, r, line)
			}
		}
	}
}

// TestLogCompletion asks for what a shell asks for.
func TestLogCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"log ":                       "verify\t",
		"log ls --sort ":             "segments",
		"log cat --format ":          "hex",
		"log cat --isolation ":       "read_committed",
		"log txns --state ":          "aborted",
		"log find --zone ":           "UTC",
		"log find --ti":              "--time\t",
		"kafka-topics --bootstrap-s": "--bootstrap-server\t",
	} {
		out, _, status := call(t, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%q: status %d, %q", args, status, out)
		}
	}
}
