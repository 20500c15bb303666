//go:build oracle

package clients

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tidemark/test/proc"
)

// patience bounds everything that is waited for: no client needs it when all goes well.
const patience = 2 * time.Minute

// request is one request to a driver; which fields it has depends on what is to be done.
type request struct {
	Do            string   `json:"do"`
	ID            string   `json:"id,omitempty"` // of a producer or consumer
	Topic         string   `json:"topic,omitempty"`
	Partitions    int      `json:"partitions,omitempty"`
	Partition     int      `json:"partition"`
	Values        []string `json:"values,omitempty"`
	Times         []int64  `json:"times,omitempty"` // of the values, milliseconds; absent: now
	Codec         string   `json:"codec,omitempty"`
	Idempotent    bool     `json:"idempotent,omitempty"`
	Transactional string   `json:"transactional,omitempty"`
	Commit        bool     `json:"commit,omitempty"` // of a transaction that ends
	Group         string   `json:"group,omitempty"`
	Topics        []string `json:"topics,omitempty"`
	Pattern       string   `json:"pattern,omitempty"`
	Protocol      string   `json:"protocol,omitempty"`
	Assignor      string   `json:"assignor,omitempty"`
	Instance      string   `json:"instance,omitempty"`
	Committed     bool     `json:"committed,omitempty"` // reads committed records only
	Offset        int64    `json:"offset,omitempty"`
	Time          int64    `json:"time,omitempty"`  // milliseconds
	From          string   `json:"from,omitempty"`  // the topic that is copied
	Count         int      `json:"count,omitempty"` // of records to copy
}

// answer is the answer to a request.
type answer struct {
	Error    string
	Version  string
	Topics   []string
	Records  []seen
	Assigned []string // "topic-partition"; nil: the client does not tell
	Offset   int64
}

// seen is a record that a consumer has read.
type seen struct {
	Topic     string
	Partition int32
	Offset    int64
	Value     string
}

// driver is a process that runs a client: it answers one request after another, each a line of JSON.
type driver struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	lines   chan []byte // closed when the driver's output ends
	logPath string      // what it writes to standard error
}

// startDriver starts the program of a client. It ends with the test, or when its standard input is closed.
func startDriver(t *testing.T, name string, cmd *exec.Cmd) *driver {
	t.Helper()
	d := &driver{name: name, cmd: cmd, lines: make(chan []byte), logPath: filepath.Join(t.TempDir(), "stderr")}
	log, err := os.Create(d.logPath)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if d.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	over := make(chan struct{})
	go d.read(stdout, over)
	t.Cleanup(func() {
		d.stdin.Close()
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		close(over)
		for range d.lines {
		}
		_ = cmd.Wait() // how it ends is of no interest: all answers have come
		timer.Stop()
	})
	return d
}

func (d *driver) read(stdout io.Reader, over <-chan struct{}) {
	defer close(d.lines)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		if line := scanner.Bytes(); len(line) > 0 && line[0] == '{' {
			select {
			case d.lines <- append([]byte(nil), line...):
			case <-over:
			}
		}
	}
}

// try sends a request and returns the answer, or the error that the client met.
func (d *driver) try(t *testing.T, r request) (answer, error) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.stdin.Write(append(b, '\n')); err != nil {
		t.Fatalf("%s: %+v: %v; its log:\n%s", d.name, r, err, d.log())
	}
	select {
	case line, ok := <-d.lines:
		if !ok {
			t.Fatalf("%s ended at %s; its log:\n%s", d.name, b, d.log())
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("%s: %s: %v: %s", d.name, b, err, line)
		}
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-time.After(patience):
		_ = d.cmd.Process.Kill()
		t.Fatalf("%s does not answer %s within %v; its log:\n%s", d.name, b, patience, d.log())
	}
	panic("not reached")
}

// call is try for requests that must succeed.
func (d *driver) call(t *testing.T, r request) answer {
	t.Helper()
	a, err := d.try(t, r)
	if err != nil {
		t.Fatalf("%s: %+v: %v; its log:\n%s", d.name, r, err, d.log())
	}
	return a
}

func (d *driver) log() string {
	b, err := os.ReadFile(d.logPath)
	if err != nil {
		return err.Error()
	}
	return proc.Tail(string(b), 60)
}
