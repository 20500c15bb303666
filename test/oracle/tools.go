package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/test/proc"
)

// classes are the main classes behind Kafka's scripts, the present name first.
var classes = map[string][]string{
	"kafka-acls":                 {"org.apache.kafka.tools.AclCommand", "kafka.admin.AclCommand"},
	"kafka-broker-api-versions":  {"org.apache.kafka.tools.BrokerApiVersionsCommand"},
	"kafka-cluster":              {"org.apache.kafka.tools.ClusterTool"},
	"kafka-configs":              {"org.apache.kafka.tools.ConfigCommand", "kafka.admin.ConfigCommand"},
	"kafka-console-consumer":     {"org.apache.kafka.tools.consumer.ConsoleConsumer", "kafka.tools.ConsoleConsumer"},
	"kafka-console-producer":     {"org.apache.kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer"},
	"kafka-consumer-groups":      {"org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"},
	"kafka-consumer-perf-test":   {"org.apache.kafka.tools.ConsumerPerformance"},
	"kafka-delete-records":       {"org.apache.kafka.tools.DeleteRecordsCommand"},
	"kafka-dump-log":             {"org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"},
	"kafka-features":             {"org.apache.kafka.tools.FeatureCommand"},
	"kafka-get-offsets":          {"org.apache.kafka.tools.GetOffsetShell"},
	"kafka-groups":               {"org.apache.kafka.tools.GroupsCommand"},
	"kafka-leader-election":      {"org.apache.kafka.tools.LeaderElectionCommand"},
	"kafka-log-dirs":             {"org.apache.kafka.tools.LogDirsCommand"},
	"kafka-metadata-quorum":      {"org.apache.kafka.tools.MetadataQuorumCommand"},
	"kafka-producer-perf-test":   {"org.apache.kafka.tools.ProducerPerformance"},
	"kafka-reassign-partitions":  {"org.apache.kafka.tools.reassign.ReassignPartitionsCommand"},
	"kafka-replica-verification": {"org.apache.kafka.tools.ReplicaVerificationTool"},
	"kafka-storage":              {"org.apache.kafka.tools.StorageTool", "kafka.tools.StorageTool"},
	"kafka-topics":               {"org.apache.kafka.tools.TopicCommand"},
	"kafka-transactions":         {"org.apache.kafka.tools.TransactionsCommand"},
	"kafka-verifiable-consumer":  {"org.apache.kafka.tools.VerifiableConsumer"},
	"kafka-verifiable-producer":  {"org.apache.kafka.tools.VerifiableProducer"},
}

// Tool runs one of Kafka's command lines by its script's name ("kafka-topics") or by a class name, in the JVM that
// all calls share: a call costs tens of milliseconds instead of two seconds.
func (k *Kafka) Tool(t testing.TB, name string, args ...string) proc.Result {
	t.Helper()
	return k.ToolInput(t, "", name, args...)
}

// ToolInput is Tool with text on standard input.
func (k *Kafka) ToolInput(t testing.TB, stdin, name string, args ...string) proc.Result {
	t.Helper()
	names := classes[name]
	if names == nil {
		names = []string{name}
	}
	r, err := k.start()
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.call(names, args, stdin)
	if err != nil {
		k.drop(r)
		t.Fatalf("%s %q: %v", name, args, err)
	}
	if result.Exit == 127 {
		t.Fatalf("%s %q: %s", name, args, result.Stderr)
	}
	return result
}

// MustTool is Tool for calls that must succeed; it returns standard output.
func (k *Kafka) MustTool(t testing.TB, name string, args ...string) string {
	t.Helper()
	r := k.Tool(t, name, args...)
	if r.Exit != 0 {
		t.Fatalf("%s %q: exit status %d\n%s%s", name, args, r.Exit, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// OwnProcess runs a tool in a JVM of its own: for measuring it, and for tools that must see a signal.
func (k *Kafka) OwnProcess(t testing.TB, name string, args ...string) proc.Result {
	t.Helper()
	names := classes[name]
	var result proc.Result
	for _, main := range names { // the JVM itself says when it does not know a name
		result = proc.Run(t, "", "java", k.java(k.toolsLog, []string{"-Xmx256m"}, main, args...)...)
		if !strings.Contains(result.Stderr, "Could not find or load main class") {
			return result
		}
	}
	t.Fatalf("%s %q: %+v", name, args, result)
	return result
}

// runner is the JVM that runs tools.
type runner struct {
	stdin io.WriteCloser

	mu      sync.Mutex // guards the fields below and writes to stdin
	next    int32
	waiting map[int32]chan proc.Result // nil once the JVM has ended
}

func (k *Kafka) start() (*runner, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runner != nil {
		return k.runner, nil
	}
	cmd := exec.Command("java", k.java(k.toolsLog, []string{"-Xmx512m", "-Xms64m"}, "Runner", "tools")...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the JVM for tools: %w", err)
	}
	r := &runner{stdin: stdin, waiting: make(map[int32]chan proc.Result)}
	go r.read(stdout, cmd)
	k.runner = r
	return r, nil
}

// drop forgets a JVM that no longer answers, and ends it.
func (k *Kafka) drop(r *runner) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runner == r {
		k.runner = nil
	}
	r.stdin.Close()
}

func (r *runner) call(names, args []string, stdin string) (proc.Result, error) {
	answer := make(chan proc.Result, 1)
	r.mu.Lock()
	if r.waiting == nil {
		r.mu.Unlock()
		return proc.Result{}, errors.New("the JVM for tools has ended")
	}
	r.next++
	id := r.next
	r.waiting[id] = answer
	_, err := r.stdin.Write(encodeCall(id, names, args, stdin))
	r.mu.Unlock()
	if err != nil {
		return proc.Result{}, fmt.Errorf("write to the JVM for tools: %w", err)
	}
	select {
	case result, ok := <-answer:
		if !ok {
			return result, errors.New("the JVM for tools ended during the call")
		}
		return result, nil
	case <-time.After(proc.Patience):
		return proc.Result{}, fmt.Errorf("no end within %v", proc.Patience)
	}
}

func encodeCall(id int32, names, args []string, stdin string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(id))
	for _, list := range [][]string{names, args} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
		for _, s := range list {
			b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
			b = append(b, s...)
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(stdin)))
	return append(b, stdin...)
}

func (r *runner) read(stdout io.Reader, cmd *exec.Cmd) {
	for {
		id, result, err := decodeResult(stdout)
		r.mu.Lock()
		if err != nil {
			for _, answer := range r.waiting {
				close(answer)
			}
			r.waiting = nil
			r.mu.Unlock()
			_ = cmd.Wait() // how the JVM ended is of no interest
			return
		}
		if answer := r.waiting[id]; answer != nil {
			delete(r.waiting, id)
			answer <- result
		}
		r.mu.Unlock()
	}
}

func decodeResult(in io.Reader) (id int32, result proc.Result, err error) {
	var head struct{ ID, Exit int32 }
	if err := binary.Read(in, binary.BigEndian, &head); err != nil {
		return 0, result, err
	}
	result.Exit = int(head.Exit)
	for _, text := range []*string{&result.Stdout, &result.Stderr} {
		var n uint32
		if err := binary.Read(in, binary.BigEndian, &n); err != nil {
			return 0, result, err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(in, b); err != nil {
			return 0, result, err
		}
		*text = string(b)
	}
	return head.ID, result, nil
}
