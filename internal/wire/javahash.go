package wire

import "unicode/utf16"

// JavaHash is String.hashCode of Java: 31 times the hash of what came before plus the next UTF-16 code unit, in 32
// bits. Kafka derives the coordinator's partition of a group or transactional id from it.
func JavaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r <= 0xffff {
			h = 31*h + r
			continue
		}
		high, low := utf16.EncodeRune(r)
		h = 31*(31*h+high) + low
	}
	return h
}
