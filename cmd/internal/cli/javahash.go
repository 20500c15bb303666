package cli

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// HashOrder sorts keys in place into the order in which a java.util.HashMap lists
// them: Kafka's tools print several things in that order. The keys must be distinct
// and in the order of insertion; capacity is the initial capacity of the map, 0 for
// Java's default.
func HashOrder[T any](items []T, capacity int, key func(T) string) {
	if capacity == 0 {
		capacity = 16
	}
	size := 1
	for size < capacity {
		size *= 2
	}
	for 4*len(items) > 3*size {
		size *= 2
	}
	bucket := func(item T) uint32 {
		h := javaHash(key(item))
		return (h ^ h>>16) & uint32(size-1)
	}
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(bucket(a), bucket(b)) })
}

// javaHash is String.hashCode: over UTF-16 units.
func javaHash(s string) uint32 {
	var h uint32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}
