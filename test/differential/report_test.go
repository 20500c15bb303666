//go:build oracle

package differential

import (
	"fmt"
	"sort"
	"strings"
	"testing"
)

// report collects differences. The same one in several requests is told once, with all of them.
type report struct {
	order []string
	cases map[string][]string // message and difference → the requests
}

func (r *report) add(name, message string, version int16, difference string) {
	key := message + ":\n" + difference
	if r.cases == nil {
		r.cases = make(map[string][]string)
	}
	if r.cases[key] == nil {
		r.order = append(r.order, key)
	}
	r.cases[key] = append(r.cases[key], fmt.Sprintf("%s v%d", name, version))
}

func (r *report) flush(t *testing.T) {
	t.Helper()
	for _, key := range r.order {
		t.Errorf("%s\n    in: %s", key, strings.Join(r.cases[key], ", "))
	}
	r.order, r.cases = nil, nil
}

// maxLines bounds what is told of one difference.
const maxLines = 8

// difference tells the fields in which two answers differ, empty when in none.
func difference(kafka, tidemark any) string {
	a, b := make(map[string]string), make(map[string]string)
	flatten("", kafka, a)
	flatten("", tidemark, b)
	var lines []string
	for path, value := range a {
		if other, ok := b[path]; !ok {
			lines = append(lines, fmt.Sprintf("    %s: Kafka %s, Tidemark has none", path, value))
		} else if other != value {
			lines = append(lines, fmt.Sprintf("    %s: Kafka %s, Tidemark %s", path, value, other))
		}
	}
	for path, value := range b {
		if _, ok := a[path]; !ok {
			lines = append(lines, fmt.Sprintf("    %s: Kafka has none, Tidemark %s", path, value))
		}
	}
	sort.Strings(lines)
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("    … and %d more", len(lines)-maxLines))
	}
	return strings.Join(lines, "\n")
}

// flatten writes the leaves of a tree by their paths. An element of a list is known by its name where it has one, so
// that one element more does not make all that follow look different.
func flatten(path string, tree any, out map[string]string) {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			if key != "UnknownTags" && key != "Version" {
				flatten(path+"."+key, value, out)
			}
		}
	case []any:
		out[path+".length"] = fmt.Sprint(len(v))
		for i, value := range v {
			step := fmt.Sprint(i)
			if m, ok := value.(map[string]any); ok && m["Name"] != nil {
				step = fmt.Sprint(m["Name"])
			}
			flatten(path+"["+step+"]", value, out)
		}
	default:
		out[path] = fmt.Sprintf("%#v", v)
		if n, ok := v.(fmt.Stringer); ok {
			out[path] = n.String()
		}
	}
}
