package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/cmd/internal/cli"
)

func TestPerfStats(t *testing.T) {
	var out strings.Builder
	now := time.UnixMilli(1_000_000)
	s := newPerfStats(&out, func() time.Time { return now }, 2000, 5000, false)
	for i := range int64(2000) {
		now = now.Add(5 * time.Millisecond)
		s.record(i%100, 1024, now.UnixMilli())
	}
	s.printTotal()
	const want = "1000 records sent, 200.0 records/sec (0.20 MB/sec), 49.5 ms avg latency, 99.0 ms max latency.\n" +
		"1000 records sent, 200.0 records/sec (0.20 MB/sec), 49.5 ms avg latency, 99.0 ms max latency.\n" +
		"2000 records sent, 200.000000 records/sec (0.20 MB/sec), 49.50 ms avg latency, 99.00 ms max latency, 50 ms 50th, " +
		"95 ms 95th, 99 ms 99th, 99 ms 99.9th.\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestPayloads: the pieces are those of Java's Scanner.
func TestPayloads(t *testing.T) {
	for _, c := range []struct {
		text, delimiter string
		want            []string
	}{
		{"a\nb\n", `\n`, []string{"a", "b"}}, {"\na\n\nb", `\n`, []string{"a", "", "b"}}, {"a", ",", []string{"a"}},
		{"a, b,c", `,\s*`, []string{"a", "b", "c"}}, {"\n\n", `\n`, []string{""}},
	} {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := readPayloads(&cli.Env{Stdout: new(bytes.Buffer)}, name, c.delimiter)
		var got []string
		for _, one := range all {
			got = append(got, string(one))
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q by %q: %q, %v; want %q", c.text, c.delimiter, got, err, c.want)
		}
	}
}

func TestJavaDate(t *testing.T) {
	at := time.Date(2026, 3, 7, 13, 5, 9, 42e6, time.Local).UnixMilli()
	for pattern, want := range map[string]string{
		"yyyy-MM-dd HH:mm:ss:SSS": "2026-03-07 13:05:09:042", "yy/M/d h:m a": "26/3/7 1:5 PM",
		"d 'of' MMMM, MMM": "7 of March, Mar", "''EEE EEEE''": "'Sat Saturday'", "D k K u": "66 13 1 6",
	} {
		form, err := parseJavaDate(pattern)
		if got := form.text(at); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"QQ", "'open"} {
		if _, err := parseJavaDate(pattern); err == nil {
			t.Errorf("%s is taken", pattern)
		}
	}
}

func TestJavaDouble(t *testing.T) {
	for text, want := range map[string]float64{"1e3": 1000, " -1 ": -1, "1.5d": 1.5, "-Infinity": math.Inf(-1), "3f": 3} {
		if got, err := parseJavaDouble(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "abc", "1_0", "inf", "nan"} {
		if got, err := parseJavaDouble(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
