package tidemarktest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func produce(t *testing.T, b *Broker, value string) int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r, err := client.ProduceSync(t.Context(), kgo.StringRecord(value)).First()
	if err != nil {
		t.Fatal(err)
	}
	return r.Offset
}

func TestRestartKeepsAddressAndRecords(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			b := Start(t, Options{Dir: dir})
			addr := b.Addr()
			if got := produce(t, b, "before"); got != 0 {
				t.Fatalf("first record at offset %d", got)
			}
			if err := b.Restart(); err != nil {
				t.Fatal(err)
			}
			if b.Addr() != addr {
				t.Errorf("address %s, before %s", b.Addr(), addr)
			}
			if got := produce(t, b, "after"); got != 1 {
				t.Errorf("record after the restart at offset %d, want 1", got)
			}
		})
	}
}

func TestDirHoldsKafkasFiles(t *testing.T) {
	dir := t.TempDir()
	b := Start(t, Options{Dir: dir})
	produce(t, b, "v")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "t-0", "00000000000000000000.log")); err != nil {
		t.Error(err)
	}
}

func TestBrokersAreSeparate(t *testing.T) {
	one, other := Start(t, Options{}), Start(t, Options{})
	produce(t, one, "one")
	if got := produce(t, other, "other"); got != 0 {
		t.Errorf("offset %d in a new broker", got)
	}
}

func TestRefusedConfig(t *testing.T) {
	if b, err := New(Options{Config: map[string]string{"num.partitions": "none"}}); err == nil {
		t.Errorf("started at %s", b.Addr())
	}
}
