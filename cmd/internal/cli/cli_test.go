package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Parser
	list, topic, codec, keys, count *Option
}

func newSample() *sample {
	s := &sample{}
	s.AddHelp()
	s.list = s.Flag("list", "List.")
	s.topic = s.Text("topic", "topic", "Topic.")
	s.codec = s.Add(Option{Name: "codec", Arity: OptionalArg})
	s.keys = s.Add(Option{Name: "keys", Arity: RequiredArg, Separator: ","})
	s.count = s.Number("Integer", "count", "n", "Count.", "7")
	return s
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		line, topic, codec, keys string
		list                     bool
	}{
		{line: "--list --topic a", topic: "a", list: true},
		{line: "-list -topic=a", topic: "a", list: true},
		{line: "--topic --list", topic: "--list"},
		{line: "--topic=a=b", topic: "a=b"},
		{line: "--codec --list", list: true},
		{line: "--codec gzip plain --list", codec: "gzip", list: true},
		{line: "--keys a,,b --keys c", keys: "a b c"},
		{line: "--keys ,", keys: ""},
		{line: "--list=whatever", list: true},
		{line: "--topic a -- --list", topic: "a"},
		{line: "- --topic a", topic: "a"},
	} {
		s := newSample()
		if err := s.Parse(strings.Fields(test.line)); err != nil {
			t.Errorf("%s: %v", test.line, err)
			continue
		}
		topic, _ := s.topic.Value()
		codec, _ := s.codec.Value()
		if topic != test.topic || codec != test.codec || s.list.Has() != test.list ||
			strings.Join(s.keys.Values(), " ") != test.keys {
			t.Errorf("%s: topic %q codec %q keys %q list %t", test.line, topic, codec, s.keys.Values(), s.list.Has())
		}
	}
}

