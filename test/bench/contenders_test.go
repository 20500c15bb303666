//go:build oracle

package bench

import (
	"net"
	"os/exec"
	"strconv"
	"testing"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// contender is one of the two that are measured.
type contender struct {
	name string
	// start starts a server over dir on a port of the loopback interface and returns at once.
	start func(b *testing.B, dir string, port int) *proc.Process
	// offsets is the command line of kafka-get-offsets for a topic, in a process of its own.
	offsets func(addr, topic string) *exec.Cmd
}

// contenders are Kafka and Tidemark, in the order of their turns, with the same settings beside their defaults.
func contenders(b *testing.B, settings map[string]string) []contender {
	k := oracle.Get(b, oracle.Version)
	tidemark := proc.Tidemark(b)
	return []contender{
		{"Kafka", func(b *testing.B, dir string, port int) *proc.Process {
			return k.Plain(b, dir, port, settings)
		}, func(addr, topic string) *exec.Cmd {
			return k.PlainTool("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", addr, "--topic", topic)
		}},
		{"Tidemark", func(b *testing.B, dir string, port int) *proc.Process {
			args := []string{"serve", "--data", dir, "--listen", loopback(port), "--log-level", "warn",
				"--set", "tidemark.admin.listener="}
			for key, value := range settings {
				args = append(args, "--set", key+"="+value)
			}
			return proc.Start(b, "tidemark", tidemark, args...)
		}, func(addr, topic string) *exec.Cmd {
			return exec.Command(tidemark, "kafka-get-offsets", "--bootstrap-server", addr, "--topic", topic)
		}},
	}
}

// quickRetention are settings with which files of topics that are written at full speed stay few.
var quickRetention = map[string]string{"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "1000"}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// onFreePort starts a contender on a free port.
func (c contender) onFreePort(b *testing.B, dir string) (p *proc.Process, addr string) {
	port := proc.FreePorts(b, 1)[0]
	return c.start(b, dir, port), loopback(port)
}
