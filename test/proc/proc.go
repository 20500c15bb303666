// Package proc starts, stops and kills the child processes of tests: servers and command lines.
//
// A process never outlives its test: the test's cleanup kills what still runs, and a pipe held as its standard input
// tells those that watch it that the test process has gone.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Result is what a command line printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Exit           int // −1 when it was killed
}

// Patience bounds what a process may take to start, to end or to do its work. Only one that hangs takes so long.
const Patience = 3 * time.Minute

// Run runs a program to its end, at most for [Patience], with text on its standard input.
func Run(t testing.TB, stdin, path string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s %q did not end within %v; stdout %q, stderr %q", path, args, Patience, out.String(), errOut.String())
	case err != nil && !errors.As(err, &exit):
		t.Fatalf("%s: %v", path, err)
	}
	return Result{Stdout: out.String(), Stderr: errOut.String(), Exit: cmd.ProcessState.ExitCode()}
}

// The ports that FreePorts gives out are below those that systems give to connections and to listeners without a port
// of their own (from 32768 on): no connection takes such a port while its server is being started again, and none is
// made to itself.
const (
	firstPort = 10_240
	lastPort  = 32_767
)

// FreePorts returns n loopback TCP ports that nobody listens on. They are the test's until its end: a UDP socket on the
// same number keeps other tests, of other processes too, from taking them.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range 10_000 {
		if len(ports) == n {
			return ports
		}
		port := firstPort + rand.IntN(lastPort+1-firstPort)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		claim, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			claim.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { claim.Close() })
		ports = append(ports, port)
	}
	t.Fatalf("no %d free ports", n)
	return nil
}

// Process is a running child.
type Process struct {
	Name    string
	LogPath string // standard output and standard error, together
	cmd     *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
}

// Start starts a program whose output goes to a file name.log of the test's temporary directory. A data race that the
// output tells of fails the test.
func Start(t testing.TB, name, path string, args ...string) *Process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &Process{Name: name, LogPath: log.Name(), cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // the state is read from ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill(t)
		if _, race, found := strings.Cut(p.Log(), "WARNING: DATA RACE"); found {
			t.Errorf("%s: data race:%s", name, race)
		}
	})
	return p
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns what the process has printed so far.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Stop sends SIGTERM and waits for the end. It returns the exit status.
func (p *Process) Stop(t testing.TB) int {
	t.Helper()
	return p.signal(t, syscall.SIGTERM)
}

// Kill sends SIGKILL and waits for the end; a process that has ended already is left as it is.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
}

func (p *Process) signal(t testing.TB, s syscall.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v to %s: %v", s, p.Name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Fatalf("%s still runs %v after %v; its log:\n%s", p.Name, Patience, s, Tail(p.Log(), 40))
	}
	return p.cmd.ProcessState.ExitCode()
}

// WaitListening waits until a TCP connection to addr succeeds, and fails the test when the process ends first or does
// not listen within [Patience].
func (p *Process) WaitListening(t testing.TB, addr string) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for time.Now().Before(deadline) {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended at start: %v; its log:\n%s", p.Name, p.cmd.ProcessState, Tail(p.Log(), 40))
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not listen on %s after %v; its log:\n%s", p.Name, addr, Patience, Tail(p.Log(), 40))
}

// Tail returns the last n lines of a text.
func Tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("… %d lines before", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}

// Number is the number in an environment variable that makes a test longer or says its seed, otherwise when it is not
// set.
func Number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
