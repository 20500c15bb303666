package cli

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/wire"
)

// HashOrder sorts items in place into the order in which a java.util.HashMap with
// these keys lists them: Kafka's tools print several things in that order. The items
// must be distinct and in the order of insertion; capacity is the initial capacity of
// the map, 0 for Java's default.
func HashOrder[T any](items []T, capacity int, key func(T) string) {
	HashOrderBy(items, capacity, func(item T) uint32 { return JavaHash(key(item)) })
}

// HashOrderBy is HashOrder for keys that are not strings; hash is their hashCode.
func HashOrderBy[T any](items []T, capacity int, hash func(T) uint32) {
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
		h := hash(item)
		return (h ^ h>>16) & uint32(size-1)
	}
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(bucket(a), bucket(b)) })
}

// JavaHash is String.hashCode.
func JavaHash(s string) uint32 { return uint32(wire.JavaHash(s)) }

// JavaDouble is the text of Double.toString.
func JavaDouble(d float64) string { return javaFloat(d, 64) }

// JavaFloat is the text of Float.toString.
func JavaFloat(f float32) string { return javaFloat(float64(f), 32) }

func javaFloat(d float64, bits int) string {
	switch {
	case math.IsNaN(d):
		return "NaN"
	case math.IsInf(d, 0):
		return strings.Replace(strconv.FormatFloat(d, 'f', -1, bits), "Inf", "Infinity", 1)[btoi(d > 0):]
	case d == 0 || math.Abs(d) >= 1e-3 && math.Abs(d) < 1e7:
		return withPoint(strconv.FormatFloat(d, 'f', -1, bits))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(d, 'E', -1, bits), "E")
	n, _ := strconv.Atoi(exponent)
	return withPoint(mantissa) + "E" + strconv.Itoa(n)
}

func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
