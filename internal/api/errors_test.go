package api

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/internal/commitlog"
	"tidemark/internal/logdir"
	"tidemark/internal/replica"
)

// below are the packages whose errors may come up to a handler, from the module's root.
var below = []string{"vfs", "record", "internal/wire", "internal/index", "internal/checkpoint",
	"internal/producerstate", "internal/segment", "internal/commitlog", "internal/cleaner", "internal/logdir",
	"internal/protocol", "internal/metadata", "internal/auth", "internal/config", "internal/group", "internal/txn",
	"internal/controller", "internal/quorum", "internal/replica", "internal/coordinator"}

// neverAnswered are the errors that no client can meet, and why. UNKNOWN_SERVER_ERROR would be the answer.
var neverAnswered = map[string]string{
	"vfs.ErrLocked":                      "start only",
	"vfs.LockedError":                    "start only",
	"record.ErrOffset":                   "of the caller of a builder",
	"record.ErrBatchFull":                "of the caller of a builder; as undecodable from a message set",
	"record.ErrShort":                    "of the caller of a parser",
	"record.ErrTooLarge":                 "as commitlog.ErrUndecodable",
	"record.CodecError":                  "Kafka answers UNKNOWN_SERVER_ERROR",
	"record.ReadError":                   "the disk's, which segment unwraps",
	"wire.ErrShort":                      "malformed requests close the connection",
	"wire.ErrVarint":                     "malformed requests close the connection",
	"wire.ErrLength":                     "malformed requests close the connection",
	"wire.ErrTag":                        "malformed requests close the connection",
	"commitlog.ErrChanged":               "of the cleaner, which begins anew",
	"logdir.IdentityError":               "start only",
	"index.ErrFull":                      "rolls the segment",
	"segment.ErrSeal":                    "the seal is void, its segment is checked",
	"index.CorruptError":                 "the index is rebuilt",
	"index.OrderError":                   "of the caller of an index",
	"index.RangeError":                   "rolls the segment",
	"checkpoint.MalformedError":          "start only",
	"producerstate.CorruptSnapshotError": "start only",
	"producerstate.UnknownTxnError":      "a broken invariant",
	"commitlog.ErrOffsetsOutOfOrder":     "follower only",
	"commitlog.ErrUnexpectedOffset":      "follower only",
	"commitlog.ErrReadOnly":              "offline tools only",
	"commitlog.AppendError":              "wraps its reason",
	"logdir.ErrUnknownPartition":         "a broken invariant",
	"logdir.NameError":                   "start only",
	"protocol.MalformedError":            "closes the connection",
	"metadata.UnknownRecordError":        "start only",
	"metadata.MalformedRecordError":      "start only",
	"metadata.ReplayError":               "a broken invariant",
	"config.Error":                       "wraps its kind",
	"controller.Error":                   "wraps its reason",
	"group.ErrUnknownRecord":             "loading only",
	"group.Refusal":                      "wraps its kind",
	"txn.ErrUnknownKey":                  "loading only",
}

// Every error that a lower package exports has a code, or a reason why it needs none.
func TestEveryErrorHasACode(t *testing.T) {
	mapped := mappedErrors(t)
	found := map[string]bool{}
	for _, dir := range below {
		for _, name := range exportedErrors(t, filepath.Join("..", "..", dir)) {
			found[name] = true
			_, excused := neverAnswered[name]
			switch {
			case !mapped[name] && !excused:
				t.Errorf("%s has no code: add it to errors.go, or to neverAnswered with a reason", name)
			case mapped[name] && excused:
				t.Errorf("%s has a code, and is said to need none", name)
			}
		}
	}
	for name := range neverAnswered {
		if !found[name] {
			t.Errorf("neverAnswered names %s, which is no error", name)
		}
	}
	if len(found) < 60 {
		t.Errorf("only %d errors found: the search is broken", len(found))
	}
}

func parseDir(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// exportedErrors are the variables Err… and the types with a method Error of a package, as package.Name.
func exportedErrors(t *testing.T, dir string) []string {
	var out []string
	for _, file := range parseDir(t, dir) {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || d.Name.Name != "Error" || len(d.Type.Params.List) > 0 {
					continue
				}
				recv := d.Recv.List[0].Type
				if star, ok := recv.(*ast.StarExpr); ok {
					recv = star.X
				}
				if name, ok := recv.(*ast.Ident); ok && name.IsExported() {
					out = append(out, file.Name.Name+"."+name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || d.Tok != token.VAR {
						continue
					}
					for _, name := range v.Names {
						if strings.HasPrefix(name.Name, "Err") {
							out = append(out, file.Name.Name+"."+name.Name)
						}
					}
				}
			}
		}
	}
	return out
}

// mappedErrors are the errors named in a table of errorCode, or asked for with isA.
func mappedErrors(t *testing.T) map[string]bool {
	out := map[string]bool{}
	note := func(x ast.Expr) {
		if star, ok := x.(*ast.StarExpr); ok {
			x = star.X
		}
		if s, ok := x.(*ast.SelectorExpr); ok {
			out[fmt.Sprint(s.X, ".", s.Sel)] = true
		}
	}
	for _, file := range parseDir(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if array, ok := n.Type.(*ast.ArrayType); ok && fmt.Sprint(array.Elt) == "errorCode" {
					for _, row := range n.Elts {
						note(row.(*ast.CompositeLit).Elts[0])
					}
				}
			case *ast.IndexExpr:
				if fmt.Sprint(n.X) == "isA" {
					note(n.Index)
				}
			}
			return true
		})
	}
	return out
}

// The code is that of the innermost error that has one, however it is wrapped.
func TestCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int16
	}{
		{nil, 0},
		{errors.New("ours"), -1},
		{fmt.Errorf("append: %w", replica.ErrNotEnoughReplicas), 19},
		{fmt.Errorf("%w: %w", commitlog.ErrFailed, &fs.PathError{Op: "write", Err: fs.ErrPermission}), 56},
		{&fs.PathError{Op: "read", Err: fs.ErrPermission}, 56},
		{&logdir.OfflineError{Dir: "d"}, 56},
		{&commitlog.AppendError{Reason: commitlog.ErrCorruptMessage}, 2},
		{&commitlog.OffsetOutOfRangeError{}, 1},
	} {
		if got := code(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}
