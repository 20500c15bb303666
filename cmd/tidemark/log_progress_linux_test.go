package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/cmd/internal/cli"
	"tidemark/test/golden"
)

// TestLogProgress runs commands on a terminal: each shows how far it is and takes that away, its output is whole.
func TestLogProgress(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1") // of colours it speaks, not of progress
	dir := golden.Load(t, "10-crash-flip-middle-segment").TreePath(t, golden.Before)
	for command, want := range map[string]string{
		"cat":    "\t2026-", // a record's time
		"verify": "wrong-checksum", "txns": "last stable offset", "stats": "look-ups", "repair": "would: ",
		"ls --scan": "10-crash-flip-middle-segment-0", "export -o " + t.TempDir(): "damaged parts left out",
		"report -o " + t.TempDir() + "/r.html": "1 partitions",
	} {
		text := onPseudoTerminal(t, append([]string{"log"}, append(strings.Fields(command), dir)...))
		name, _, _ := strings.Cut(command, " ")
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in the output:\n%s", command, want, text)
		}
		if !strings.Contains(text, name+" 0.0 b / 12.8 KiB") || strings.Contains(text, "\x1b[3") {
			t.Errorf("%s: no progress, or colours:\n%q", command, text)
		}
	}
}

// onPseudoTerminal runs a command whose outputs are a terminal, and returns what that was sent.
func onPseudoTerminal(t *testing.T, args []string) string {
	t.Helper()
	terminal, end := pseudoTerminal(t)
	sent := make(chan string)
	go func() {
		data, _ := io.ReadAll(terminal) // ends with an error: the other end is closed
		sent <- string(data)
	}()
	run(context.Background(), &cli.Env{Stdin: strings.NewReader(""), Stdout: end, Stderr: end, Now: time.Now},
		append([]string{"tidemark"}, args...))
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	return <-sent
}

func pseudoTerminal(t *testing.T) (terminal, end *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	fd := int(terminal.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 160}); err != nil {
		t.Fatal(err)
	}
	if end, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return terminal, end
}
