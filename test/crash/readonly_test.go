package crash

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/ledger"
	"tidemark/test/proc"
)

// treeHash is a checksum over the names, sizes and bytes of all that is below a directory.
func treeHash(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %v\n", path, d.IsDir())
		if d.IsDir() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// readOnly serves what the kill left without changing it: all answers are those of a start that recovers.
func (w *world) readOnly() {
	w.t.Helper()
	before := treeHash(w.t, w.dir)
	var addr string
	w.process, addr = serveReadOnly(w.t, proc.Tidemark(w.t)+" serve --read-only "+w.dir)
	w.client = ledger.Dial(w.t, addr)
	for _, writer := range w.writers {
		if err := writer.reconcile(w.client.EndOffset(w.t, writer.book.Topic, writer.book.ID)); err != nil {
			w.t.Error(err)
		}
		writer.book.Reopen()
	}
	w.book.Check(w.t, w.client)
	if exit := w.process.Stop(w.t); exit != 0 {
		w.t.Errorf("exit status %d", exit)
	}
	if treeHash(w.t, w.dir) != before {
		w.t.Error("serving read-only changed something")
	}
}

// serveReadOnly runs a command line that serves read-only, on a port of its own.
func serveReadOnly(t *testing.T, command string) (*proc.Process, string) {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", proc.FreePorts(t, 1)[0])
	p := proc.Start(t, "tidemark", "sh", "-c", "exec "+command+" --listen "+addr+" --set tidemark.admin.listener= "+
		"--set group.initial.rebalance.delay.ms=0")
	p.WaitListening(t, addr)
	return p, addr
}

// A directory that must not be led is refused with a command line; pasted into a shell, it serves all that is there.
func TestRefusalNamesACommandThatWorks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kafka's data")
	p, addr := proc.Serve(t, dir, 0, "--set", "tidemark.admin.listener=")
	c := ledger.Dial(t, addr)
	c.CreateTopic(t, "events", 1)
	book := ledger.New()
	events := book.Partition("events", 0)
	events.Lead(c.Metadata(t, "events")["events"].Partitions[0].LeaderEpoch)
	batch := ledger.Batch{ProducerID: -1, Records: []ledger.Record{{Timestamp: 5, Value: []byte("one")},
		{Timestamp: 7, Value: []byte("two")}}}
	data, err := batch.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Produce("events", 0, data)
	if err != nil || got.Err() != nil {
		t.Fatal(err, got.Err())
	}
	events.Added(batch, got)
	if exit := p.Stop(t); exit != 0 {
		t.Fatalf("exit status %d", exit)
	}
	if err := os.RemoveAll(filepath.Join(dir, "__cluster_metadata-0")); err != nil {
		t.Fatal(err)
	}
	before := treeHash(t, dir)
	refused := proc.Run(t, "", proc.Tidemark(t), "serve", "--data", dir, "--listen", "127.0.0.1:0")
	_, command, found := strings.Cut(strings.TrimSpace(refused.Stderr), "without changing anything: tidemark ")
	if refused.Exit != 1 || !found {
		t.Fatalf("exit status %d, %s", refused.Exit, refused.Stderr)
	}
	p, addr = serveReadOnly(t, proc.Tidemark(t)+" "+command)
	book.Check(t, ledger.Dial(t, addr))
	if exit := p.Stop(t); exit != 0 {
		t.Errorf("exit status %d", exit)
	}
	if treeHash(t, dir) != before {
		t.Error("the refused directory was changed")
	}
}
