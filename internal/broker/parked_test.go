package broker

import (
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// parkedFetches is how many consumers wait in the test below.
const parkedFetches = 1000

// waitingFetch is the frame of a fetch at offset 0 of topic a that waits for a minute.
func waitingFetch() []byte {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes = 11, -1, 60_000, 1, 1<<20
	r.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = "a"
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes, p.CurrentLeaderEpoch = 1<<20, -1
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return kmsg.NewRequestFormatter().AppendRequest(nil, r, 7)
}

// A consumer that waits costs nothing until something happens: in 5 seconds with 1 000 of them no goroutine of a
// connection runs and no parked fetch is looked at. One record then answers them all.
func TestThousandWaitingConsumersCostNothing(t *testing.T) {
	quiet := 5 * time.Second
	if testing.Short() {
		quiet = time.Second / 2
	}
	b := startBroker(t, t.TempDir(), nil)
	if _, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), 1, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	producer := client(t, b, kgo.DefaultProduceTopic("a"))
	if err := producer.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	frame, before := waitingFetch(), b.server.Wakeups()
	conns := make([]net.Conn, parkedFetches)
	for i := range conns {
		c, err := net.Dial("tcp", b.Addresses()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		conns[i] = c
	}
	// Each connection has run once at least, and for a second none has.
	settled, still := b.server.Wakeups(), 0
	for deadline := time.Now().Add(time.Minute); still < 5 && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond)
		now := b.server.Wakeups()
		if still++; now != settled || now-before < parkedFetches {
			settled, still = now, 0
		}
	}
	looks := b.replicas.WakeUps()
	time.Sleep(quiet)
	if woken, looked := b.server.Wakeups()-settled, b.replicas.WakeUps()-looks; woken != 0 || looked != 0 {
		t.Errorf("in %v with %d waiting fetches: %d runs of connections and %d looks at fetches, want none",
			quiet, parkedFetches, woken, looked)
	}
	if err := producer.ProduceSync(t.Context(), kgo.StringRecord("wake up")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for i, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 4)); err != nil {
			t.Fatalf("answer to waiting fetch %d: %v", i, err)
		}
	}
}
