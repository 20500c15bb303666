// Package lint tests the source tree itself: the order of layers (doc/layers.txt), the sizes of functions, files and
// lines, what may touch the clock, the disk and chance, documented names, words that have no place here, and links.
package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the top of the tree, relative to this package.
const root = "../.."

// goldenData holds files of Kafka's making, which are compared, never edited.
const goldenData = "test/golden/data"

// files returns the files of the tree that a suffix ends, relative to the top, without golden data and what git
// ignores at the top.
func files(t *testing.T, suffixes ...string) []string {
	t.Helper()
	skipped := map[string]bool{".git": true, "bin": true, "tidemark-data": true, goldenData: true}
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			if skipped[rel] {
				return fs.SkipDir
			}
			return nil
		}
		for _, s := range suffixes {
			if strings.HasSuffix(rel, s) {
				out = append(out, rel)
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("no file ends in %q: the walk is broken", suffixes)
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
