package cli

import "unicode/utf8"

// JavaString decodes UTF-8 as Java does and gives the text as UTF-8 again: each longest
// piece that could have begun a character, but did not go on as one, becomes U+FFFD.
func JavaString(b []byte) string { return string(JavaText(b)) }

// JavaText is JavaString without a copy: b itself when it is valid UTF-8.
func JavaText(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	text := make([]byte, 0, len(b))
	for len(b) > 0 {
		if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size > 1 {
			text = append(text, b[:size]...)
			b = b[size:]
			continue
		}
		text = utf8.AppendRune(text, utf8.RuneError)
		b = b[malformed(b):]
	}
	return text
}

// malformed is the length of the malformed piece that b starts with.
func malformed(b []byte) int {
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	follows := func(i int) bool { return at(i)&0xc0 == 0x80 }
	switch lead := b[0]; {
	case lead >= 0xe0 && lead <= 0xef:
		return malformed3(lead, at(1), follows)
	case lead >= 0xf0 && lead <= 0xf4:
		second := at(1)
		if !follows(1) || lead == 0xf0 && second < 0x90 || lead == 0xf4 && second > 0x8f {
			return 1
		}
		if !follows(2) {
			return 2
		}
		return 3
	}
	return 1
}

func malformed3(lead, second byte, follows func(int) bool) int {
	switch {
	case !follows(1) || lead == 0xe0 && second < 0xa0:
		return 1
	case follows(2): // a surrogate, which has no place in UTF-8
		return 3
	}
	return 2
}
