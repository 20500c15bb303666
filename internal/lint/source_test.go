package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxFunction = 70  // lines from the opening to the closing brace
	maxFile     = 800 // lines
	maxLine     = 120 // characters, a tab counted as one
)

// source is one parsed Go file.
type source struct {
	name string // relative to the top
	text string
	file *ast.File
	set  *token.FileSet
}

func (s source) isTest() bool {
	return strings.HasSuffix(s.name, "_test.go") || strings.HasPrefix(s.name, "test/")
}

func (s source) line(p token.Pos) int { return s.set.Position(p).Line }

// sources parses every Go file that is written by hand.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	for _, name := range files(t, ".go") {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !ast.IsGenerated(file) {
			out = append(out, source{name: name, text: read(t, name), file: file, set: set})
		}
	}
	return out
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		lines := strings.Split(strings.TrimSuffix(s.text, "\n"), "\n")
		if len(lines) > maxFile {
			t.Errorf("%s: %d lines, at most %d", s.name, len(lines), maxFile)
		}
		for i, line := range lines {
			if n := utf8.RuneCountInString(line); n > maxLine {
				t.Errorf("%s:%d: %d characters, at most %d", s.name, i+1, n, maxLine)
			}
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunction {
					t.Errorf("%s:%d: %s has %d lines, at most %d", s.name, s.line(f.Pos()), f.Name.Name, n, maxFunction)
				}
			}
		}
	}
}

// forbidden are the calls that go round what is injected below the composition root.
var forbidden = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "Tick"},
	"os": {"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Stat", "Lstat", "Remove",
		"RemoveAll", "Rename", "Mkdir", "MkdirAll", "MkdirTemp", "Truncate", "Chtimes", "Link", "Symlink", "Getenv"},
	"math/rand": {"Int", "Intn", "Int31", "Int31n", "Int63", "Int63n", "Float64", "Perm", "Shuffle", "Read", "Seed"},
	"math/rand/v2": {"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint32", "Uint64", "N", "Float64", "Perm",
		"Shuffle"},
}

// free are the places at or above a composition root (a program that embeds a store is one), and the one that wraps the
// operating system's files.
func free(name string) bool {
	for _, dir := range []string{"cmd/", "internal/broker/", "tidemarktest/", "internal/lint/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return strings.HasPrefix(name, "vfs/") || !strings.Contains(name, "/")
}

func TestClockDiskAndChanceAreInjected(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || free(s.name) || isProgram(s.file) {
			continue
		}
		imported := importNames(s.file)
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, name := range forbidden[imported[x.Name]] {
				if name == sel.Sel.Name {
					t.Errorf("%s:%d: %s.%s below the broker: it is injected", s.name, s.line(sel.Pos()), x.Name, name)
				}
			}
			return true
		})
	}
}

// isProgram tells a generator that is run by hand from the code of a package.
func isProgram(f *ast.File) bool { return f.Name.Name == "main" }

// importNames maps the name by which a file knows a package to its path.
func importNames(f *ast.File) map[string]string {
	out := make(map[string]string)
	for _, imp := range f.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue // the parser took it, so it is quoted
		}
		name := path.Base(p)
		if p == "math/rand/v2" {
			name = "rand"
		}
		if imp.Name != nil {
			name = imp.Name.Name
		}
		out[name] = p
	}
	return out
}
