package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/test/golden"
)

// dumpFlags are the options with which each golden output was made.
var dumpFlags = map[string][]string{
	"dump-log.txt":                  {"--deep-iteration", "--print-data-log"},
	"dump-log-t-a-0.txt":            {"--deep-iteration", "--print-data-log"},
	"dump-log-t-b-0.txt":            {"--deep-iteration", "--print-data-log"},
	"dump-log-shallow.txt":          {},
	"dump-index.txt":                {},
	"dump-timeindex.txt":            {},
	"dump-txnindex.txt":             {},
	"dump-snapshot.txt":             {},
	"dump-bootstrap-checkpoint.txt": {"--cluster-metadata-decoder"},
	"dump-cluster-metadata.txt":     {"--cluster-metadata-decoder"},
	"dump-consumer-offsets.txt":     {"--offsets-decoder"},
	"dump-transaction-state.txt":    {"--transaction-log-decoder"},
	"dump-index-sanity.txt":         {"--index-sanity-check"},
	"dump-verify-index.txt":         {"--verify-index-only"},
}

// TestDumpLogGolden compares every golden output of the dump tool, of sound and of
// damaged files, with what is printed here.
func TestDumpLogGolden(t *testing.T) {
	compared := 0
	for _, c := range golden.Cases(t) {
		for name, flags := range dumpFlags {
			if _, ok := c.Expect(name); !ok {
				continue
			}
			t.Run(c.Name+"/"+name, func(t *testing.T) { compareDump(t, c, name, flags) })
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("only %d golden outputs were found", compared)
	}
}

func compareDump(t *testing.T, c golden.Case, name string, flags []string) {
	root := c.Path
	if other := c.Info.SameAs[name]; other != "" {
		root = filepath.Join(filepath.Dir(c.Path), other)
	}
	want := c.ExpectText(t, name)
	t.Chdir(root)
	var files []string
	for line := range strings.Lines(want) {
		if file, ok := strings.CutPrefix(line, "Dumping "); ok {
			files = append(files, strings.TrimSpace(file))
		}
	}
	got := goldenDump(t, root, strings.Join(files, ","), flags)
	if d := cmp.Diff(sortReport(want), sortReport(got)); d != "" {
		t.Errorf("-want +got:\n%s", firstLines(d, 40))
	}
}

var reportHead = regexp.MustCompile(`^(Mismatches in :|Found timestamp mismatch|Found out of order|` +
	`The following indexed|` +
	`Non-consecutive offsets)`)

// sortReport splits an output into lines and sorts the findings at its end by file: in
// Kafka they come in the order of a hash over the absolute paths.
func sortReport(output string) []string {
	var lines, blocks []string
	for line := range strings.Lines(output) {
		switch {
		case reportHead.MatchString(line):
			blocks = append(blocks, line)
		case len(blocks) > 0:
			blocks[len(blocks)-1] += line
		default:
			lines = append(lines, line)
		}
	}
	slices.Sort(blocks)
	return append(lines, blocks...)
}

// goldenDump is the output over files in the form of the golden outputs: paths are
// relative, and what ends the tool begins with EXCEPTION.
func goldenDump(t *testing.T, root, files string, flags []string) string {
	out, status := callJoined(t, append([]string{"kafka-dump-log", "--files", files}, flags...)...)
	out = strings.ReplaceAll(out, root+string(filepath.Separator), "")
	failed := strings.Contains(out, "Exception in thread \"main\" ")
	if (status != 0) != failed {
		t.Errorf("%s: exit status %d with output\n%s", files, status, firstLines(out, 5))
	}
	return strings.ReplaceAll(out, "Exception in thread \"main\" ", "EXCEPTION ")
}

func firstLines(s string, n int) string {
	lines := strings.SplitAfterN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "")
}

// TestDumpLogLive is the dump of a running broker's indexes, which have room after the
// entries: zeroes, and an entry less in the time index than after a clean stop.
func TestDumpLogLive(t *testing.T) {
	c := golden.Load(t, "01-seed-demo")
	const base = "00000000000000000000"
	dir := filepath.Join(t.TempDir(), c.PartitionName())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for suffix, shape := range map[string]struct{ keep, size int }{
		".log": {22580, 22580}, ".index": {792, 10485760}, ".timeindex": {1188, 10485756},
	} {
		data, err := os.ReadFile(filepath.Join(c.TreePath(t, golden.Final), base+suffix))
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(dir, base+suffix), append(data[:shape.keep], make([]byte, shape.size-shape.keep)...))
	}
	root := filepath.Dir(dir)
	t.Chdir(root)
	for name, d := range map[string]struct {
		suffix string
		flags  []string
	}{
		"dump-index-live.txt":            {".index", nil},
		"dump-timeindex-live.txt":        {".timeindex", nil},
		"dump-timeindex-live-sanity.txt": {".timeindex", []string{"--index-sanity-check"}},
	} {
		got := goldenDump(t, root, filepath.Join(c.PartitionName(), base+d.suffix), d.flags)
		if diff := cmp.Diff(c.ExpectText(t, name), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, firstLines(diff, 40))
		}
	}
}
