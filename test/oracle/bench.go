package oracle

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"tidemark/test/proc"
)

// plainJVM are the settings that Kafka's own scripts start a server with.
var plainJVM = []string{"-Xmx1g", "-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
	"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"}

// PlainJVM are the Java settings that Plain starts a server with.
func PlainJVM() []string { return plainJVM }

// Plain starts a server over dir on a port and returns at once, with the Java settings of Kafka's own scripts: for
// measurements. (Start's settings are for short tests.) A directory that has no meta.properties is formatted first.
func (k *Kafka) Plain(t testing.TB, dir string, port int, settings map[string]string) *proc.Process {
	t.Helper()
	config := filepath.Join(t.TempDir(), "server.properties")
	ports := []int{port, proc.FreePorts(t, 1)[0]}
	text := properties(NodeOptions{Dir: dir, Properties: settings}, ports)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "meta.properties")); err != nil {
		k.MustTool(t, "kafka-storage", "format", "-t", ClusterID, "-c", config)
	}
	return proc.Start(t, "kafka-"+net.JoinHostPort("", strconv.Itoa(port)), "java",
		k.plain(plainJVM, k.serverLog, "kafka.Kafka", config)...)
}

// PlainTool is a tool in a process of its own with the Java settings of Kafka's own scripts.
func (k *Kafka) PlainTool(class string, args ...string) *exec.Cmd {
	return exec.Command("java", k.plain([]string{"-Xmx256m"}, k.toolsLog, class, args...)...)
}

func (k *Kafka) plain(jvm []string, log, main string, args ...string) []string {
	all := append([]string{}, jvm...)
	all = append(all, "-Dlog4j2.configurationFile="+log+".log4j2.properties", "-Dlog4j2.disable.jmx=true",
		"-cp", filepath.Join(k.libs, "*"), main)
	return append(all, args...)
}
