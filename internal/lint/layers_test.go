package lint

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "tidemark"

// rows reads doc/layers.txt: package path below the module ("." is the module itself) → its row, from 0.
func rows(t *testing.T) map[string]int {
	t.Helper()
	out := make(map[string]int)
	row := 0
	for _, line := range strings.Split(read(t, "doc/layers.txt"), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, p := range strings.Fields(line) {
			if _, twice := out[p]; twice {
				t.Errorf("doc/layers.txt: %s has two rows", p)
			}
			out[p] = row
		}
		row++
	}
	return out
}

type listed struct {
	ImportPath string
	Deps       []string
	Imports    []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Deps,Imports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// below cuts the module's name off an import path; ok is false for packages of others.
func below(importPath string) (path string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func TestLayers(t *testing.T) {
	row := rows(t)
	for _, p := range list(t) {
		name, _ := below(p.ImportPath)
		if strings.HasPrefix(name, "test/") || name == "internal/lint" {
			continue
		}
		own, known := row[name]
		if !known {
			t.Errorf("%s has no row in doc/layers.txt", name)
			continue
		}
		for _, imported := range p.Imports {
			other, ours := below(imported)
			if !ours {
				continue
			}
			if strings.HasPrefix(other, "test/") {
				t.Errorf("%s imports %s, which is for tests", name, other)
			} else if row[other] >= own {
				t.Errorf("%s (row %d) imports %s (row %d): arrows point down only", name, own, other, row[other])
			}
		}
	}
}

// The storage must be usable without what speaks the wire: nothing below the protocol depends on it even indirectly.
func TestStorageKnowsNoWire(t *testing.T) {
	row := rows(t)
	for _, p := range list(t) {
		name, _ := below(p.ImportPath)
		if own, known := row[name]; !known || own >= row["internal/protocol"] {
			continue
		}
		for _, d := range p.Deps {
			if strings.HasPrefix(d, "github.com/twmb/") {
				t.Errorf("%s depends on %s", name, d)
			}
		}
	}
}
