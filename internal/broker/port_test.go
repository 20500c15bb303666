package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/proc"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

const portPartitions = 8

// TestPortOpensWhenAllPartitionsAnswer holds up the loading of one partition of several: until it is let go the client
// port refuses connections and the admin port says so; the first request that gets through is answered for every
// partition.
func TestPortOpensWhenAllPartitionsAnswer(t *testing.T) {
	dir := t.TempDir()
	fillPartitions(t, dir)
	for name, clean := range map[string]bool{"clean": true, "recovery": false} {
		t.Run(name, func(t *testing.T) {
			if !clean {
				if err := vfs.OS().Remove(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
					t.Fatal(err)
				}
			}
			portOpensLast(t, dir)
		})
	}
}

// fillPartitions makes a directory with a topic that has one record in each partition.
func fillPartitions(t *testing.T, dir string) {
	t.Helper()
	b := startBroker(t, dir, nil)
	c := client(t, b, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), portPartitions, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	for i := range int32(portPartitions) {
		if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Partition: i}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	stopBroker(t, b)
}

func portOpensLast(t *testing.T, dir string) {
	ports := proc.FreePorts(t, 2)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	reached, letGo := make(chan struct{}), make(chan struct{})
	noteReached, release := sync.OnceFunc(func() { close(reached) }), sync.OnceFunc(func() { close(letGo) })
	defer release()
	slow := faultfs.Wrap(vfs.OS(), faultfs.Func(func(op faultfs.Op, name string) error {
		if op == faultfs.ReadDir && filepath.Base(name) == "a-3" {
			noteReached()
			<-letGo
		}
		return nil
	}))
	type outcome struct {
		broker *Broker
		err    error
	}
	started := make(chan outcome, 1)
	go func() {
		b, err := Start(context.WithoutCancel(t.Context()), Options{FS: slow, Properties: map[string]string{
			"log.dirs": dir, "listeners": "PLAINTEXT://" + address, "num.recovery.threads.per.data.dir": "4",
			adminKey: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))}})
		started <- outcome{b, err}
	}()
	<-reached
	for range 20 { // the other partitions are loaded meanwhile
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("while a partition is being loaded: got %v, %v, want a refused connection", c, err)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if status := readiness(t, ports[1]); status != http.StatusServiceUnavailable {
		t.Errorf("/ready meanwhile: got %d, want 503", status)
	}
	release()
	offsets := firstAnswer(t, address)
	o := <-started
	if o.err != nil {
		t.Fatal(o.err)
	}
	stopBroker(t, o.broker)
	for i, p := range offsets {
		if p.ErrorCode != 0 || p.Offset != 1 {
			t.Errorf("partition %d: got error %d, offset %d, want 0 and 1", i, p.ErrorCode, p.Offset)
		}
	}
	if len(offsets) != portPartitions {
		t.Errorf("got answers for %d partitions, want %d", len(offsets), portPartitions)
	}
}

// readiness is the status of /ready.
func readiness(t *testing.T, port int) int {
	t.Helper()
	resp, err := http.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// firstAnswer asks for the end of each partition as soon as the port takes a connection.
func firstAnswer(t *testing.T, address string) []kmsg.ListOffsetsResponseTopicPartition {
	t.Helper()
	var c net.Conn
	for deadline := time.Now().Add(time.Minute); c == nil; time.Sleep(time.Millisecond) {
		var err error
		if c, err = net.Dial("tcp", address); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer c.Close()
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version, r.ReplicaID = 5, -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = "a"
	for i := range int32(portPartitions) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = i, -1, -1
		topic.Partitions = append(topic.Partitions, p)
	}
	r.Topics = append(r.Topics, topic)
	if _, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, r, 1)); err != nil {
		t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, frame); err != nil {
		t.Fatal(err)
	}
	resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
	if err := resp.ReadFrom(frame[4:]); err != nil {
		t.Fatal(err)
	}
	return resp.Topics[0].Partitions
}
