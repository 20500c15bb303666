package tidemarktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/internal/broker"
	"tidemark/vfs"
)

// memoryDir is the log directory of a broker in memory.
const memoryDir = "/tidemark"

// stopTimeout is how long requests in flight may take at a stop.
const stopTimeout = 10 * time.Second

// Options say what broker to start. The zero value is a broker in memory.
type Options struct {
	// Dir is the log directory (log.dirs), made when it is absent; "": in memory, gone with the Broker.
	Dir string
	// Config are broker configs, as in a server.properties file.
	Config map[string]string
	// Logger is told what the broker does; nil: nobody.
	Logger *slog.Logger
}

// Broker is a running broker.
type Broker struct {
	options Options
	files   vfs.FS
	addr    string
	running *broker.Broker
}

// New starts a broker on a free port of the loopback interface and returns when it answers. Stop it with
// [Broker.Close].
//
// Errors: a config that is refused, a log directory that is in use or not this broker's own to lead, the disk.
func New(o Options) (*Broker, error) {
	b := &Broker{options: o, files: vfs.OS(), addr: "127.0.0.1:0"}
	if o.Dir == "" {
		b.files = vfs.NewMem()
	}
	return b, b.start()
}

// Start starts a broker that ends with the test. What [New] would return as an error ends the test.
func Start(tb testing.TB, o Options) *Broker {
	tb.Helper()
	b, err := New(o)
	if err != nil {
		tb.Fatalf("start a broker: %v", err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("stop the broker: %v", err)
		}
	})
	return b
}

// start starts the broker at b.addr and keeps the address that it got.
func (b *Broker) start() error {
	dir := b.options.Dir
	if dir == "" {
		dir = memoryDir
	}
	config := map[string]string{
		"log.dirs": dir, "listeners": "PLAINTEXT://" + b.addr, "tidemark.admin.listener": "",
		"group.initial.rebalance.delay.ms": "0",
	}
	maps.Copy(config, b.options.Config)
	running, err := broker.Start(context.Background(), broker.Options{
		Properties: config, Logger: b.options.Logger, FS: b.files})
	if err != nil {
		return err
	}
	b.running, b.addr = running, running.Addresses()[0]
	return nil
}

// Addr is HOST:PORT of the broker: what clients take as bootstrap.servers. It stays through [Broker.Restart].
func (b *Broker) Addr() string { return b.addr }

// CreateTopic makes a topic. configs are topic configs, and may be nil.
//
// Errors: those of Kafka, as *kerr.Error; TOPIC_ALREADY_EXISTS among them.
func (b *Broker) CreateTopic(ctx context.Context, name string, partitions int32, configs map[string]string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	values := map[string]*string{}
	for key, value := range configs {
		values[key] = &value
	}
	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, 1, values, name)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// Restart stops the broker in good order and starts it again on what it stored, at the same address. After an error
// the broker is stopped.
func (b *Broker) Restart() error {
	return errors.Join(b.Close(), b.start())
}

// Close stops the broker in good order. Further calls do nothing.
func (b *Broker) Close() error {
	if b.running == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	running := b.running
	b.running = nil
	return running.Stop(ctx)
}
