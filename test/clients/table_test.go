//go:build oracle

package clients

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/pair"
)

var update = flag.Bool("update", false, "write the table into doc/compat.md")

// column is a column of the table.
type column int

const (
	topicsColumn column = iota
	codecsColumn
	idempotentColumn
	transactionsColumn
	timeColumn
	classicColumn
	consumerColumn
	staticColumn
	patternColumn
	offsetsColumn
	columns
)

var titles = [columns]string{"topics made, listed, deleted", "codecs", "idempotent", "transactions", "look-ups by time",
	"assignors, classic", "assignors, consumer protocol", "static members", "patterns of topics", "offsets resumed"}

const (
	document = "../../doc/compat.md"
	begin    = "<!-- clients:begin -->\n"
	end      = "<!-- clients:end -->\n"
)

// table is what the runs have seen: one row a client.
func table(runs []*run) string {
	var b strings.Builder
	b.WriteString("| client | version |")
	for _, title := range titles {
		fmt.Fprintf(&b, " %s |", title)
	}
	b.WriteString("\n|" + strings.Repeat("---|", int(columns)+2) + "\n")
	for _, r := range runs {
		fmt.Fprintf(&b, "| %s | %s |", r.client.title, strings.TrimPrefix(r.version, "v"))
		for c := range columns {
			cell := strings.Join(r.saw[c], ", ")
			if cell == "" {
				cell = "—"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compareTable compares the table with the document, or writes it there.
func compareTable(t *testing.T, runs []*run) {
	t.Helper()
	for _, r := range runs {
		if t.Failed() || len(r.saw[offsetsColumn]) < 2 || pair.Twin() {
			return // a part of the matrix only, or not Tidemark
		}
	}
	b, err := os.ReadFile(filepath.FromSlash(document))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), begin)
	old, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the table", document)
	}
	text := table(runs)
	if old == text {
		return
	}
	if !*update {
		t.Fatalf("%s is not what this test finds; -update writes it. It finds:\n%s", document, text)
	}
	if err := os.WriteFile(filepath.FromSlash(document), []byte(before+begin+text+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
