package lint

import (
	"go/ast"
	"path"
	"testing"
)

// speaking are methods whose name says all there is to say.
var speaking = map[string]bool{"Error": true, "String": true, "Unwrap": true}

// Every exported name of a package has a comment, and every package one of its own.
func TestExportedNamesAreDocumented(t *testing.T) {
	commented := make(map[string]bool)
	for _, s := range sources(t) {
		dir := path.Dir(s.name)
		if s.file.Doc != nil {
			commented[dir] = true
		} else if _, seen := commented[dir]; !seen {
			commented[dir] = false
		}
		if s.isTest() && dir != "test/golden" && dir != "test/oracle" && dir != "test/proc" || s.file.Name.Name == "main" {
			continue
		}
		for _, d := range s.file.Decls {
			s.checkDecl(t, d)
		}
	}
	for dir, ok := range commented {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

func (s source) checkDecl(t *testing.T, d ast.Decl) {
	t.Helper()
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && receiverIsExported(d) && !speaking[d.Name.Name] && !isTestName(s.name) {
			t.Errorf("%s:%d: %s is not documented", s.name, s.line(d.Pos()), d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			s.checkSpec(t, d, spec)
		}
	}
}

func (s source) checkSpec(t *testing.T, d *ast.GenDecl, spec ast.Spec) {
	t.Helper()
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
			t.Errorf("%s:%d: %s is not documented", s.name, s.line(spec.Pos()), spec.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names { // the comment of a group speaks for its members
			if name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				t.Errorf("%s:%d: %s is not documented", s.name, s.line(name.Pos()), name.Name)
			}
		}
	}
}

func isTestName(name string) bool { return len(name) > 8 && name[len(name)-8:] == "_test.go" }

// receiverIsExported is true for plain functions, and for methods of exported types.
func receiverIsExported(f *ast.FuncDecl) bool {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return true
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
