package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tidemark/cmd/internal/cli"
	"tidemark/test/golden"
)

// TestLogRepairCommand mends a folder on disk, and serves as the documented example.
func TestLogRepairCommand(t *testing.T) {
	dir := golden.Load(t, "10-crash-flip-middle-segment").CopyDir(t, golden.Before)
	if out, errs, status := call(t, "", "log", "repair", dir); status != 1 || !strings.Contains(out, "would: ") {
		t.Errorf("dry run: status %d\n%s%s", status, out, errs)
	}
	out, errs, status := call(t, "", "log", "repair", "--apply", dir)
	if status != 0 || !strings.Contains(out, "0 errors and warnings are left") {
		t.Errorf("apply: status %d\n%s%s", status, out, errs)
	}
	if out, errs, status := call(t, "", "log", "verify", dir); status != 0 {
		t.Errorf("verify afterwards: status %d\n%s%s", status, out, errs)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "cut-*")); len(kept) != 1 {
		t.Errorf("kept %v", kept)
	}
}

// TestLogExportCommand exports on disk what kafka-dump-log reads.
func TestLogExportCommand(t *testing.T) {
	from := golden.Load(t, "01-seed-demo").TreePath(t, golden.Dir0)
	out := t.TempDir()
	text, errs, status := call(t, "", "log", "export", "--from", "100", "--to", "200", "-o", out, from)
	if status != 0 || !strings.Contains(text, "offsets 100 to 199") {
		t.Fatalf("status %d\n%s%s", status, text, errs)
	}
	log := filepath.Join(out, "01-seed-demo-0", "00000000000000000100.log")
	text, errs, status = call(t, "", "kafka-dump-log", "--deep-iteration", "--files", log)
	if status != 0 || strings.Count(text, "| offset: ") != 100 || strings.Contains(text, "isvalid: false") {
		t.Errorf("status %d\n%s%s", status, text, errs)
	}
}

// TestLogCacheCommand asks for the residency of files that were just read. What the system does not tell is unknown.
func TestLogCacheCommand(t *testing.T) {
	dir := golden.Load(t, "10-crash-intact").CopyDir(t, golden.After)
	out, errs, status := call(t, "", "log", "cache", "--json", dir)
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	var r struct {
		Type  string
		Files []struct {
			Kind     string
			Pages    int64
			Resident int64 `json:"residentPages"`
			Why      string
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Type != "residency" || len(r.Files) != 19 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range r.Files {
		if f.Resident > f.Pages || f.Resident < -1 {
			t.Errorf("%+v", f)
		}
	}
	if out, errs, status := call(t, "", "log", "cache", "--files", dir); status != 0 ||
		!strings.Contains(out, "timeindex") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

var outside = regexp.MustCompile(`(?i)(src|href)="?(https?:)?//|url\(|@import|<script|<link`)

// TestLogReportCommand writes a page of healthy and damaged folders: it is whole and asks for nothing outside.
func TestLogReportCommand(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	_, errs, status := call(t, "", "log", "report", "--zone", "UTC", "-o", page,
		golden.Load(t, "03-out-of-order").TreePath(t, golden.Dir0),
		golden.Load(t, "11-legacy-v0").TreePath(t, golden.Dir0),
		golden.Load(t, "01-empty").TreePath(t, golden.Dir0),
		golden.Load(t, "10-crash-flip-middle-segment").TreePath(t, golden.Before))
	if status != 0 {
		t.Fatalf("status %d\n%s", status, errs)
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if at := outside.FindString(text); at != "" {
		t.Errorf("the page asks for something: %q", at)
	}
	for _, want := range []string{"wrong-checksum", "03-out-of-order-0", "out of order", "prefers-color-scheme", "</html>",
		"resident"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page has a number or text that came out wrong")
	}
	if n := strings.Count(text, "<svg"); n != 20 || strings.Count(text, "</svg>") != n {
		t.Errorf("%d pictures", n)
	}
}

// TestLogHelp holds every subcommand to a help text with examples that parse.
func TestLogHelp(t *testing.T) {
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: new(lockedBuffer), Stderr: new(lockedBuffer)}
	commands := logCommand(env).Commands()
	if len(commands) < 10 {
		t.Errorf("only %d commands", len(commands))
	}
	for _, c := range commands {
		if c.Long == "" || c.Short == "" || !strings.Contains(c.Example, "tidemark log "+c.Name()) {
			t.Errorf("%s: help or examples are missing", c.Name())
		}
		if !strings.Contains(c.Long, "--json") || !strings.Contains(c.Long, exitPrefix) {
			t.Errorf("%s: the help does not tell of --json or of the exit status", c.Name())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len([]rune(line)) > 121 {
				t.Errorf("%s: a line of the help is too long: %s", c.Name(), line)
			}
		}
		for line := range strings.Lines(c.Example) {
			_, args, ok := strings.Cut(line, "tidemark log "+c.Name())
			if !ok {
				t.Errorf("%s: not an example: %s", c.Name(), line)
				continue
			}
			args, _, _ = strings.Cut(args, " | ")
			words, err := splitWords(strings.ReplaceAll(args, `"`, "'"))
			if err == nil {
				err = c.ParseFlags(words)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", c.Name(), strings.TrimSpace(line), err)
			}
		}
	}
	if status := run(context.Background(), env, []string{"tidemark", "log"}); status != 0 {
		t.Errorf("help: status %d", status)
	}
}

// TestLogReportToPipe writes the page to the standard output and to a named pipe, which stays one.
func TestLogReportToPipe(t *testing.T) {
	dir := golden.Load(t, "01-empty").TreePath(t, golden.Dir0)
	out, errs, status := call(t, "", "log", "report", "-o", "-", dir)
	if status != 0 || !strings.Contains(out, "</html>") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		data, err := os.ReadFile(pipe)
		read <- fmt.Sprint(string(data), err)
	}()
	if _, errs, status := call(t, "", "log", "report", "-o", pipe, dir); status != 0 {
		t.Fatalf("status %d\n%s", status, errs)
	}
	if text := <-read; !strings.Contains(text, "</html>") {
		t.Errorf("read %q", text)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v, %v", info, err)
	}
}

// TestLogUnreadable looks at a log directory of which one log cannot be read: all else is looked at, and the status
// tells.
func TestLogUnreadable(t *testing.T) {
	dir := golden.Load(t, "13-data").CopyDir(t, golden.Data)
	if _, err := os.Stat(filepath.Join(dir, "t-a-1")); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "t-a-1", "00000000000000000000.log")
	if err := errors.Join(os.Remove(log), os.Symlink(log, log)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"ls", "ls --json", "find --time 2026-09-24", "cat --limit 1", "verify --json", "stats", "txns", "cache --json",
		"export -o " + t.TempDir(),
	} {
		out, errs, status := call(t, "", append([]string{"log"}, append(strings.Fields(command), dir)...)...)
		if status != 2 || !strings.Contains(errs, "t-a-1") {
			t.Errorf("%s: status %d\n%s", command, status, errs)
		}
		if !strings.Contains(out, "t-b") && !strings.Contains(out, `"partitions":8`) {
			t.Errorf("%s: the others are missing:\n%s", command, out)
		}
		if strings.Contains(out, "replication-offset-checkpoint") {
			t.Errorf("%s: the log that cannot be read is judged:\n%s", command, out)
		}
		for line := range strings.Lines(out) {
			if strings.Contains(command, "json") && !json.Valid([]byte(line)) {
				t.Errorf("%s: %s", command, line)
			}
		}
	}
}
