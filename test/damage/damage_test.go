// Package damage serves every golden folder that was damaged, and judges the answers of Kafka 4.3.1, which the case
// holds, and of Tidemark against what the intact batches of the folder say. The table of both is in doc/compat.md:
//
//	go test ./test/damage -update
//
// writes it.
package damage

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/golden"
)

var update = flag.Bool("update", false, "write the table into doc/compat.md")

// knownOpen are the cases that do not say yes in every cell of Tidemark, and why.
var knownOpen = map[string]string{}

const (
	document = "../../doc/compat.md"
	begin    = "<!-- damage:begin -->\n"
	end      = "<!-- damage:end -->\n"
)

// intact are the cases in which nothing is damaged.
var intact = map[string]bool{"10-clean-intact": true, "10-crash-intact": true, "10-crash-intact-recovery-point": true}

func TestDamageTable(t *testing.T) {
	cases := golden.Cases(t, "10-")
	whole := wholeLog(t, golden.Load(t, "10-crash-intact"))
	data := template(t, cases[0])
	var table strings.Builder
	table.WriteString("Each golden folder `10-*`, started as Kafka was. A cell is *Kafka 4.3.1 · Tidemark*; " +
		"Tidemark is asked more often,\nand again after an append and a clean restart.\n\n")
	table.WriteString("| case | damage | starts | every intact record readable | look-ups true | read_committed |\n")
	table.WriteString("|---|---|---|---|---|---|\n")
	yes := map[string]int{}
	for _, c := range cases {
		tr := findTruth(t, c.TreePath(t, golden.Before), whole)
		kafka := kafkaVerdict(t, c, tr)
		var ours verdict
		t.Run(c.Name, func(t *testing.T) {
			ours = tidemarkVerdict(t, place(t, data, c), tr)
			reason, open := knownOpen[c.Name]
			switch {
			case !ours.yes() && !open:
				t.Errorf("%s: %q", c.Info.Damage, ours.cells())
			case ours.yes() && open:
				t.Errorf("known to be open, but it is not: %s", reason)
			}
		})
		if intact[c.Name] != (kafka.yes() && strings.HasPrefix(c.Info.Damage, "nothing")) {
			t.Errorf("%s: Kafka on an intact folder: %q: the truth of this test is not Kafka's", c.Name, kafka.cells())
		}
		row(&table, c, kafka, ours)
		if !intact[c.Name] {
			count(yes, kafka, ours)
		}
	}
	damaged := len(cases) - len(intact)
	fmt.Fprintf(&table, "\nYes in every cell: Kafka 4.3.1 in %d of %d damaged folders, Tidemark in %d of %d.\n",
		yes["kafka"], damaged, yes["ours"], damaged)
	t.Logf("yes in every cell of %d damaged folders: Kafka %d, Tidemark %d", damaged, yes["kafka"], yes["ours"])
	checkDocument(t, table.String())
}

func count(yes map[string]int, kafka, ours verdict) {
	if kafka.yes() {
		yes["kafka"]++
	}
	if ours.yes() {
		yes["ours"]++
	}
}

// row writes both servers' cells: one word where they say the same.
func row(table *strings.Builder, c golden.Case, kafka, ours verdict) {
	fmt.Fprintf(table, "| %s | %s |", c.Name, c.Info.Damage)
	k, o := kafka.cells(), ours.cells()
	for i := range k {
		fmt.Fprintf(table, " %s · %s |", k[i], o[i])
	}
	table.WriteString("\n")
}

// checkDocument compares the table in the document, or writes it there.
func checkDocument(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(document))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no place for the table", document)
	}
	if old == table {
		return
	}
	if !*update {
		t.Fatalf("%s is not what this test finds; -update writes it. It finds:\n%s", document, table)
	}
	if err := os.WriteFile(filepath.FromSlash(document), []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
