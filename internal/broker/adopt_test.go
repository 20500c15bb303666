package broker

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"tidemark/internal/checkpoint"
	"tidemark/internal/metadata"
	"tidemark/record"
	"tidemark/test/golden"
)

// treeHash is a checksum over the names and bytes of all files below the folders; the empty .lock files are left out.
func treeHash(t *testing.T, dirs ...string) string {
	t.Helper()
	h := sha256.New()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() == ".lock" {
				return err
			}
			_, _ = fmt.Fprintf(h, "%s %v\n", path, d.IsDir())
			if d.IsDir() {
				return nil
			}
			data, err := os.ReadFile(path)
			_, _ = h.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// usedDirs makes a directory for each name that a broker has used, with a topic of four partitions.
func usedDirs(t *testing.T, names ...string) []string {
	t.Helper()
	base := t.TempDir()
	dirs := make([]string, len(names))
	for i, name := range names {
		dirs[i] = filepath.Join(base, name)
	}
	b := startBroker(t, strings.Join(dirs, ","), nil)
	if _, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), 4, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	stopBroker(t, b)
	return dirs
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// kafkaDir makes a copy of a directory that Kafka left behind, with a partition of a topic that its metadata does not
// know when strayed.
func kafkaDir(t *testing.T, strayed bool) string {
	t.Helper()
	dir := golden.Load(t, "13-data").CopyDir(t, golden.Data)
	if strayed {
		ghost := filepath.Join(dir, "ghost-3")
		if err := os.CopyFS(ghost, os.DirFS(filepath.Join(dir, "t-a-0"))); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(ghost, "partition.metadata"), "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZw")
	}
	return dir
}

// appendMetadata puts a record at the end of the metadata log of a directory that was closed in good order.
func appendMetadata(t *testing.T, dir string, value []byte) {
	t.Helper()
	path := filepath.Join(dir, "__cluster_metadata-0", "00000000000000000000.log")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	options := record.DefaultBuilderOptions()
	for rest := data; len(rest) > 0; {
		var h record.Header
		if h, _, rest, err = record.NextEntry(rest); err != nil {
			t.Fatal(err)
		}
		options.BaseOffset, options.LeaderEpoch = h.NextOffset(), h.LeaderEpoch
	}
	b := record.NewBuilder(options)
	if err := b.Append(time.Now().UnixMilli(), nil, value, nil); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(append(data, b.Bytes()...)))
}

