package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidemark/test/golden"
)

var (
	inTicks   = regexp.MustCompile("`[^`]*`")
	fieldName = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
)

// documentedFields are the names in the table of doc/log-tools.md, by command.
func documentedFields(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../doc/log-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "\n## ")
	fields, command := make(map[string]map[string]bool), ""
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| command") {
			continue
		}
		if name := strings.Trim(cells[1], " `"); name != "" {
			command, fields[name] = name, map[string]bool{"type": true}
		}
		for _, part := range inTicks.FindAllString(cells[3], -1) {
			for _, name := range fieldName.FindAllString(part, -1) {
				fields[command][name] = true
			}
		}
	}
	return fields
}

// namedByData are the fields whose members are named by what was found, not by the format.
var namedByData = []string{"codecs", "magics", "findings"}

// namesIn adds the names of all fields in a value.
func namesIn(v any, names map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			namesIn(one, names)
		}
	case map[string]any:
		for name, one := range v {
			names[name] = true
			if !slices.Contains(namedByData, name) {
				namesIn(one, names)
			}
		}
	}
}

// rarelySeen are documented fields that no command here writes: of files that nobody may see, of other faults.
var rarelySeen = []string{"unknownBecause", "error", "mark", "damage", "kept", "max", "severity", "count", "base64"}

// TestLogSchema holds the fields that the commands write, over directories of every kind, against those that the
// documentation names: none is missing there, and each that it names is written.
func TestLogSchema(t *testing.T) {
	documented, written := documentedFields(t), make(map[string]map[string]bool)
	for _, name := range []string{
		"06-transactions", "10-crash-flip-middle-segment", "11-legacy-v1", "12-shapes", "13-data",
	} {
		c := golden.Load(t, name)
		tree := golden.Dir0
		for _, other := range []golden.Tree{golden.Before, golden.Data} {
			if c.Has(other) {
				tree = other
			}
		}
		dir := c.TreePath(t, tree)
		for _, command := range []string{
			"ls", "ls --sort size", "find --time 0 --explain", "find --offset 3 --explain", "find --time max", "cat --control",
			"verify", "repair", "stats", "txns", "cache", "export -o " + t.TempDir(),
		} {
			words := strings.Fields(command)
			out, errs, _ := call(t, "", slices.Concat([]string{"log"}, words, []string{"--json", dir})...)
			names := written[words[0]]
			if names == nil {
				names = make(map[string]bool)
				written[words[0]] = names
			}
			for line := range strings.Lines(out) {
				var v any
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Fatalf("%s of %s: %v\n%s%s", command, name, err, line, errs)
				}
				namesIn(v, names)
			}
		}
	}
	for command, names := range written {
		for name := range names {
			if name != "base64" && !documented[command][name] && (command != "repair" || !documented["verify"][name]) {
				t.Errorf("%s writes %q, which is not documented", command, name)
			}
		}
		for name := range documented[command] {
			if !names[name] && !slices.Contains(rarelySeen, name) {
				t.Errorf("%s does not write %q, as documented", command, name)
			}
		}
	}
}
