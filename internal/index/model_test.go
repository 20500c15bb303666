package index

import (
	"os"
	"path/filepath"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"tidemark/test/golden"
)

// Random operations on an offset index, with caches too small to be of use, agree
// with a slice.
func TestOffsetModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		base := rapid.Int64Range(0, 1<<40).Draw(r, "base")
		o := testOptions(t, "x.index", base, 8*rapid.Int64Range(0, 3000).Draw(r, "slots"))
		if rapid.Bool().Draw(r, "smallCache") {
			o.Pages = NewCache(2 * pageBytes)
		}
		x := OpenOffsetIndex(o)
		var model []OffsetEntry
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				for range rapid.IntRange(1, 400).Draw(r, "n") {
					e := OffsetEntry{base + rapid.Int64Range(1, 5).Draw(r, "step"), 1}
					if n := len(model); n > 0 {
						e = OffsetEntry{e.Offset - base + model[n-1].Offset, model[n-1].Pos + 7}
					}
					full, err := x.IsFull()
					must(t, err)
					if err := x.Append(e.Offset, e.Pos); (err == ErrFull) != full {
						r.Fatalf("append %v: %v, full %v", e, err, full)
					} else if err == nil {
						model = append(model, e)
					}
				}
			},
			"truncate": func(r *rapid.T) {
				at := base + rapid.Int64Range(0, 4000).Draw(r, "at")
				must(t, x.Truncate(at))
				model = model[:sort.Search(len(model), func(i int) bool { return model[i].Offset >= at })]
			},
			"trim": func(*rapid.T) { must(t, x.Trim()) },
			"grow": func(*rapid.T) { must(t, x.Grow()) },
			"reopen": func(*rapid.T) {
				must(t, x.Trim())
				must(t, x.Close())
				x = OpenOffsetIndex(o)
			},
			"": func(r *rapid.T) { compareOffsets(r, x, model) },
		})
	})
}

func compareOffsets(r *rapid.T, x *OffsetIndex, model []OffsetEntry) {
	if n, err := x.Len(); err != nil || n != len(model) {
		r.Fatalf("%d entries, want %d: %v", n, len(model), err)
	}
	base := x.o.BaseOffset
	target := base + rapid.Int64Range(-2, 6000).Draw(r, "target")
	i := sort.Search(len(model), func(i int) bool { return model[i].Offset > target }) - 1
	want := OffsetEntry{Offset: base}
	if i >= 0 {
		want = model[i]
	}
	if e, ok, err := x.Lookup(target); err != nil || ok != (i >= 0) || e != want {
		r.Fatalf("Lookup(%d) = %v %v %v, want %v", target, e, ok, err, want)
	}
	pos := rapid.Int64Range(0, 20000).Draw(r, "pos")
	i = sort.Search(len(model), func(i int) bool { return model[i].Pos >= pos })
	e, ok, err := x.LookupEnd(pos)
	if err != nil || ok != (i < len(model)) || ok && e != model[i] {
		r.Fatalf("LookupEnd(%d) = %v %v %v", pos, e, ok, err)
	}
	if last, ok, err := x.Last(); err != nil || ok != (len(model) > 0) || ok && last != model[len(model)-1] {
		r.Fatalf("Last() = %v %v %v", last, ok, err)
	}
}

// Any bytes can be opened and searched: no panic, no entry that is not there.
func FuzzIndexFiles(f *testing.F) {
	f.Add([]byte{}, int64(0), int64(5))
	f.Add(make([]byte, 1020), int64(38), int64(40))
	for _, name := range []string{"01-seed-demo/dir/01-seed-demo-0/00000000000000000000.index",
		"01-seed-demo/dir/01-seed-demo-0/00000000000000000000.timeindex",
		"06-transactions/dir/06-transactions-0/00000000000000000048.txnindex"} {
		data, err := os.ReadFile(filepath.Join(golden.Dir(), name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, int64(0), int64(100))
	}
	f.Fuzz(func(t *testing.T, data []byte, base, target int64) {
		o := testOptions(t, "x", base, 1<<20)
		must(t, os.WriteFile(o.Name, data, 0o644))
		x, y, z := OpenOffsetIndex(o), OpenTimeIndex(o), OpenTxnIndex(o)
		_, _, err := x.Lookup(target)
		must(t, err)
		_, _, err = x.LookupEnd(target)
		must(t, err)
		_, _, err = y.Lookup(target)
		must(t, err)
		if _, _, err = z.Collect(target, target+10); err != nil && kindOf(err) != BadVersion {
			t.Error(err)
		}
		for _, err := range []error{x.Check(CheckOptions{LogSizeBytes: target}), y.Check(CheckOptions{}), z.Check()} {
			if err != nil && kindOf(err) == 0 {
				t.Error(err)
			}
		}
		must(t, x.Truncate(target))
		must(t, y.Truncate(target))
	})
}
