// Package pair starts the two servers that the tests compare: Kafka and Tidemark, each over an empty directory.
package pair

import (
	"os"
	"path/filepath"
	"testing"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// TwinEnv is the environment variable that makes Kafka play Tidemark's part as well: it tests the tests, for two
// Kafkas must pass every comparison.
const TwinEnv = "TIDEMARK_TWIN"

// Twin tells whether Kafka plays both parts.
func Twin() bool { return os.Getenv(TwinEnv) != "" }

// Server is one of the two servers.
type Server struct {
	Name    string // "Kafka" or "Tidemark"
	Addr    string // host:port on loopback
	Dir     string // its data directory, log.dirs
	Process *proc.Process
	start   func(t testing.TB, dir string) *Server
}

// Start starts both servers, Kafka first. settings are Kafka's keys and values for both, as "key=value";
// those whose key starts with "tidemark." are for Tidemark only.
func Start(t testing.TB, settings map[string]string) (kafka, tidemark *Server) {
	t.Helper()
	return StartVersion(t, oracle.Version, settings)
}

// StartVersion is Start with Kafka of a version.
func StartVersion(t testing.TB, version string, settings map[string]string) (kafka, tidemark *Server) {
	t.Helper()
	k := oracle.Get(t, version)
	both := make(map[string]string)
	var flags []string
	for key, value := range settings {
		flags = append(flags, "--set", key+"="+value)
		if len(key) < 9 || key[:9] != "tidemark." {
			both[key] = value
		}
	}
	var startKafka, startTidemark func(t testing.TB, dir string) *Server
	startKafka = func(t testing.TB, dir string) *Server {
		n := k.Start(t, oracle.NodeOptions{Dir: dir, Properties: both})
		return &Server{Name: "Kafka", Addr: n.Addr, Dir: dir, Process: n.Process, start: startKafka}
	}
	startTidemark = func(t testing.TB, dir string) *Server {
		p, addr := proc.Serve(t, dir, 0, flags...)
		oracle.WaitReady(t, p, addr)
		return &Server{Name: "Tidemark", Addr: addr, Dir: dir, Process: p, start: startTidemark}
	}
	if Twin() {
		startTidemark = startKafka
	}
	return startKafka(t, filepath.Join(t.TempDir(), "data")), startTidemark(t, filepath.Join(t.TempDir(), "data"))
}

// Restart starts the server again, which was stopped or killed, over a directory: its own or another's.
func (s *Server) Restart(t testing.TB, dir string) *Server {
	t.Helper()
	return s.start(t, dir)
}
