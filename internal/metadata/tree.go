package metadata

import (
	"iter"
)

// tree is a persistent ordered map: set and delete return a new tree and leave
// the old one as it was, sharing all nodes off the path that changed. It is a
// height-balanced (AVL) tree. The zero value is an empty map without an order;
// make one with newTree.
type tree[K, V any] struct {
	root    *node[K, V]
	compare func(a, b K) int
}

// node is immutable once linked.
type node[K, V any] struct {
	key         K
	value       V
	left, right *node[K, V]
	height      int32
	size        int
}

func newTree[K, V any](compare func(a, b K) int) tree[K, V] {
	return tree[K, V]{compare: compare}
}

// len is the number of keys.
func (t tree[K, V]) len() int { return t.root.len() }

// get returns the value of key.
func (t tree[K, V]) get(key K) (v V, ok bool) {
	for n := t.root; n != nil; {
		switch c := t.compare(key, n.key); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.value, true
		}
	}
	return v, false
}

// set returns the map with key bound to value.
func (t tree[K, V]) set(key K, value V) tree[K, V] {
	t.root = t.insert(t.root, key, value)
	return t
}

// delete returns the map without key.
func (t tree[K, V]) delete(key K) tree[K, V] {
	if _, ok := t.get(key); ok {
		t.root = t.remove(t.root, key)
	}
	return t
}

// all yields keys in order.
func (t tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.each(yield) }
}

func (t tree[K, V]) insert(n *node[K, V], key K, value V) *node[K, V] {
	if n == nil {
		return link(key, value, nil, nil)
	}
	switch c := t.compare(key, n.key); {
	case c < 0:
		return balance(n.key, n.value, t.insert(n.left, key, value), n.right)
	case c > 0:
		return balance(n.key, n.value, n.left, t.insert(n.right, key, value))
	default:
		return link(key, value, n.left, n.right)
	}
}

// remove requires that key is there.
func (t tree[K, V]) remove(n *node[K, V], key K) *node[K, V] {
	switch c := t.compare(key, n.key); {
	case c < 0:
		return balance(n.key, n.value, t.remove(n.left, key), n.right)
	case c > 0:
		return balance(n.key, n.value, n.left, t.remove(n.right, key))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	}
	first := n.right
	for first.left != nil {
		first = first.left
	}
	return balance(first.key, first.value, n.left, t.remove(n.right, first.key))
}

func (n *node[K, V]) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *node[K, V]) depth() int32 {
	if n == nil {
		return 0
	}
	return n.height
}

func (n *node[K, V]) each(yield func(K, V) bool) bool {
	return n == nil || n.left.each(yield) && yield(n.key, n.value) && n.right.each(yield)
}

func link[K, V any](key K, value V, left, right *node[K, V]) *node[K, V] {
	return &node[K, V]{
		key: key, value: value, left: left, right: right,
		height: 1 + max(left.depth(), right.depth()),
		size:   1 + left.len() + right.len(),
	}
}

// balance links subtrees whose heights differ by at most two.
func balance[K, V any](key K, value V, left, right *node[K, V]) *node[K, V] {
	switch {
	case left.depth() > right.depth()+1:
		if left.left.depth() >= left.right.depth() {
			return link(left.key, left.value, left.left, link(key, value, left.right, right))
		}
		m := left.right
		return link(m.key, m.value, link(left.key, left.value, left.left, m.left), link(key, value, m.right, right))
	case right.depth() > left.depth()+1:
		if right.right.depth() >= right.left.depth() {
			return link(right.key, right.value, link(key, value, left, right.left), right.right)
		}
		m := right.left
		return link(m.key, m.value, link(key, value, left, m.left), link(right.key, right.value, m.right, right.right))
	default:
		return link(key, value, left, right)
	}
}
