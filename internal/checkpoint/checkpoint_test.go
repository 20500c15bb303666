package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/test/golden"
	"tidemark/vfs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// disk is what most tests write to.
var disk = vfs.NewMem()

// files counts those that write made.
var files atomic.Int64

// write makes a file of its own on disk.
func write(t testing.TB, content string) string {
	t.Helper()
	name := fmt.Sprintf("/file%d", files.Add(1))
	must(t, vfs.WriteFileAtomic(disk, name, []byte(content)))
	return name
}

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := vfs.ReadFile(disk, name)
	must(t, err)
	return string(data)
}

func TestReadOffsets(t *testing.T) {
	for content, want := range map[string]Offsets{
		"":                    {},
		"0\n":                 {},
		"0\n0\n":              {},
		"0\n1\na-b.c 2 7\n":   {{"a-b.c", 2}: 7},
		"0\n1\na 2 7":         {{"a", 2}: 7},
		"0\r\n1\r\na 2 7\r\n": {{"a", 2}: 7},
		"0\n2\na\t1  9223372036854775807 \na 2 +7\n": {{"a", 1}: 1<<63 - 1, {"a", 2}: 7},
	} {
		got, err := ReadOffsets(disk, write(t, content))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v %v", content, got, err)
		}
	}
	got, err := ReadOffsets(disk, "/absent")
	if err != nil || len(got) != 0 {
		t.Errorf("absent: %v %v", got, err)
	}
}

func TestMalformedOffsets(t *testing.T) {
	for content, line := range map[string]int{
		"\n":                              1,
		"1\n0\n":                          1,
		"junk":                            1,
		"0\nx\n":                          2,
		"0\n2\na 0 1\n":                   2,
		"0\n0\na 0 1\n":                   2,
		"0\n1\n":                          2,
		"0\n1\na 0\n":                     3,
		"0\n1\na 0 1 2\n":                 3,
		"0\n1\n a 0 1\n":                  3,
		"0\n1\na x 1\n":                   3,
		"0\n1\na 2147483648 1":            3,
		"0\n1\na 0 9223372036854775808\n": 3,
		"0\n2\na 0 1\n\n":                 4,
	} {
		name := write(t, content)
		_, err := ReadOffsets(disk, name)
		var m *MalformedError
		if !errors.As(err, &m) || m.Line != line || m.File != name || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want line %d", content, err, line)
		}
	}
	name := write(t, "junk")
	_, err := ReadOffsets(disk, name)
	if want := "Malformed line in checkpoint file [" + name + "]: junk"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestWriteOffsets(t *testing.T) {
	name := write(t, "old")
	o := Offsets{{"b", 0}: 3, {"a", 10}: 2, {"a", 9}: 1}
	must(t, WriteOffsets(disk, name, o))
	if got, want := read(t, name), "0\n3\na 9 1\na 10 2\nb 0 3\n"; got != want {
		t.Errorf("%q", got)
	}
	got, err := ReadOffsets(disk, name)
	if err != nil || !maps.Equal(got, o) {
		t.Errorf("%v %v", got, err)
	}
	if (TopicPartition{"a-b", 7}).String() != "a-b-7" {
		t.Error("name of a partition")
	}
}

