package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"tidemark/internal/inspect"
	"tidemark/test/proc"
)

// VerifyFiles has Tidemark check everything in log directories against everything else. A write that a kill cut short
// is no fault: NAME.tmp lies beside what it should have replaced, and stays in folders that no start looks into.
func VerifyFiles(t testing.TB, dirs ...string) {
	t.Helper()
	r := proc.Run(t, "", proc.Tidemark(t), append([]string{"log", "verify", "--json"}, dirs...)...)
	if r.Exit > 1 {
		t.Errorf("tidemark log verify: exit status %d\n%s", r.Exit, r.Stderr)
	}
	for line := range strings.Lines(r.Stdout) {
		var f inspect.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("tidemark log verify: %v in %s", err, line)
		}
		cut := f.Severity == inspect.Note && f.Kind == inspect.Leftover && strings.HasSuffix(f.File, ".tmp")
		if f.Type == "finding" && !cut {
			t.Errorf("tidemark log verify: %s", line)
		}
	}
}
