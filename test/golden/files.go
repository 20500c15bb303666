package golden

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"tidemark/vfs"
)

// File is one file of a folder as Kafka left it.
type File struct {
	Name      string `json:"file"` // relative to the partition's folder; for 13, to the case
	SizeBytes int64  `json:"size"`
	SHA256    string `json:"sha256"`   // hex; empty where not said
	MtimeMs   int64  `json:"mtime_ms"` // 0 where not said
}

// Files returns files.tsv (the folder after the clean stop) or files-live.tsv (before it).
func (c Case) Files(t testing.TB, name string) []File {
	t.Helper()
	tab := c.table(t, name)
	nameColumn := "file"
	if _, whole := tab.columns["path"]; whole {
		nameColumn = "path"
	}
	var out []File
	for _, row := range tab.rows {
		f := File{Name: tab.str(row, nameColumn), SizeBytes: tab.num(row, "size")}
		if _, ok := tab.columns["sha256"]; ok {
			f.SHA256 = tab.str(row, "sha256")
			f.MtimeMs, _ = tab.opt(row, "mtime_ms")
		}
		out = append(out, f)
	}
	return out
}

// AfterStart is after.json: what Kafka made of the folder of a 10-* case.
type AfterStart struct {
	LogEndOffset     int64  `json:"log_end_offset"`
	Error            string `json:"error"`
	LeaderEpoch      int32  `json:"leader_epoch"`
	LastStableOffset int64  `json:"last_stable_offset"`
	LogStartOffset   int64  `json:"log_start_offset"`
	FilesRunning     []File `json:"files_running"`
	FilesClosed      []File `json:"files_closed"`
	// Only where Kafka refused to start:
	FilesRefused  []File `json:"files_after_refused_start"`
	ExitStatus    int    `json:"broker_exit_status"`
	MarkerRefused bool   `json:"clean_shutdown_marker_after_refused_start"`
}

// AfterStart reads after.json.
func (c Case) AfterStart(t testing.TB) AfterStart {
	t.Helper()
	var a AfterStart
	readJSON(t, filepath.Join(c.Path, "expect", "after.json"), &a)
	return a
}

// Mtimes returns the modification times in ms that the files of a tree had when Kafka was asked, as far as said.
// Kafka's look-ups fall back to them for a segment without a known timestamp.
func (c Case) Mtimes(t testing.TB, tree Tree) map[string]int64 {
	t.Helper()
	out := make(map[string]int64)
	if tree == Data {
		return out
	}
	if tree == Before {
		for name, ms := range c.Info.LogMtimesMs {
			out[name] = ms
		}
	}
	var files []File
	if _, ok := c.Expect("files.tsv"); ok {
		files = c.Files(t, "files.tsv")
	} else if _, ok := c.Expect("after.json"); ok && !c.Refused() && tree != Before {
		files = c.AfterStart(t).FilesClosed
	}
	for _, f := range files {
		if _, known := out[f.Name]; !known && f.MtimeMs != 0 {
			out[f.Name] = f.MtimeMs
		}
	}
	return out
}

// CopyDir copies a tree into a new temporary directory and returns the path of the copied partition folder (of log.dirs
// for Data). Its parent holds nothing else, so it serves as a data directory.
func (c Case) CopyDir(t testing.TB, tree Tree) string {
	t.Helper()
	name := c.PartitionName()
	if tree == Data {
		name = "data"
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(c.TreePath(t, tree))); err != nil {
		t.Fatalf("golden %s: %v", c.Name, err)
	}
	for file, ms := range c.Mtimes(t, tree) {
		mtime := time.UnixMilli(ms)
		err := os.Chtimes(filepath.Join(dir, file), mtime, mtime)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("golden %s: %v", c.Name, err)
		}
	}
	return dir
}

// CopyTo copies a tree into the directory dir of fsys, which is made, and sets the modification times that the case
// knows. Every file is synced, and so are the directories: a crash clone taken afterwards holds all of them.
func (c Case) CopyTo(t testing.TB, fsys vfs.FS, tree Tree, dir string) {
	t.Helper()
	from := c.TreePath(t, tree)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("golden %s: copy to %s: %v", c.Name, dir, err)
		}
	}
	must(fsys.MkdirAll(dir, 0o755))
	must(filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == from {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		to := path.Join(dir, filepath.ToSlash(rel))
		if d.IsDir() {
			return fsys.MkdirAll(to, 0o755)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return writeFile(fsys, to, data)
	}))
	for name, ms := range c.Mtimes(t, tree) {
		to := path.Join(dir, name)
		if _, err := fsys.Stat(to); err == nil {
			must(fsys.Chtimes(to, time.UnixMilli(ms)))
		}
	}
	must(fsys.SyncDir(dir))
	must(fsys.SyncDir(path.Dir(dir)))
}

func writeFile(fsys vfs.FS, name string, data []byte) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err = f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Sync()
}
