// Package golden reads the directories and answers of real Kafka 4.3.1 kept in data/ (see data/README.md).
//
// A case is one directory: what was done (case.json), the partition's folder (dir, dir-before, dir-after, or the whole
// log.dirs in data), and what Kafka answered about it (expect). Nothing in expect was computed by this project.
// The environment variable TIDEMARK_GOLDEN names another directory of the same form.
//
// Every function takes a testing.TB and ends the test when a file is missing or does not parse, so that a case that
// cannot be read never looks like a case that passed.
package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Env is the environment variable that names another golden directory.
const Env = "TIDEMARK_GOLDEN"

// Case is one golden directory.
type Case struct {
	Name string // directory name, as "01-seed-demo"
	Path string // absolute path of the directory
	Info Info   // case.json
}

// Info is what case.json says. A pointer is nil where the case does not have the field.
type Info struct {
	Case           string            `json:"case"`
	Topic          string            `json:"topic"` // empty for a whole data directory (13)
	Partition      int32             `json:"partition"`
	Kafka          string            `json:"kafka"` // version that wrote the case
	TopicConfig    map[string]string `json:"topic_config"`
	TopicID        string            `json:"topic_id"` // base64url without padding, as Kafka prints it
	BaseTimestamp  int64             `json:"base_timestamp"`
	TimestampRule  string            `json:"timestamp_rule"`
	Codec          string            `json:"codec"`
	Count          int               `json:"count"` // records produced; 0 where not said
	RecordsRead    int               `json:"records_read"`
	SameAs         map[string]string `json:"same_as"`       // file of expect → case whose file it equals
	LogMtimesMs    map[string]int64  `json:"log_mtimes_ms"` // .log file → modification time before the start, ms
	Damage         string            `json:"damage"`
	RecoveryPoint  *int64            `json:"recovery_point"` // 0 = no line in the checkpoint file
	CleanShutdown  *bool             `json:"clean_shutdown_marker"`
	Broker         string            `json:"broker"`                // starts with "REFUSED" when Kafka did not start
	DeleteBefore   *int64            `json:"delete_records_before"` // offset given to DeleteRecords
	ServerSettings []string          `json:"server_properties"`     // 13 only
	Committed      string            `json:"records_committed"`
	MadeBy         string            `json:"made_by"`
}

// Dir returns the golden directory in use.
func Dir() string {
	if d := os.Getenv(Env); d != "" {
		return d
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "data")
}

// Cases returns the cases whose name starts with one of the prefixes, sorted by name; all cases when none is given.
// A prefix that selects nothing fails the test.
func Cases(t testing.TB, prefixes ...string) []Case {
	t.Helper()
	entries, err := os.ReadDir(Dir())
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	used := make(map[string]bool)
	var cases []Case
	for _, e := range entries {
		prefix, ok := matching(e.Name(), prefixes)
		if !ok || !e.IsDir() {
			continue
		}
		used[prefix] = true
		cases = append(cases, Load(t, e.Name()))
	}
	for _, p := range prefixes {
		if !used[p] {
			t.Fatalf("golden: no case in %s starts with %q", Dir(), p)
		}
	}
	return cases
}

func matching(name string, prefixes []string) (string, bool) {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return p, true
		}
	}
	return "", false
}

// Load reads one case by its name.
func Load(t testing.TB, name string) Case {
	t.Helper()
	c := Case{Name: name, Path: filepath.Join(Dir(), name)}
	readJSON(t, filepath.Join(c.Path, "case.json"), &c.Info)
	return c
}

// Refused tells whether Kafka refused to start over this folder; only AfterStart has an answer then.
func (c Case) Refused() bool { return strings.HasPrefix(c.Info.Broker, "REFUSED") }

// PartitionName is the folder's name, as "01-seed-demo-0".
func (c Case) PartitionName() string { return c.Info.Topic + "-" + itoa(int64(c.Info.Partition)) }

// Tree is one of the directories that a case may hold.
type Tree string

// The trees of a case. Final is dir or, where a case has none, dir-after: the folder after the last clean stop.
const (
	Dir0   Tree = "dir"
	Before Tree = "dir-before"
	After  Tree = "dir-after"
	Data   Tree = "data"
	Final  Tree = "final"
)

// Has tells whether the case holds the tree.
func (c Case) Has(tree Tree) bool {
	_, err := os.Stat(c.treePath(tree))
	return err == nil
}

// TreePath returns the absolute path of a partition folder, or of log.dirs itself for Data.
// The folder must not be written to: copy it with CopyTo or CopyDir.
func (c Case) TreePath(t testing.TB, tree Tree) string {
	t.Helper()
	p := c.treePath(tree)
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("golden %s: %v", c.Name, err)
	}
	return p
}

func (c Case) treePath(tree Tree) string {
	switch tree {
	case Data:
		return filepath.Join(c.Path, "data")
	case Final:
		if c.Has(Dir0) {
			return c.treePath(Dir0)
		}
		return c.treePath(After)
	}
	return filepath.Join(c.Path, string(tree), c.PartitionName())
}

// Expect returns the path of a file of expect, followed to the case whose file it equals; ok is false when there is
// none.
func (c Case) Expect(name string) (path string, ok bool) {
	dir := c.Path
	if other := c.Info.SameAs[name]; other != "" {
		dir = filepath.Join(filepath.Dir(c.Path), other)
	}
	path = filepath.Join(dir, "expect", name)
	_, err := os.Stat(path)
	return path, err == nil
}

// ExpectText returns a text file of expect, as "dump-log.txt".
func (c Case) ExpectText(t testing.TB, name string) string {
	t.Helper()
	path, ok := c.Expect(name)
	if !ok {
		t.Fatalf("golden %s: no expect/%s", c.Name, name)
	}
	return readText(t, path)
}

func readText(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	return string(b)
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(readText(t, path)), into); err != nil {
		t.Fatalf("golden: %s: %v", path, err)
	}
}