func TestPartitionMetadata(t *testing.T) {
	id, err := ParseID("KRwNKRL8S1ak-pCSOjUjWA")
	must(t, err)
	name := write(t, "")
	must(t, WritePartitionMetadata(disk, name, id))
	if got, want := read(t, name), "version: 0\ntopic_id: KRwNKRL8S1ak-pCSOjUjWA"; got != want || len(got) != 43 {
		t.Errorf("%q", got)
	}
	got, err := ReadPartitionMetadata(disk, name)
	if err != nil || got != id || FormatID(got) != "KRwNKRL8S1ak-pCSOjUjWA" {
		t.Errorf("%v %v", got, err)
	}
	for content, line := range map[string]int{
		"":           1,
		"version: 0": 2,
		"version: 1\ntopic_id: KRwNKRL8S1ak-pCSOjUjWA": 1,
		"version 0\ntopic_id: KRwNKRL8S1ak-pCSOjUjWA":  1,
		"version: 0\ntopic_id KRwNKRL8S1ak-pCSOjUjWA":  2,
		"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA": 2,
		"version: 0\ntopic_id: short":                  2,
	} {
		_, err := ReadPartitionMetadata(disk, write(t, content))
		var m *MalformedError
		if !errors.As(err, &m) || m.Line != line {
			t.Errorf("%q: %v, want line %d", content, err, line)
		}
	}
	if _, err := ReadPartitionMetadata(disk, name+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestMetaProperties(t *testing.T) {
	const kafka = "#\n#Mon Nov 30 03:23:01 UTC 2026\nnode.id=1\ndirectory.id=IvE2zWH97UseYDq1mNCPAQ\nversion=1\n" +
		"cluster.id=4L6g3nShT-eMCtK--X86sw\n"
	m, err := ReadMetaProperties(disk, write(t, kafka))
	must(t, err)
	if m.NodeID != 1 || m.ClusterID != "4L6g3nShT-eMCtK--X86sw" || FormatID(m.DirectoryID) != "IvE2zWH97UseYDq1mNCPAQ" {
		t.Errorf("%+v", m)
	}
	name := write(t, "")
	must(t, WriteMetaProperties(disk, name, m, time.Date(2026, 11, 30, 3, 23, 1, 0, time.UTC)))
	if got := read(t, name); got != kafka {
		t.Errorf("%q", got)
	}
	odd := MetaProperties{ClusterID: " #a=b:c\\d\té $${x}", NodeID: 7}
	must(t, WriteMetaProperties(disk, name, odd, time.Unix(0, 0)))
	if got, err := ReadMetaProperties(disk, name); err != nil || got != odd {
		t.Errorf("%+v %v", got, err)
	}
	for _, content := range []string{"", "version=1\nnode.id=1", "version=1\ncluster.id=x", "node.id=1\ncluster.id=x",
		"version=0\nnode.id=1\ncluster.id=x", "version=1\nnode.id=-1\ncluster.id=x", "version=1\nnode.id=x\ncluster.id=x",
		"version=1\nnode.id=1\ncluster.id=x\ndirectory.id=y", "version=1\nnode.id=\\u12"} {
		var m *MalformedError
		if got, err := ReadMetaProperties(disk, write(t, content)); !errors.As(err, &m) {
			t.Errorf("%q: %+v %v", content, got, err)
		}
	}
}

func TestCleanShutdown(t *testing.T) {
	const dir = "/"
	if got, err := TakeCleanShutdown(disk, dir); err != nil || got != (CleanShutdown{BrokerEpoch: -1}) {
		t.Errorf("%+v %v", got, err)
	}
	must(t, WriteCleanShutdown(disk, dir, 13))
	name := filepath.Join(dir, CleanShutdownFile)
	if got := read(t, name); got != `{"version":0,"brokerEpoch":13}` {
		t.Errorf("%q", got)
	}
	if got, err := TakeCleanShutdown(disk, dir); err != nil || got != (CleanShutdown{true, 13}) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := disk.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("still there")
	}
	for _, content := range []string{"", "junk", `{"version":1,"brokerEpoch":13}`, `{"version":0}`,
		`{"brokerEpoch":1}`, "[]"} {
		must(t, vfs.WriteFileAtomic(disk, name, []byte(content)))
		if got, err := TakeCleanShutdown(disk, dir); err != nil || got != (CleanShutdown{true, -1}) {
			t.Errorf("%q: %+v %v", content, got, err)
		}
	}
}

// All small files of all cases read, and are written again as they were.
func TestGoldenFiles(t *testing.T) {
	seen := map[string]int{}
	err := filepath.WalkDir(golden.Dir(), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(p, "/expect/") {
			return err
		}
		seen[d.Name()]++
		want, err := os.ReadFile(p)
		must(t, err)
		p, again := write(t, string(want)), write(t, "")
		switch d.Name() {
		case LeaderEpochFile:
			l, err := OpenLeaderEpochs(disk, p)
			must(t, err)
			must(t, NewLeaderEpochs(disk, again, l.Entries()).Flush())
		case PartitionMetadataFile:
			id, err := ReadPartitionMetadata(disk, p)
			must(t, err)
			must(t, WritePartitionMetadata(disk, again, id))
		case RecoveryPointFile, HighWatermarkFile, LogStartOffsetFile, CleanerOffsetFile:
			o, err := ReadOffsets(disk, p)
			must(t, err)
			must(t, WriteOffsets(disk, again, o))
			if strings.Count(string(want), "\n") != len(o)+2 {
				t.Errorf("%s: %d entries of %q", d.Name(), len(o), want)
			}
			return nil // the order of the lines is that of a hash map
		default:
			return nil
		}
		if got := read(t, again); len(want) > 0 && got != string(want) {
			t.Errorf("%s: %q, want %q", d.Name(), got, want)
		}
		return nil
	})
	must(t, err)
	for name, least := range map[string]int{LeaderEpochFile: 70, PartitionMetadataFile: 70, RecoveryPointFile: 1,
		HighWatermarkFile: 1, LogStartOffsetFile: 1} {
		if seen[name] < least {
			t.Errorf("%s: %d files", name, seen[name])
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("0\n1\na 0 1\n")
	f.Add("0\n1\n0 0\n")
	f.Add("version: 0\ntopic_id: KRwNKRL8S1ak-pCSOjUjWA")
	f.Add("#\n#x\nnode.id=1\ndirectory.id=IvE2zWH97UseYDq1mNCPAQ\nversion=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n")
	f.Add(`{"version":0,"brokerEpoch":13}`)
	f.Fuzz(func(t *testing.T, s string) {
		var m *MalformedError
		o := make(Offsets)
		if err := parseText("f", s, 3, o.parse); err != nil && !errors.As(err, &m) {
			t.Error(err)
		}
		err := parseText("f", s, 2, func(f []string) error { _, err := parseEpochEntry(f); return err })
		if err != nil && !errors.As(err, &m) {
			t.Error(err)
		}
		if id, err := parsePartitionMetadata("f", s); err != nil && !errors.As(err, &m) {
			t.Error(err)
		} else if err == nil && id == [16]byte{} {
			t.Error("an id of zeros")
		}
		if p, err := parseMetaProperties([]byte(s)); err == nil && p.NodeID < 0 {
			t.Errorf("%+v", p)
		}
		parseCleanShutdown([]byte(s))
	})
}