func featureLevel(t *testing.T, name string, level int16) []byte {
	t.Helper()
	value, err := metadata.Record{Body: &metadata.FeatureLevelRecord{Name: name, FeatureLevel: level}}.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// refusedCase is a directory that must not be led.
type refusedCase struct {
	name  string
	dirs  []string // made by a broker of ours, with the topic "a"; nil: setUp makes it
	setUp func(t *testing.T, dirs []string) (start []string, more map[string]string)
	want  string
}

// check starts a broker on the directory: it is refused with the reason, and not one byte changes. The command that the
// refusal names serves it.
func (c refusedCase) check(t *testing.T) {
	var dirs []string
	if c.dirs != nil {
		dirs = usedDirs(t, c.dirs...)
	}
	start, more := c.setUp(t, dirs)
	if dirs == nil {
		dirs = start
	}
	before := treeHash(t, dirs...)
	props := map[string]string{"log.dirs": strings.Join(start, ","), "listeners": "PLAINTEXT://127.0.0.1:0",
		"tidemark.admin.listener": ""}
	for key, value := range more {
		props[key] = value
	}
	b, err := Start(t.Context(), Options{Properties: props})
	if err == nil {
		stopBroker(t, b)
		t.Fatal("the broker started")
	}
	if !strings.Contains(err.Error(), c.want) {
		t.Errorf("got %q, want a reason with %q", err, c.want)
	}
	runNamedCommand(t, err)
	if after := treeHash(t, dirs...); after != before {
		t.Error("the refused directory was changed")
	}
}

// What a newer Kafka may have written is not led.
func TestUnknownMetadataIsRefusedUntouched(t *testing.T) {
	level := func(name string, level int16) func(t *testing.T) []byte {
		return func(t *testing.T) []byte { return featureLevel(t, name, level) }
	}
	value := func(b ...byte) func(t *testing.T) []byte { return func(*testing.T) []byte { return b } }
	for _, c := range []struct {
		name   string
		record func(t *testing.T) []byte
		want   string
	}{
		{"record", value(1, 99, 0, 0), "record type 99"},
		{"version of a record", value(1, byte(metadata.KindTopic), 9, 0), "TOPIC_RECORD, version 9"},
		{"metadata.version", level("metadata.version", metadata.MaxFollowedMetadataVersion+1),
			"metadata.version 34 is outside"},
		{"feature level", level("transaction.version", 7), "transaction.version has level 7"},
		{"feature", level("mirror.version", 1), "mirror.version (level 1) is not known"},
	} {
		t.Run(c.name, refusedCase{"", []string{"d"}, func(t *testing.T, dirs []string) ([]string, map[string]string) {
			appendMetadata(t, dirs[0], c.record(t))
			return dirs, nil
		}, c.want}.check)
	}
}

// A directory that is not this node's alone is not led.
func TestWhatIsNotOursAloneIsRefusedUntouched(t *testing.T) {
	for _, c := range []refusedCase{
		{"strays at the adoption", nil, func(t *testing.T, _ []string) ([]string, map[string]string) {
			return []string{kafkaDir(t, true)}, nil
		}, "ghost-3"},
		{"a broker without the controller role", []string{"d"}, func(_ *testing.T, dirs []string) ([]string,
			map[string]string) {
			return dirs, map[string]string{"process.roles": "broker", "controller.quorum.voters": "9@127.0.0.1:9093",
				"controller.listener.names": "CONTROLLER"}
		}, "without the controller role"},
		{"partitions without metadata", []string{"d"}, func(t *testing.T, dirs []string) ([]string, map[string]string) {
			if err := os.RemoveAll(filepath.Join(dirs[0], "__cluster_metadata-0")); err != nil {
				t.Fatal(err)
			}
			return dirs, nil
		}, "new, empty cluster"},
		{"another node.id", []string{"d"}, func(_ *testing.T, dirs []string) ([]string, map[string]string) {
			return dirs, map[string]string{"node.id": "7"}
		}, "does not match node.id 1"},
		{"several voters", []string{"d"}, func(t *testing.T, dirs []string) ([]string, map[string]string) {
			write(t, filepath.Join(dirs[0], "__cluster_metadata-0", "quorum-state"), `{"clusterId":"","leaderId":2,`+
				`"leaderEpoch":9,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2},`+
				`{"voterId":3}],"data_version":0}`)
			return dirs, nil
		}, "voters [1 2 3]"},
		{"a log directory left out", []string{"d", "e"}, func(_ *testing.T, dirs []string) ([]string, map[string]string) {
			return dirs[:1], nil
		}, "not among those given"},
		{"directories of two clusters", []string{"d", "e"}, func(t *testing.T, dirs []string) ([]string, map[string]string) {
			path := filepath.Join(dirs[1], "meta.properties")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			line := strings.Index(string(text), "cluster.id=")
			write(t, path, string(text[:line])+"cluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n")
			return dirs, nil
		}, "AAAAAAAAAAAAAAAAAAAAAQ"},
		{"ZooKeeper mode", []string{"d"}, func(t *testing.T, dirs []string) ([]string, map[string]string) {
			write(t, filepath.Join(dirs[0], "meta.properties"), "version=0\nbroker.id=1\ncluster.id=x\n")
			return dirs, map[string]string{"node.id": "1"}
		}, "version"},
		{"metadata without meta.properties", []string{"d"}, func(t *testing.T, dirs []string) ([]string, map[string]string) {
			if err := os.Remove(filepath.Join(dirs[0], "meta.properties")); err != nil {
				t.Fatal(err)
			}
			return dirs, nil
		}, "says whose it is"},
	} {
		t.Run(c.name, c.check)
	}
}

// runNamedCommand does what the command line in a refusal does: partitions are served.
func runNamedCommand(t *testing.T, err error) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.HasSuffix(err.Error(), ": "+ReadOnlyCommand(refused.Dirs)) {
		t.Fatalf("no command is named: %v", err)
	}
	b := startReadOnly(t, refused.Dirs...)
	if len(b.found.places) == 0 {
		t.Error("nothing is served")
	}
	for tp := range b.found.places {
		if p, err := b.replicas.Partition(tp.Topic, tp.Partition); err != nil || p.State().Leader != b.config().NodeID {
			t.Errorf("%s is not served: %v", tp, err)
		}
	}
}

