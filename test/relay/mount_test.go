//go:build oracle && linux

package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/golden"
	"tidemark/test/proc"
)

// mountReadOnly runs a command in a mount namespace of its own where the directory $0 is mounted read-only.
const mountReadOnly = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" &&
if touch "$0/x" 2>/dev/null; then echo "the mount is not read-only"; exit 9; fi && exec "$@"`

// A directory of Kafka's on a file system that is mounted read-only is served with Kafka's answers. (The mount needs
// root, or a kernel that gives users namespaces of their own.)
func TestReadOnlyMount(t *testing.T) {
	c := golden.Load(t, "13-data")
	dir := c.CopyDir(t, golden.Data)
	addr := fmt.Sprintf("127.0.0.1:%d", proc.FreePorts(t, 1)[0])
	p := proc.Start(t, "tidemark", "unshare", "--map-root-user", "--mount", "sh", "-c", mountReadOnly, dir,
		proc.Tidemark(t), "serve", "--read-only", dir, "--listen", addr, "--set", "tidemark.admin.listener=")
	p.WaitListening(t, addr)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sameLookups(ctx, t, c, kadm.NewClient(client))
	err = client.ProduceSync(ctx, &kgo.Record{Topic: "t-b", Value: []byte("v")}).FirstErr()
	if err == nil || !errors.As(err, new(*kerr.Error)) {
		t.Errorf("a record for a directory that is mounted read-only: %v", err)
	}
	if exit := p.Stop(t); exit != 0 {
		t.Errorf("exit status %d:\n%s", exit, proc.Tail(p.Log(), 20))
	}
}

func sameLookups(ctx context.Context, t *testing.T, c golden.Case, admin *kadm.Client) {
	t.Helper()
	asked := 0
	for _, q := range c.ListOffsets(t) {
		if q.Query < 0 || q.Isolation != 0 || strings.HasPrefix(q.Topic, "__") {
			continue
		}
		found, err := admin.ListOffsetsAfterMilli(ctx, q.Query, q.Topic)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := found.Lookup(q.Topic, q.Partition)
		if !ok || got.Err != nil || got.Timestamp != q.Timestamp || q.Offset >= 0 && got.Offset != q.Offset {
			t.Errorf("look-up of %d in %s: %+v, want offset %d of %d", q.Query, q.Topic, got, q.Offset, q.Timestamp)
		}
		asked++
	}
	if asked == 0 {
		t.Error("the case has no look-ups")
	}
}
