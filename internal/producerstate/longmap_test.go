package producerstate

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The order is Java's, as recorded from a real HashMap.
func TestLongMapOrder(t *testing.T) {
	data, err := os.ReadFile("testdata/hashmap.txt")
	must(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")[1:]
	if len(lines) != 120 {
		t.Fatalf("%d lines", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		var m longMap[int64]
		for _, op := range strings.Fields(lines[i])[1:] {
			apply(t, &m, op)
		}
		got := "order"
		for k, v := range m.all {
			if v2, ok := m.get(k); !ok || v2 != v || v != k {
				t.Fatalf("get(%d) = %d %v", k, v2, ok)
			}
			got += fmt.Sprintf(" %d", k)
		}
		if got != lines[i+1] {
			t.Errorf("%s\ngot  %s\nwant %s", lines[i], got, lines[i+1])
		}
		if n := len(strings.Fields(got)) - 1; n != m.size {
			t.Errorf("%d entries, size %d", n, m.size)
		}
	}
}

func apply(t *testing.T, m *longMap[int64], op string) {
	t.Helper()
	var k, mod, rem int64
	switch {
	case op == "clear":
		m.clear()
	case op[0] == '+':
		_, err := fmt.Sscanf(op, "+%d", &k)
		must(t, err)
		m.put(k, k)
	default:
		_, err := fmt.Sscanf(op, "-%d:%d", &mod, &rem)
		must(t, err)
		m.removeIf(func(k int64) bool { return k%mod == rem })
	}
}