// Folders of partitions that the metadata does not know are renamed at the first start after another program's only
// when that is wanted; a directory of this program's needs no word for it.
func TestStraysAfterAdoption(t *testing.T) {
	dir := kafkaDir(t, true)
	strays := func() (n int) {
		for _, e := range must(os.ReadDir(dir)) {
			if strings.HasPrefix(e.Name(), "ghost-3.") && strings.HasSuffix(e.Name(), "-stray") {
				n++
			}
		}
		return n
	}
	start := func(accept bool) error {
		b, err := Start(t.Context(), Options{AcceptStrays: accept, Properties: map[string]string{"log.dirs": dir,
			"listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
		if err == nil {
			stopBroker(t, b)
		}
		return err
	}
	if err := start(false); !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), "--accept-strays") ||
		strays() != 0 {
		t.Errorf("started with %v, %d strays", err, strays())
	}
	if err := start(true); err != nil || strays() != 1 {
		t.Errorf("not started though strays are accepted: %v, %d strays", err, strays())
	}
	if err := os.CopyFS(filepath.Join(dir, "ghost-3"), os.DirFS(filepath.Join(dir, "t-a-0"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "ghost-3", "partition.metadata"), "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZw")
	if err := start(false); err != nil || strays() != 2 {
		t.Errorf("the second start: %v, %d strays", err, strays())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestReplicasElsewhereAreRefused(t *testing.T) {
	b := startBroker(t, t.TempDir(), nil)
	for _, c := range []struct {
		name     string
		replicas []int32
		refused  bool
	}{{"ours", []int32{1}, false}, {"shared", []int32{1, 2}, true}, {"another's", []int32{2}, true}} {
		d := metadata.NewDelta(metadata.NewImage())
		for _, body := range []metadata.Body{
			&metadata.TopicRecord{Name: "a", TopicID: metadata.UUID{1}},
			&metadata.PartitionRecord{TopicID: metadata.UUID{1}, Replicas: c.replicas, ISR: c.replicas,
				Leader: c.replicas[0]},
		} {
			if err := d.Replay(metadata.Record{Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		var refused *RefusedError
		if err := b.proveAlone(d.Image()); errors.As(err, &refused) != c.refused {
			t.Errorf("%s: got %v, refused should be %v", c.name, err, c.refused)
		}
	}
}

func TestPartitionsTellTheirLogDirectory(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "e")}
	b := startBroker(t, strings.Join(dirs, ","), nil)
	if _, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), 4, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	told := func() (n int) {
		for id, p := range b.quorum.Image().Topic("a").Partitions() {
			name := checkpoint.TopicPartition{Topic: "a", Partition: id}
			if dir, ok := b.dirs.DirectoryOf(name); ok && p.Directories[0] == metadata.UUID(dir.ID) {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); told() < 4 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := told(); n != 4 {
		t.Errorf("%d of 4 partitions have told their log directory", n)
	}
}
