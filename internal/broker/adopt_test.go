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

// A directory that is not this node's alone is refused, with the reason, and not one byte of it changes.
func TestWhatIsNotOursAloneIsRefusedUntouched(t *testing.T) {
	for _, c := range []struct {
		name  string
		dirs  []string
		setUp func(t *testing.T, dirs []string) (start []string, more map[string]string)
		want  string
	}{
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
		t.Run(c.name, func(t *testing.T) {
			dirs := usedDirs(t, c.dirs...)
			start, more := c.setUp(t, dirs)
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
			if after := treeHash(t, dirs...); after != before {
				t.Error("the refused directory was changed")
			}
		})
	}
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
	for deadline := time.Now().Add(10 * time.Second); told() < 4 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := told(); n != 4 {
		t.Errorf("%d of 4 partitions have told their log directory", n)
	}
}
