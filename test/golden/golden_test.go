package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// Every case parses, and a copy of its final folder equals what Kafka said it left.
func TestEveryCaseReads(t *testing.T) {
	cases := Cases(t)
	if len(cases) < 70 {
		t.Fatalf("%d cases in %s", len(cases), Dir())
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { readCase(t, c) })
	}
}

func readCase(t *testing.T, c Case) {
	parsers := map[string]func(){
		"records.tsv":      func() { c.Records(t) },
		"list-offsets.tsv": func() { c.ListOffsets(t) },
		"fetch.tsv":        func() { c.Fetches(t) },
		"epoch-end.tsv":    func() { c.EpochEnds(t) },
		"producers.tsv":    func() { c.Producers(t) },
		"checkpoints.tsv":  func() { c.Checkpoints(t) },
		"tools.tsv":        func() { c.ToolCalls(t) },
		"files.tsv":        func() { c.Files(t, "files.tsv") },
		"files-live.tsv":   func() { c.Files(t, "files-live.tsv") },
		"events.tsv":       func() { c.Rows(t, "events.tsv") },
	}
	for name, parse := range parsers {
		if _, ok := c.Expect(name); ok {
			parse()
		}
	}
	switch {
	case c.Refused():
		if c.CopyDir(t, Before); c.AfterStart(t).ExitStatus == 0 {
			t.Error("refused, but exit status 0")
		}
	case !c.Has(Final):
		c.CopyDir(t, Data)
	case c.Has(Dir0):
		c.CommittedRecords(t)
		compareFiles(t, c.CopyDir(t, Dir0), c.Files(t, "files.tsv"))
	default:
		c.CommittedRecords(t)
		compareFiles(t, c.CopyDir(t, After), c.AfterStart(t).FilesClosed)
	}
}

func compareFiles(t *testing.T, dir string, want []File) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("no files listed")
	}
	for _, f := range want {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Error(err)
			continue
		}
		sum := sha256.Sum256(data)
		if int64(len(data)) != f.SizeBytes || hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s: %d bytes %x, Kafka left %d bytes %s", f.Name, len(data), sum, f.SizeBytes, f.SHA256)
		}
	}
}

func TestMtimesAreApplied(t *testing.T) {
	c := Load(t, "11-legacy-v0")
	dir := c.CopyDir(t, Dir0)
	for name, ms := range c.Mtimes(t, Dir0) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.ModTime().UnixMilli(); got != ms {
			t.Errorf("%s: mtime %d, want %d", name, got, ms)
		}
	}
	if len(c.Mtimes(t, Dir0)) == 0 {
		t.Error("no modification time known")
	}
}

func TestAbortedLists(t *testing.T) {
	if got, null := parseAborted(t, "[18:0, 17:3]"); null || len(got) != 2 || got[1] != (Aborted{17, 3}) {
		t.Errorf("got %v, null %v", got, null)
	}
	if got, null := parseAborted(t, "[]"); null || len(got) != 0 {
		t.Errorf("got %v, null %v", got, null)
	}
	if _, null := parseAborted(t, "null"); !null {
		t.Error("null list not recognised")
	}
	if n := len(ErrorAnswers(t)); n < 50 {
		t.Errorf("%d error answers", n)
	}
}
