package metadata

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTreeAgainstMap applies random sets and deletes to a tree and to a map, and
// checks order, size, balance, and that earlier versions of the tree stay as
// they were.
func TestTreeAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTree[int, int](cmp.Compare[int])
		model := map[int]int{}
		kept, keptModel := tr, maps.Clone(model)
		for i := range rapid.IntRange(0, 200).Draw(t, "operations") {
			key := rapid.IntRange(0, 40).Draw(t, "key")
			if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
				tr = tr.delete(key)
				delete(model, key)
			} else {
				tr = tr.set(key, i)
				model[key] = i
			}
			if rapid.IntRange(0, 9).Draw(t, "keep") == 0 {
				kept, keptModel = tr, maps.Clone(model)
			}
			checkTree(t, tr, model)
		}
		checkTree(t, kept, keptModel)
	})
}

func checkTree(t *rapid.T, tr tree[int, int], model map[int]int) {
	if got := maps.Collect(tr.all()); !maps.Equal(got, model) {
		t.Fatalf("tree holds %v, want %v", got, model)
	}
	if tr.len() != len(model) {
		t.Fatalf("len %d, want %d", tr.len(), len(model))
	}
	var keys []int
	for k := range tr.all() {
		keys = append(keys, k)
	}
	if !slices.IsSorted(keys) {
		t.Fatalf("keys out of order: %v", keys)
	}
	checkBalance(t, tr.root)
}

func checkBalance(t *rapid.T, n *node[int, int]) int32 {
	if n == nil {
		return 0
	}
	l, r := checkBalance(t, n.left), checkBalance(t, n.right)
	if l-r > 1 || r-l > 1 || n.height != 1+max(l, r) {
		t.Fatalf("node %d: heights %d and %d, recorded %d", n.key, l, r, n.height)
	}
	return n.height
}

func TestTreeStopsEarly(t *testing.T) {
	tr := newTree[int, int](cmp.Compare[int])
	for i := range 10 {
		tr = tr.set(i, i)
	}
	seen := 0
	for k := range tr.all() {
		seen++
		if k == 3 {
			break
		}
	}
	if seen != 4 {
		t.Fatalf("saw %d keys after a break at the fourth", seen)
	}
}
