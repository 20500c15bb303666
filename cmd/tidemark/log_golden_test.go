package main

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/golden"
)

// TestLogCommandsGolden runs every log command that reads, with --json and as text, over the golden directories, the
// damaged ones (those of a crash with --json only) and those of old message formats too. Each must end well, and each
// line of JSON must be an object with a type.
func TestLogCommandsGolden(t *testing.T) {
	commands := [][]string{
		{"ls", "--segments"}, {"ls", "--scan"}, {"find", "--time", "0", "--explain"}, {"find", "--time", "max"},
		{"find", "--offset", "3", "--explain"}, {"cat", "--control"},
		{"cat", "--isolation", "read_committed", "--limit", "2"},
		{"cat", "--format", "hex", "--limit", "2"}, {"stats", "--segments"}, {"txns"}, {"cache", "--files"},
	}
	for _, c := range golden.Cases(t) {
		for _, tree := range []golden.Tree{golden.Dir0, golden.Before, golden.Data} {
			if !c.Has(tree) || testing.Short() && !strings.HasPrefix(c.Name, "1") {
				continue
			}
			dir := c.TreePath(t, tree)
			for _, command := range commands {
				args := append(append([]string{"log"}, command...), "--zone", "UTC", dir)
				if !strings.HasPrefix(c.Name, "10-crash") {
					if out, errs, status := call(t, "", args...); status != 0 || out == "" && command[0] == "ls" {
						t.Errorf("%s: %q: status %d\n%s", c.Name, command, status, errs)
					}
				}
				out, errs, status := call(t, "", append(args, "--json")...)
				if status != 0 {
					t.Errorf("%s: %q --json: status %d\n%s", c.Name, command, status, errs)
				}
				checkJSONLines(t, c.Name+" "+strings.Join(command, " "), out)
			}
		}
	}
}

func checkJSONLines(t *testing.T, what, out string) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var object struct{ Type string }
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil || object.Type == "" {
			t.Errorf("%s: %v in %.200s", what, err, lines.Text())
			return
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestLogWrongInput gives what is no directory of logs: each is refused with status 2 and a message that names it.
func TestLogWrongInput(t *testing.T) {
	dir := golden.Load(t, "01-seed-demo").TreePath(t, golden.Dir0)
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct{ args, names string }{
		{"ls " + missing, missing}, {"ls " + empty, empty}, {"verify " + missing, missing},
		{"find --time 1 --offset 1 " + dir, "--offset"}, {"find " + dir, "--time"},
		{"find --time yesteryear " + dir, "yesteryear"},
		{"find --offset -1 " + dir, "-1"}, {"cat --from x " + dir, "x"}, {"cat --format xml " + dir, "--format"},
		{"cat --grep ( " + dir, "--grep"}, {"ls --sort age " + dir, "age"}, {"txns --state maybe " + dir, "maybe"},
		{"ls --zone Mars " + dir, "Mars"}, {"ls --set nothing " + dir, "nothing"},
		{"stats --config " + missing + " " + dir, missing},
		{"ls --topic [ " + dir, "["}, {"ls --topic other " + dir, dir}, {"export " + dir, "-o"}, {"report " + dir, "-o"},
		{"ls " + filepath.Join(dir, "partition.metadata"), "partition.metadata"},
	} {
		_, errs, status := call(t, "", append([]string{"log"}, strings.Split(c.args, " ")...)...)
		if status != 2 || !strings.Contains(errs, c.names) {
			t.Errorf("%s: status %d, %q", c.args, status, errs)
		}
	}
}
