package golden

import (
	"strconv"
	"strings"
	"testing"
)

// table is a parsed .tsv with a header line; comment holds the "# …" line that may end it.
type table struct {
	t       testing.TB
	path    string
	columns map[string]int
	rows    [][]string
	comment string
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func lines(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func readTable(t testing.TB, path string) *table {
	t.Helper()
	all := lines(readText(t, path))
	if len(all) == 0 {
		t.Fatalf("golden: %s: no header line", path)
	}
	tab := &table{t: t, path: path, columns: make(map[string]int)}
	for i, name := range strings.Split(all[0], "\t") {
		tab.columns[name] = i
	}
	for i, line := range all[1:] {
		if strings.HasPrefix(line, "# ") {
			tab.comment = strings.TrimPrefix(line, "# ")
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != len(tab.columns) {
			t.Fatalf("golden: %s:%d: %d columns, header has %d", path, i+2, len(row), len(tab.columns))
		}
		tab.rows = append(tab.rows, row)
	}
	return tab
}

// table reads expect/name; the test ends when there is none.
func (c Case) table(t testing.TB, name string) *table {
	t.Helper()
	path, ok := c.Expect(name)
	if !ok {
		t.Fatalf("golden %s: no expect/%s", c.Name, name)
	}
	return readTable(t, path)
}

func (tab *table) str(row []string, column string) string {
	tab.t.Helper()
	i, ok := tab.columns[column]
	if !ok {
		tab.t.Fatalf("golden: %s: no column %q", tab.path, column)
	}
	return row[i]
}

func (tab *table) num(row []string, column string) int64 {
	tab.t.Helper()
	s := tab.str(row, column)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		tab.t.Fatalf("golden: %s: column %q: %v", tab.path, column, err)
	}
	return n
}

// opt is num for columns that may be empty or "-": the second result is false then.
func (tab *table) opt(row []string, column string) (int64, bool) {
	tab.t.Helper()
	if s := tab.str(row, column); s == "" || s == "-" {
		return 0, false
	}
	return tab.num(row, column), true
}
