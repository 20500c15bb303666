//go:build oracle

package relay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tidemark/test/ledger"
)

// file is one file of a partition's folder.
type file struct {
	size   int64
	sum    string
	sealed bool // its segment is not the last one
}

// listFiles reads every partition's folder, by path relative to the directories' parent.
func (w *world) listFiles() map[string]file {
	w.t.Helper()
	out := make(map[string]file)
	for _, folder := range w.folders() {
		names := w.names(folder)
		last := ""
		for _, name := range names {
			if strings.HasSuffix(name, ".log") {
				last = max(last, name)
			}
		}
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(folder, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // the server that runs has just renamed or removed it
			}
			if err != nil {
				w.t.Fatal(err)
			}
			out[filepath.Join(filepath.Base(folder), name)] = file{size: int64(len(b)), sum: fmt.Sprintf("%x", sha256.Sum256(b)),
				sealed: name[:min(20, len(name))] < last[:min(20, len(last))]}
		}
	}
	return out
}

// folders are those of the partitions, without deleted ones.
func (w *world) folders() []string {
	w.t.Helper()
	var out []string
	for _, dir := range w.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "-stray") {
				w.t.Errorf("%s was taken for a stray", e.Name())
			}
			if e.IsDir() && !strings.HasSuffix(e.Name(), "-delete") && e.Name() != "__cluster_metadata-0" {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	return out
}

