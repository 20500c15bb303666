package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/cmd/internal/cli"
)

// call runs the program in the test's process.
func call(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs lockedBuffer
	env := &cli.Env{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Now: time.Now}
	status = run(context.Background(), env, append([]string{"tidemark"}, args...))
	return out.String(), errs.String(), status
}

// callJoined is call with both outputs in one, in the order in which they were written.
func callJoined(t *testing.T, args ...string) (output string, status int) {
	t.Helper()
	var out lockedBuffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Now: time.Now}
	status = run(context.Background(), env, append([]string{"tidemark"}, args...))
	return out.String(), status
}

func mustWrite(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
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
