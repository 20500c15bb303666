package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The expectations of this file were printed by Java.

func TestHashOrder(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("topic-%d", i))
	}
	HashOrder(names, 0, func(s string) string { return s })
	var got []string
	for _, name := range names {
		got = append(got, strings.TrimPrefix(name, "topic-"))
	}
	want := "6 7 8 9 0 1 30 2 31 3 10 32 4 11 33 5 12 34 24 25 26 27 28 29 20 21 22 23 13 35 14 36 15 37 16 38 17 39 18 19"
	if d := cmp.Diff(strings.Fields(want), got); d != "" {
		t.Errorf("forty topics (-want +got):\n%s", d)
	}
	names = []string{"a", "Bb", "AaC", "é", "日本", "x-1", "t.y_z"}
	HashOrder(names, 5, func(s string) string { return s })
	if d := cmp.Diff([]string{"Bb", "a", "AaC", "t.y_z", "é", "日本", "x-1"}, names); d != "" {
		t.Errorf("with a capacity (-want +got):\n%s", d)
	}
}

func TestJavaDouble(t *testing.T) {
	for want, d := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1.0": 1, "1024.0": 1024, "1.0E7": 1e7, "1.2345678E7": 12345678,
		"0.0015": 1.5e-3, "9.99E-4": 9.99e-4, "1.0E-10": 1e-10, "123456.789": 123456.789, "1.0E21": 1e21,
		"1.7976931348623157E308": math.MaxFloat64, "NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1),
		"0.1": 0.1, "100.0": 100, "9999999.0": 9999999, "9999999.5": 9999999.5, "-2048.0": -2048,
	} {
		if got := JavaDouble(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for want, f := range map[string]float32{"0.1": 0.1, "1.0E10": 1e10, "3.4E38": 3.4e38, "1.6777216E7": 16777216} {
		if got := JavaFloat(f); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
}

func TestJavaString(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 日本 😀":         "plain é 日本 😀",
		"\xf7\x96\xb9":         "\ufffd\ufffd\ufffd",
		"\xec\xedv":            "\ufffd\ufffdv",
		"\xe6\x97":             "\ufffd",
		"\xe6\x97x":            "\ufffdx",
		"\xed\xa0\x80":         "\ufffd",
		"\xe0\x80\x80":         "\ufffd\ufffd\ufffd",
		"\xf0\x9f\x98":         "\ufffd",
		"\xf4\x90\x80\x80":     "\ufffd\ufffd\ufffd\ufffd",
		"\xc3(":                "\ufffd(",
		"":                     "",
		"\xf0\x9f\x98\x80\x80": "😀\ufffd",
	} {
		if got := JavaString([]byte(in)); got != want {
			t.Errorf("%x: %x, want %x", in, got, want)
		}
	}
}

func FuzzJavaString(f *testing.F) {
	f.Add([]byte("\xf0\x9f\x98 \xe6\x97\xed\xa0\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := JavaString(b); len(got) > 3*len(b) {
			t.Errorf("%x grew to %d bytes", b, len(got))
		}
	})
}
