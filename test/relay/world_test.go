//go:build oracle

// Package relay hands one data directory from Kafka to Tidemark and back, again and again, after clean stops and after
// SIGKILL. After each change of hands every record, look-up and epoch must be what was written, no file may have been
// repaired, and Kafka must have nothing to complain of.
package relay

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/ledger"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// leg is one server's time with the directory.
type leg struct {
	kafka bool // else Tidemark
	kill  bool // ends with SIGKILL instead of a clean stop
}

func (l leg) String() string {
	name, end := "Tidemark", "stopped"
	if l.kafka {
		name = "Kafka"
	}
	if l.kill {
		end = "killed"
	}
	return name + " " + end
}

// world is the directory and what is known of it.
type world struct {
	t          *testing.T
	kafka      *oracle.Kafka
	dirs       []string // log.dirs
	book       *ledger.Ledger
	topics     map[string]*topic
	iterations int32 // of the SCRAM credential; 0: there is none yet
	clusterID  string
	committed  map[string]int64 // what the consumer group committed, by partition name
	files      map[string]file  // of the partitions, after the last leg
	clean      bool             // the last leg ended with a clean stop
	legs       int
	opened     int               // index of the first record of the transaction that is open; 0: none
	settings   map[string]string // of either server, besides those it always has
	compacts   bool              // logs are compacted
	excused    []string          // what Kafka logs as errors in this leg although nothing is wrong
}

// server is the process of the current leg.
type server struct {
	*proc.Process
	*ledger.Client
	leg
}

func newWorld(t *testing.T, version string, dirs int) *world {
	w := &world{t: t, kafka: oracle.Get(t, version), book: ledger.New(), topics: make(map[string]*topic),
		committed: make(map[string]int64)}
	base := t.TempDir()
	for i := range dirs {
		w.dirs = append(w.dirs, filepath.Join(base, "data"+string(rune('a'+i))))
	}
	return w
}

// start starts the leg's server over the directory.
func (w *world) start(l leg) *server {
	w.t.Helper()
	all := strings.Join(w.dirs, ",")
	if l.kafka {
		properties := map[string]string{"log.dirs": all, "auto.create.topics.enable": "false",
			"log.retention.check.interval.ms": "3600000"}
		maps.Copy(properties, w.settings)
		n := w.kafka.Start(w.t, oracle.NodeOptions{Dir: w.dirs[0], Properties: properties})
		return &server{n.Process, ledger.Dial(w.t, n.Addr), l}
	}
	args := []string{"--set", "auto.create.topics.enable=false", "--set", "tidemark.admin.listener="}
	for key, value := range w.settings {
		args = append(args, "--set", key+"="+value)
	}
	p, addr := proc.Serve(w.t, all, 0, args...)
	oracle.WaitReady(w.t, p, addr)
	return &server{p, ledger.Dial(w.t, addr), l}
}

// run is one leg: what is found is checked, more is written, all is checked again, what is left behind is looked at.
func (w *world) run(l leg) {
	w.legs++
	w.t.Run(l.String(), func(t *testing.T) {
		outer := w.t
		w.t = t
		defer func() { w.t = outer }()
		w.excused = nil

		s := w.start(l)
		w.checkUntouched()
		w.checkMetadata(s)
		w.lead(s)
		w.endOpen(s)
		w.book.Check(t, s.Client)
		w.checkGroup(s)

		w.continueProducers(s)
		w.changeTopics(s)
		w.write(s)
		w.transactions(s)
		w.deleteRecords(s)
		w.commitGroup(s)
		w.credentials(s)
		w.book.Check(t, s.Client)

		w.leaveOpen(s)
		w.end(s)
	})
	if w.t.Failed() {
		w.t.FailNow() // what follows would fail for the same reason
	}
}

// end stops or kills the server and looks at its log and at the files.
func (w *world) end(s *server) {
	w.t.Helper()
	if s.kill {
		s.Kill(w.t)
	} else if exit := s.Stop(w.t); exit != 0 && !(s.kafka && exit == 143) { // a JVM that SIGTERM ended says 143
		w.t.Errorf("exit status %d", exit)
	}
	w.checkComplaints(s) // w.clean still tells of the leg before
	w.clean = !s.kill
	w.files = w.listFiles()
	w.dump()
}

func legs(text string) []leg {
	var out []leg
	for _, word := range strings.Fields(text) {
		out = append(out, leg{kafka: strings.HasPrefix(word, "K"), kill: strings.HasSuffix(word, "!")})
	}
	return out
}

// TestRelay hands directories around; K is Kafka, T Tidemark, ! a SIGKILL at the end of the leg.
func TestRelay(t *testing.T) {
	for _, c := range []struct {
		name, legs string
		dirs       int
	}{
		{"made by Kafka", "K T K T! K! T K", 1},
		{"made by Tidemark", "T K T T! T! K T! K", 1},
		{"two directories", "K T! K! T K", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, oracle.Version, c.dirs)
			for _, l := range legs(c.legs) {
				w.run(l)
			}
		})
	}
}
