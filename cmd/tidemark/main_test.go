package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/cmd/internal/cli"
)

func TestNamesOfLinks(t *testing.T) {
	for _, name := range []string{"kafka-topics", "kafka-topics.sh", "/opt/kafka/bin/kafka-topics.sh"} {
		var out, errs bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now}
		if status := run(context.Background(), env, []string{name, "--version"}); status != 0 || out.String() != "4.3.1\n" {
			t.Errorf("%s: exit status %d, %q %q", name, status, &out, &errs)
		}
	}
	if _, errs, status := call(t, "", "no-such-command"); status != 1 || !strings.Contains(errs, "no-such-command") {
		t.Errorf("an unknown command: exit status %d, %q", status, errs)
	}
}

func TestInstallTools(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	var out bytes.Buffer
	env := &cli.Env{Stdout: &out}
	for range 2 { // the second time over its own links
		if err := installTools(env, "/usr/bin/tidemark", dir, false); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2*len(tools) {
		t.Fatalf("%d entries (%v)", len(entries), err)
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err != nil || target != "/usr/bin/tidemark" {
			t.Errorf("%s points to %q (%v)", e.Name(), target, err)
		}
	}
}

func TestInstallToolsLeavesForeignFiles(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "kafka-topics.sh")
	mustWrite(t, foreign, []byte("theirs"))
	env := &cli.Env{Stdout: &bytes.Buffer{}}
	if err := installTools(env, "/usr/bin/tidemark", dir, false); err == nil || !strings.Contains(err.Error(), foreign) {
		t.Fatalf("a foreign file in the way: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries after the refusal (%v)", len(entries), err)
	}
	if data, _ := os.ReadFile(foreign); string(data) != "theirs" {
		t.Errorf("the foreign file now is %q", data)
	}
	if err := installTools(env, "/usr/bin/tidemark", dir, true); err != nil {
		t.Fatal(err)
	}
	if target, _ := os.Readlink(foreign); target != "/usr/bin/tidemark" {
		t.Errorf("with --force it points to %q", target)
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
	}}
	want := "tidemark v1.2.3 commit abc+changes go1.26.0 linux/arm64, Kafka 4.3.1"
	if got := versionText(info); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if out, _, status := call(t, "", "version"); status != 0 || !strings.HasPrefix(out, "tidemark ") {
		t.Errorf("exit status %d, %q", status, out)
	}
}

func TestCompletion(t *testing.T) {
	got := completeOptions(*toolNamed("kafka-get-offsets"), "--topic")
	isLong := func(s string) bool { return strings.HasPrefix(s, "--topic-partitions\t") }
	if len(got) != 2 || !slices.ContainsFunc(got, isLong) {
		t.Errorf("options beginning with --topic: %q", got)
	}
	if got := completeOptions(*toolNamed("kafka-get-offsets"), "to"); got != nil {
		t.Errorf("a word that is no option: %q", got)
	}
	out, _, status := call(t, "", "completion", "bash")
	if status != 0 || !strings.Contains(out, "tidemark") {
		t.Errorf("completion script: exit status %d, %d bytes", status, len(out))
	}
}

func TestSplitOutside(t *testing.T) {
	for text, want := range map[string][]string{
		"a=1,b=2": {"a=1", "b=2"}, "a=[1,2],b=3": {"a=[1,2]", "b=3"}, "a=[1,2": {"a=[1", "2"}, "a": {"a"}, "": {""},
		"a=1,,b": {"a=1", "", "b"},
	} {
		if got := splitOutside(text, ','); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
