package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

var (
	usageStart = regexp.MustCompile(`(?m)^Option {2,}Description`)
	fileTime   = regexp.MustCompile(`"modifiedMs":\d+`) // when the golden data was checked out
	logTime    = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]`)
)

// TestScripts runs the command lines of testdata, none of which reaches a broker. A
// block is
//
//	run [stdin=TEXT]
//	tool option 'quoted option' …
//	----
//
// and shows the outputs, each line behind its stream, and the exit status. "help" in
// place of "run" shows the usage text too. The texts of errors are Kafka's.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return runBlock(t, d) })
	})
}

func runBlock(t *testing.T, d *datadriven.TestData) string {
	stdin := ""
	d.MaybeScanArgs(t, "stdin", &stdin)
	args, err := splitWords(d.Input)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	out, errs, status := call(t, stdin, args...)
	if at := usageStart.FindStringIndex(errs); at != nil && d.Cmd != "help" {
		errs = errs[:at[0]] + "(usage)\n"
	}
	out, errs = fileTime.ReplaceAllString(out, `"modifiedMs":TIME`), logTime.ReplaceAllString(errs, "[TIME]")
	var text strings.Builder
	for _, stream := range []struct{ name, text string }{{"out", out}, {"err", errs}} {
		for line := range strings.Lines(stream.text) {
			fmt.Fprintf(&text, "%s| %s\n", stream.name, strings.TrimRight(line, " \n"))
		}
	}
	fmt.Fprintf(&text, "exit %d\n", status)
	return text.String()
}

// splitWords splits a command line at blanks that are not between single quotes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted, any := false, false
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case r == '\'':
			quoted, any = !quoted, true
		case !quoted && (r == ' ' || r == '\n'):
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed in %q", line)
	}
	return words, nil
}
