//go:build oracle

package relay

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	// harmless complaints are not about what is on disk.
	harmless = regexp.MustCompile(`Exceptionally slow|IO Exception|disconnected|` +
		`Broker registration with|maybeSendReceive|Unable to register|Unable to send a heartbeat`)
	ourComplaint = regexp.MustCompile(`level=(ERROR|WARN) `)
)

// checkComplaints reads the server's log.
func (w *world) checkComplaints(s *server) {
	w.t.Helper()
	for _, line := range strings.Split(s.Log(), "\n") {
		excused := slices.ContainsFunc(w.excused, func(text string) bool { return strings.Contains(line, text) })
		if s.kafka && complaint.MatchString(line) && !harmless.MatchString(line) && !excused ||
			!s.kafka && ourComplaint.MatchString(line) {
			w.t.Errorf("logged: %s", line)
		}
	}
}

// decoders are the options by which Kafka's tool reads the records of its own topics.
var decoders = map[string]string{
	"__cluster_metadata-": "--cluster-metadata-decoder",
	"__consumer_offsets-": "--offsets-decoder", "__transaction_state-": "--transaction-log-decoder",
}

// dump has Kafka's tool read every segment and, after a clean stop, check every index.
func (w *world) dump() {
	w.t.Helper()
	w.dumpMetadata()
	for _, folder := range w.folders() {
		var logs, indexes []string
		for _, name := range w.names(folder) {
			path := filepath.Join(folder, name)
			switch filepath.Ext(name) {
			case ".log":
				logs = append(logs, path)
			case ".index", ".timeindex":
				indexes = append(indexes, path)
			case ".txnindex", ".snapshot":
				w.dumpFiles([]string{path})
			}
		}
		w.dumpFiles(logs, append([]string{"--deep-iteration"}, decoder(folder)...)...)
		if w.clean {
			w.dumpFiles(indexes, "--index-sanity-check")
			w.dumpFiles(indexes, "--verify-index-only")
			w.dumpFiles(indexes)
		}
	}
}

func decoder(folder string) []string {
	for prefix, option := range decoders {
		if strings.HasPrefix(filepath.Base(folder), prefix) {
			return []string{option}
		}
	}
	return nil
}

func (w *world) dumpMetadata() {
	w.t.Helper()
	folder := filepath.Join(w.dirs[0], "__cluster_metadata-0")
	for _, name := range w.names(folder) {
		if strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".checkpoint") {
			w.dumpFiles([]string{filepath.Join(folder, name)}, "--cluster-metadata-decoder", "--deep-iteration")
		}
	}
}

var bad = regexp.MustCompile(`(?i)isvalid: false|mismatch|error|exception|not found|corrupt|could not|skipping|` +
	`non.?consecutive|unknown|invalid`)

// firstOffset is what the tool says of every segment that does not begin at offset 0.
var firstOffset = regexp.MustCompile(`Non-consecutive offsets in .*\n  -1 is followed by \d+\n`)

// dumpFiles runs the tool on some files; it exits with 0 whatever it finds, so its words are looked at.
func (w *world) dumpFiles(files []string, options ...string) {
	w.t.Helper()
	if len(files) == 0 {
		return
	}
	r := w.kafka.Tool(w.t, "kafka-dump-log", append([]string{"--files", strings.Join(files, ",")}, options...)...)
	if complaints := firstOffset.ReplaceAllString(r.Stderr, ""); r.Exit != 0 || complaints != "" {
		w.t.Errorf("dump %q of %s: exit status %d: %s", options, files[0], r.Exit, complaints)
	}
	dumped := 0
	for _, line := range strings.Split(r.Stdout, "\n") {
		if strings.HasPrefix(line, "Dumping ") {
			dumped++
		}
		if !strings.HasPrefix(line, "|") && bad.MatchString(line) {
			w.t.Errorf("dump %q of %s: %s", options, filepath.Base(filepath.Dir(files[0])), line)
		}
	}
	if dumped != len(files) {
		w.t.Errorf("dump %q of %s…: %d of %d files: %s", options, files[0], dumped, len(files), r.Stdout)
	}
}