func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"--foo":     "foo is not a recognized option",
		"--foo=bar": "foo is not a recognized option",
		"-foo":      "f is not a recognized option",
		"--topic":   "Option topic requires an argument",
	} {
		var option *OptionError
		if err := newSample().Parse(strings.Fields(line)); !errors.As(err, &option) || option.Message != want {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	s := newSample()
	if err := s.Parse([]string{"--topic", "a", "--topic", "b", "--count", "2147483648"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.topic.Value(); err == nil ||
		err.Error() != "Found multiple arguments for option topic, but you asked for only one" {
		t.Errorf("two topics: %v", err)
	}
	_, err := s.count.Int()
	want := "joptsimple.OptionArgumentConversionException: Cannot parse argument '2147483648' of option count\n" +
		"Caused by: joptsimple.internal.ReflectionException: java.lang.NumberFormatException: For input string: " +
		"\"2147483648\"\nCaused by: java.lang.NumberFormatException: For input string: \"2147483648\"\n"
	if d := cmp.Diff(want, AsFailure(err).Trace()); d != "" {
		t.Errorf("a number above 32 bits (-want +got):\n%s", d)
	}
	if n, err := newSample().count.Int(); n != 7 || err != nil {
		t.Errorf("default: %d, %v", n, err)
	}
}

func TestHelp(t *testing.T) {
	var p Parser
	p.Text("zone", "a b c d e f g h i j k l m n o p q r s t u v",
		"Words that go on and on until the line is full, and on.")
	p.Flag("all", "All.\n\tindented")
	p.Number("Long", "ms", "", "Time.", "5")
	p.Add(Option{Name: "codec", Arity: OptionalArg, ArgName: "codec"})
	var out bytes.Buffer
	if err := p.WriteHelp(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"Option                                 Description                             ",
		"------                                 -----------                             ",
		"--all                                  All.                                    ",
		"                                       \tindented                               ",
		"--codec [String: codec]                                                        ",
		"--ms <Long>                            Time. (default: 5)                      ",
		"--zone <String: a b c d e f g h i j k  Words that go on and on until the line  ",
		"  l m n o p q r s t u v>                 is full, and on.                      ",
		"",
	}, "\n")
	got := out.String()
	if d := cmp.Diff(trimmed(want), trimmed(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func trimmed(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

func TestLoadProperties(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.properties")
	text := "# comment\na=1\n b : two words \nc\\ d=${HOME}\nlong=one,\\\n  two\nu=\\u00e9\nempty=\n"
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := LoadProperties(name)
	if err != nil {
		t.Fatal(err)
	}
	want := Properties{"a": "1", "b": "two words ", "c d": "${HOME}", "long": "one,two", "u": "é", "empty": ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	_, err = LoadProperties(name + ".none")
	if f := AsFailure(err); f == nil || f.String() != "java.nio.file.NoSuchFileException: "+name+".none" {
		t.Errorf("a missing file: %v", err)
	}
}

func TestTopicPattern(t *testing.T) {
	for _, test := range []struct {
		pattern, topic string
		want           bool
	}{
		{"a.*", "abc", true}, {"a", "abc", false}, {"a,b", "b", true}, {"'a|b'", "a", true}, {" a b ", "ab", true},
		{"a|bc", "abc", false},
	} {
		p, err := ParseTopicPattern(test.pattern)
		if err != nil || p.Match(test.topic) != test.want {
			t.Errorf("%q against %q: want %t (%v)", test.pattern, test.topic, test.want, err)
		}
	}
	if _, err := ParseTopicPattern("*["); err == nil || err.Error() != "*[ is an invalid regex." {
		t.Errorf("a broken pattern: %v", err)
	}
}

func TestAPIFailure(t *testing.T) {
	text := "more"
	for want, f := range map[string]*Failure{
		"org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition."://
		APIFailure(3, nil),
		"org.apache.kafka.common.errors.TopicExistsException: more":   APIFailure(36, &text),
		"org.apache.kafka.common.InvalidRecordException: more":        APIFailure(87, &text),
		"org.apache.kafka.common.errors.UnknownServerException: more": APIFailure(9999, &text),
	} {
		if f.String() != want {
			t.Errorf("%q, want %q", f, want)
		}
	}
	if f := APIFailure(0, &text); f != nil {
		t.Errorf("no error: %v", f)
	}
}

func TestHostPort(t *testing.T) {
	for item, want := range map[string]string{
		"h:1": "h 1 true", "[::1]:9092": "::1 9092 true", "PLAINTEXT://h:2": "h 2 true", "h": " 0 false", ":1": " 0 false",
		"h:x": "h 0 false",
	} {
		host, port, ok := HostPort(item)
		if got := fmt.Sprint(host, " ", port, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", item, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	want := []time.Duration{50, 100, 200, 400, 800, 1000, 1000}
	for i, ms := range want {
		if got := Backoff(i + 1); got != ms*time.Millisecond {
			t.Errorf("after %d tries: %v", i+1, got)
		}
	}
	if got := Backoff(1000); got != time.Second {
		t.Errorf("after many tries: %v", got)
	}
}

// TestUnreachable: a broker that is not there is warned of, and named in the error at
// the end of the API timeout.
func TestUnreachable(t *testing.T) {
	var errs lockedBuffer
	env := &Env{Stderr: &errs, Now: func() time.Time { return time.UnixMilli(0).UTC() }}
	admin, err := NewAdmin(env, Properties{"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "120"})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	_, err = admin.Topics(t.Context())
	want := "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: listTopics"
	if f := AsFailure(err); f == nil || f.String() != want {
		t.Errorf("%v, want %s", err, want)
	}
	first, _, _ := strings.Cut(errs.String(), "\n")
	want = "[1970-01-01 00:00:00,000] WARN [AdminClient clientId=adminclient-1] Connection to node -1 (/127.0.0.1:1) " +
		"could not be established. Node may not be available. (org.apache.kafka.clients.NetworkClient)"
	if first != want {
		t.Errorf("warned %q, want %q", first, want)
	}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