func (w *world) names(folder string) []string {
	w.t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// checkUntouched compares the files after the start with those before it: a start after a clean stop rewrites no log
// and no index of a sealed segment; one after a kill no log.
func (w *world) checkUntouched() {
	w.t.Helper()
	if w.files == nil {
		return
	}
	now := w.listFiles()
	for name, before := range w.files {
		if strings.HasPrefix(name, "__") {
			continue // the coordinators append to theirs
		}
		got, ok := now[name]
		kind := filepath.Ext(name)
		index := slices.Contains([]string{".index", ".timeindex", ".txnindex"}, kind)
		if kind != ".log" && kind != ".metadata" && !(index && before.sealed && w.clean) {
			continue
		}
		if !ok {
			w.t.Errorf("%s is gone after the start", name)
		} else if got.sum != before.sum {
			w.t.Errorf("%s was changed by the start: %d bytes, were %d", name, got.size, before.size)
		}
	}
}

var (
	// complaint is a line of Kafka's log that says of a directory that something was wrong, or any error.
	complaint = regexp.MustCompile(`(?i)^\[[^]]*\] (ERROR|FATAL) |^\[[^]]*\] WARN .*(corrupt|invalid|mismatch|orphan|` +
		`trunc|stray|rebuild|recover|segment|snapshot|epoch|inconsisten|unexpected|fail)`)
	// harmless complaints are not about what is on disk: before 4.1, a refused batch of the test's is one.
	harmless = regexp.MustCompile(`Exceptionally slow|disconnected|Unable to register|Unable to send a heartbeat|` +
		`NotControllerException|OutOfOrderSequenceException`)
	ourComplaint = regexp.MustCompile(`level=(ERROR|WARN) `)
)

// checkComplaints reads the server's log. The line behind a complaint, of a Java error its first one, tells more.
func (w *world) checkComplaints(s *server) {
	w.t.Helper()
	lines := strings.Split(s.Log(), "\n")
	for i, line := range lines[:len(lines)-1] {
		if s.kafka && w.kafkaComplains(line, lines[i+1]) || !s.kafka && w.tidemarkComplains(line) {
			w.t.Errorf("logged: %s\n%s", line, lines[i+1])
		}
	}
}

func (w *world) kafkaComplains(line, next string) bool {
	return complaint.MatchString(line) && !harmless.MatchString(line) && !harmless.MatchString(next) &&
		!slices.ContainsFunc(w.excused, func(text string) bool { return strings.Contains(line, text) })
}

func (w *world) tidemarkComplains(line string) bool {
	return ourComplaint.MatchString(line)
}

// decoders are the options by which Kafka's tool reads the records of its own topics.
var decoders = map[string]string{
	"__cluster_metadata-": "--cluster-metadata-decoder",
	"__consumer_offsets-": "--offsets-decoder", "__transaction_state-": "--transaction-log-decoder",
}

// dump has Kafka's tool read every segment and, after a clean stop, check every index.
func (w *world) dump() {
	w.t.Helper()
	paths := make(map[string][]string) // by what is to be done with them
	for _, folder := range append(w.folders(), filepath.Join(w.dirs[0], "__cluster_metadata-0")) {
		for _, name := range w.names(folder) {
			path := filepath.Join(folder, name)
			switch kind := filepath.Ext(name); kind {
			case ".log", ".checkpoint":
				paths[decoder(folder)] = append(paths[decoder(folder)], path)
			case ".index", ".timeindex":
				if w.leavesMetadataOpen() && filepath.Base(folder) == "__cluster_metadata-0" {
					continue
				}
				paths["indexes"] = append(paths["indexes"], path)
			case ".txnindex", ".snapshot":
				paths["others"] = append(paths["others"], path)
			}
		}
	}
	for _, option := range append(slices.Collect(maps.Values(decoders)), "--deep-iteration") {
		w.dumpFiles(paths[option], "--deep-iteration", option)
	}
	w.dumpFiles(paths["others"])
	if w.clean {
		w.dumpFiles(paths["indexes"], "--index-sanity-check")
		w.dumpFiles(paths["indexes"], "--verify-index-only")
		w.dumpFiles(paths["indexes"])
		ledger.VerifyFiles(w.t, w.dirs...)
		w.offlineTools()
	}
}

// leavesMetadataOpen: Kafka 4.4 does not close its metadata log when it stops: its indexes keep their full size.
func (w *world) leavesMetadataOpen() bool { return w.kafka.Version >= "4.4" }

// decoder is the option for the logs of a partition.
func decoder(folder string) string {
	for prefix, option := range decoders {
		if strings.HasPrefix(filepath.Base(folder), prefix) {
			return option
		}
	}
	return "--deep-iteration"
}

// bad are words that the tool says of something wrong.
var bad = regexp.MustCompile(`(?i)isvalid: false|mismatch|error|exception|not found|corrupt|could not|skipping|` +
	`non.?consecutive|unknown|invalid`)

// firstOffset is what the tool says of every segment that does not begin at offset 0.
var firstOffset = regexp.MustCompile(`Non-consecutive offsets in .*\n  -1 is followed by \d+\n`)

// gaps is what the tool says of a segment in which compaction left offsets out, or a batch without records.
var gaps = regexp.MustCompile(`Non-consecutive offsets in .*\n(?:  -?\d+ is followed by \d+\n)+|` +
	`Found timestamp mismatch in .*\n(?:  Index timestamp: \d+, log timestamp: -1\n)+`)

// dumpFiles runs the tool on some files; it exits with 0 whatever it finds, so its words are looked at.
func (w *world) dumpFiles(files []string, options ...string) {
	w.t.Helper()
	if len(files) == 0 {
		return
	}
	r := w.kafka.Tool(w.t, "kafka-dump-log", append([]string{"--files", strings.Join(files, ",")}, options...)...)
	expected := firstOffset
	if w.compacts {
		expected = gaps
	}
	if complaints := expected.ReplaceAllString(r.Stderr, ""); r.Exit != 0 || complaints != "" {
		w.t.Errorf("dump %q: exit status %d: %s", options, r.Exit, complaints)
	}
	dumped, current := 0, ""
	for line := range strings.SplitSeq(r.Stdout, "\n") {
		if name, ok := strings.CutPrefix(line, "Dumping "); ok {
			dumped, current = dumped+1, name
		} else if !strings.HasPrefix(line, "|") && bad.MatchString(line) {
			w.t.Errorf("dump %q of %s: %s", options, current, line)
		}
	}
	if dumped != len(files) {
		w.t.Errorf("dump %q: %d of %d files", options, dumped, len(files))
	}
}
