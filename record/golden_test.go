package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/golden"
)

// goldenLogs returns the start (≤ 32 KiB) of every .log and .checkpoint of the
// golden directories, each content once.
func goldenLogs(t testing.TB) [][]byte {
	t.Helper()
	seen := map[string]bool{}
	var logs [][]byte
	err := filepath.WalkDir(golden.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(path, ".log") || strings.HasSuffix(path, ".checkpoint")) {
			return err
		}
		p, err := os.ReadFile(path)
		if p = p[:min(len(p), 32<<10)]; !seen[string(p)] {
			seen[string(p)] = true
			logs = append(logs, p)
		}
		return err
	})
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d golden logs, %v", len(logs), err)
	}
	return logs
}
