package oracle

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/proc"
)

// ClusterID is the cluster id that new data directories get.
const ClusterID = "4L6g3nShT-eMCtK--X86sw"

// NodeOptions say how a node starts. The zero value is a fresh node on free ports.
type NodeOptions struct {
	Dir        string            // log.dirs, formatted when it has no meta.properties; a new temporary one when empty
	Port       int               // of the broker; a free one when 0
	Properties map[string]string // added to the server's settings, or replacing them; an empty value removes one
	HeapMB     int               // of the JVM; 512 when 0
}

// Node is a one-node KRaft Kafka, broker and controller, on loopback.
type Node struct {
	*proc.Process
	Kafka *Kafka
	Dir   string // log.dirs
	Addr  string // host:port of the broker
}

// Start starts a node and waits until it answers as a broker.
func (k *Kafka) Start(t testing.TB, o NodeOptions) *Node {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "data")
	}
	ports := proc.FreePorts(t, 2)
	if o.Port != 0 {
		ports[0] = o.Port
	}
	n := &Node{Kafka: k, Dir: o.Dir, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))}
	config := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(config, []byte(properties(o, ports)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "meta.properties")); err != nil {
		k.MustTool(t, "kafka-storage", "format", "-t", ClusterID, "-c", config)
	}
	heap := []string{fmt.Sprintf("-Xmx%dm", cmp.Or(o.HeapMB, 512)), "-Xms192m"}
	args := k.java(k.serverLog, heap, "Runner", "guard", "kafka.Kafka", config)
	n.Process = proc.Start(t, "kafka-"+k.Version, "java", args...)
	n.WaitListening(t, n.Addr)
	WaitReady(t, n.Process, n.Addr)
	return n
}

// properties are the server's settings: those that one node needs, then the caller's.
func properties(o NodeOptions, ports []int) string {
	broker := "127.0.0.1:" + strconv.Itoa(ports[0])
	controller := "127.0.0.1:" + strconv.Itoa(ports[1])
	all := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.voters":                         "1@" + controller,
		"listeners":                                        "PLAINTEXT://" + broker + ",CONTROLLER://" + controller,
		"advertised.listeners":                             "PLAINTEXT://" + broker,
		"controller.listener.names":                        "CONTROLLER",
		"log.dirs":                                         o.Dir,
		"group.initial.rebalance.delay.ms":                 "0",
		"offsets.topic.replication.factor":                 "1",
		"offsets.topic.num.partitions":                     "4",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "4",
		"share.coordinator.state.topic.min.isr":            "1",
		"share.coordinator.state.topic.num.partitions":     "4",
		"share.coordinator.state.topic.replication.factor": "1",
	}
	for key, value := range o.Properties {
		if all[key] = value; value == "" {
			delete(all, key)
		}
	}
	var lines []string
	for key, value := range all {
		lines = append(lines, key+"="+value+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// Restart starts a node again that was stopped or killed, over its directory and on its port.
func (n *Node) Restart(t testing.TB, settings map[string]string) *Node {
	t.Helper()
	_, port, _ := net.SplitHostPort(n.Addr)
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n.Kafka.Start(t, NodeOptions{Dir: n.Dir, Port: number, Properties: settings})
}

var (
	complaint = regexp.MustCompile(`^\[[^]]*\] (ERROR|FATAL) `)
	busy      = regexp.MustCompile(`Exceptionally slow controller event`) // says that the machine is slow, no more
)

// Errors returns the lines that the node logged as errors.
func (n *Node) Errors() []string { return Errors(n.Log()) }

// Errors returns the lines of a Kafka server's log that are errors.
func Errors(log string) []string {
	var out []string
	for _, line := range strings.Split(log, "\n") {
		if complaint.MatchString(line) && !busy.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// WaitReady waits until the server at addr, run by p, answers a metadata request that names it as the controller's
// broker: Kafka listens some time before it serves.
func WaitReady(t testing.TB, p *proc.Process, addr string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	deadline := time.Now().Add(proc.Patience)
	for time.Now().Before(deadline) {
		if err = ready(client); err == nil {
			return
		}
		select {
		case <-p.Ended():
			t.Fatalf("%s ended at start; its log:\n%s", p.Name, proc.Tail(p.Log(), 40))
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not serve after %v: %v; its log:\n%s", p.Name, proc.Patience, err, proc.Tail(p.Log(), 40))
}

func ready(client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none: the brokers and the controller only
	meta, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if meta.ControllerID < 0 || len(meta.Brokers) == 0 {
		return fmt.Errorf("controller %d, %d brokers", meta.ControllerID, len(meta.Brokers))
	}
	return nil
}
