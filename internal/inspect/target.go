package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/vfs"
)

// Names of a log directory that belong to no package below.
const (
	lockFile       = ".lock"
	metadataFolder = "__cluster_metadata-0"
	bootstrapFile  = "bootstrap.checkpoint"
)

// Target is one partition's folder, or some files of it.
type Target struct {
	Dir       string `json:"dir"` // the partition's folder
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// LogDir is the log directory around the folder, "" when the folder stands alone.
	LogDir string `json:"logDir,omitempty"`
	// Mark is "delete", "future" or "stray" for a folder so marked.
	Mark string `json:"mark,omitempty"`
	// Segments are the base offsets of the segments meant; nil: all.
	Segments []int64 `json:"segments,omitempty"`

	whole bool // the log directory as a whole was named
}

// Name is the partition as "topic-partition".
func (t Target) Name() string { return fmt.Sprintf("%s-%d", t.Topic, t.Partition) }

// isMetadata reports whether the target is the metadata log of a node.
func (t Target) isMetadata() bool { return filepath.Base(t.Dir) == metadataFolder }

// wants reports whether a segment is meant.
func (t Target) wants(base int64) bool {
	return t.Segments == nil || slices.Contains(t.Segments, base)
}

// Resolve finds the partitions that paths mean, in the order of the paths and, within a log directory, by name. A path
// is a log directory, a partition's folder, or a file in one; what is named twice counts once. Folders of a log
// directory whose names say that their files wait for removal are left out. Errors: *fs.PathError, or one that says why
// a path is none of these.
func Resolve(fsys vfs.FS, paths []string) ([]Target, error) {
	var out []Target
	for _, path := range paths {
		info, err := fsys.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			if out, err = addFile(fsys, out, path); err != nil {
				return nil, err
			}
			continue
		}
		found, err := resolveDir(fsys, filepath.Clean(path))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return once(out), nil
}

// once leaves out what was named before: a folder twice, or a partition and the log directory around it.
func once(all []Target) []Target {
	at := make(map[string]int, len(all))
	out := all[:0]
	for _, t := range all {
		i, twice := at[absolute(t.Dir)]
		if !twice {
			at[absolute(t.Dir)] = len(out)
			out = append(out, t)
			continue
		}
		before := &out[i]
		before.whole = before.whole || t.whole
		if before.Segments == nil || t.Segments == nil {
			before.Segments = nil
			continue
		}
		for _, base := range t.Segments {
			if !before.wants(base) {
				before.Segments = append(before.Segments, base)
			}
		}
	}
	return out
}

func resolveDir(fsys vfs.FS, path string) ([]Target, error) {
	if _, err := fsys.Stat(filepath.Join(path, checkpoint.LeaderEpochFile)); err == nil {
		return []Target{partitionTarget(fsys, path)}, nil // without a listing, which may be long
	}
	entries, err := fsys.ReadDir(path)
	if err != nil {
		return nil, err
	}
	if isPartition(entries) {
		return []Target{partitionTarget(fsys, path)}, nil
	}
	var out []Target
	for _, e := range entries {
		name, ok := parseFolder(e.Name())
		if !e.IsDir() || !ok || name.mark == "delete" {
			continue
		}
		out = append(out, Target{
			Dir: filepath.Join(path, e.Name()), Topic: name.topic, Partition: name.partition, Mark: name.mark, LogDir: path,
			whole: true,
		})
	}
	if len(out) > 0 || isLogDir(entries) {
		return out, nil
	}
	if _, ok := parseFolder(filepath.Base(absolute(path))); ok {
		return []Target{partitionTarget(fsys, path)}, nil
	}
	return nil, fmt.Errorf("%s: neither a partition's folder nor a log directory (no .log file, no folder TOPIC-N)", path)
}

// isPartition recognises a partition's folder by what is in it.
func isPartition(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, kind, numbered := splitName(e.Name())
		return !e.IsDir() && (numbered && segmentKind(kind) ||
			e.Name() == checkpoint.PartitionMetadataFile || e.Name() == checkpoint.LeaderEpochFile)
	})
}

func segmentKind(kind string) bool {
	for _, k := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
		if strings.HasPrefix(kind, k) {
			return true
		}
	}
	return kind == producerstate.SnapshotSuffix
}

func isLogDir(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == checkpoint.MetaPropertiesFile || e.Name() == checkpoint.RecoveryPointFile || e.Name() == lockFile
	})
}

// partitionTarget describes a folder named by itself. The folder around it counts as its log directory when it looks
// like one.
func partitionTarget(fsys vfs.FS, path string) Target {
	t := Target{Dir: path, Topic: filepath.Base(absolute(path))}
	if name, ok := parseFolder(t.Topic); ok {
		t.Topic, t.Partition, t.Mark = name.topic, name.partition, name.mark
	}
	parent := filepath.Dir(absolute(path))
	if entries, err := fsys.ReadDir(parent); err == nil && isLogDir(entries) {
		t.LogDir = parent
	}
	return t
}

// absolute is the path from the root, or as given where that cannot be told.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// addFile adds a file's segment, to the target before when that is of the same folder.
func addFile(fsys vfs.FS, out []Target, path string) ([]Target, error) {
	base, kind, ok := splitName(filepath.Base(path))
	if !ok || !segmentKind(kind) {
		return nil, fmt.Errorf("%s: not a file of a partition (NNNNNNNNNNNNNNNNNNNN.log, .index, …)", path)
	}
	dir := filepath.Dir(path)
	if n := len(out); n > 0 && out[n-1].Dir == dir && out[n-1].Segments != nil {
		if !out[n-1].wants(base) {
			out[n-1].Segments = append(out[n-1].Segments, base)
		}
		return out, nil
	}
	t := partitionTarget(fsys, dir)
	t.Segments = []int64{base}
	return append(out, t), nil
}

// splitName takes a name of 20 digits and a suffix apart.
func splitName(name string) (base int64, kind string, ok bool) {
	digits, _, found := strings.Cut(name, ".")
	if !found || len(digits) != 20 {
		return 0, "", false
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || base < 0 || digits[0] == '+' {
		return 0, "", false
	}
	return base, name[len(digits):], true
}

type folderName struct {
	topic     string
	partition int32
	mark      string
}

// parseFolder splits the name of a partition's folder.
func parseFolder(name string) (f folderName, ok bool) {
	for _, mark := range []string{"delete", "future", "stray"} {
		if rest, found := strings.CutSuffix(name, "-"+mark); found {
			dot := strings.LastIndexByte(rest, '.')
			if dot < 0 {
				return f, false
			}
			name, f.mark = rest[:dot], mark
			break
		}
	}
	dash := strings.LastIndexByte(name, '-')
	if dash <= 0 {
		return f, false
	}
	id, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil || id < 0 {
		return f, false
	}
	f.topic, f.partition = name[:dash], int32(id)
	return f, true
}

// folder is what one reading of a partition's folder showed.
type folder struct {
	logs      []int64             // base offsets with a .log, ascending
	files     map[int64]fileKinds // by base
	snapshots []int64             // ascending
	others    []string            // every other name
}

func readFolder(fsys vfs.FS, dir string) (*folder, error) {
	f := &folder{files: make(map[int64]fileKinds)}
	err := vfs.EachEntry(fsys, dir, func(e fs.DirEntry) error {
		base, kind, ok := splitName(e.Name())
		switch {
		case e.IsDir():
			f.others = append(f.others, e.Name()+string(filepath.Separator))
		case ok && kind == producerstate.SnapshotSuffix:
			f.snapshots = append(f.snapshots, base)
		case !ok || !plainKind(kind):
			f.others = append(f.others, e.Name())
		default:
			f.files[base] |= kindOf(kind)
			if kind == segment.LogSuffix {
				f.logs = append(f.logs, base)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(f.logs)
	slices.Sort(f.snapshots)
	slices.Sort(f.others)
	return f, nil
}

// fileKinds says which files of a segment are there: the indexes, as [segment.Present] has them, and the log.
type fileKinds segment.Present

const hasLog fileKinds = 1 << 31

func (k fileKinds) has(suffix string) bool { return k&kindOf(suffix) != 0 }

// indexes are those that are there.
func (k fileKinds) indexes() segment.Present { return segment.Present(k &^ hasLog) }

// kindOf is the flag of a plain suffix, 0 for others.
func kindOf(suffix string) fileKinds {
	switch suffix {
	case segment.LogSuffix:
		return hasLog
	case segment.IndexSuffix:
		return fileKinds(segment.HasIndex)
	case segment.TimeSuffix:
		return fileKinds(segment.HasTime)
	case segment.TxnSuffix:
		return fileKinds(segment.HasTxn)
	}
	return 0
}

func plainKind(kind string) bool { return kindOf(kind) != 0 }

// nextBase is the base offset of the segment behind i; -1 for the last.
func (f *folder) nextBase(i int) int64 {
	if i+1 < len(f.logs) {
		return f.logs[i+1]
	}
	return -1
}

// InUse reports whether a process holds the lock of a target's log directory, and which (0: not known).
func InUse(fsys vfs.FS, t Target) (held bool, pid int, err error) {
	if t.LogDir == "" {
		return false, 0, nil
	}
	l, err := vfs.Locked(fsys, filepath.Join(t.LogDir, lockFile))
	if err != nil || l == nil {
		return false, 0, err
	}
	return true, l.PID, nil
}

// fileSize is the length of a file, -1 when it is absent.
func fileSize(fsys vfs.FS, name string) (int64, error) {
	info, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// SizeBytes is the total size of the .log files that targets mean, as far as it can be told.
func SizeBytes(fsys vfs.FS, targets []Target) (total int64) {
	for _, t := range targets {
		f, err := readFolder(fsys, t.Dir)
		if err != nil {
			continue
		}
		for _, base := range f.logs {
			if size, err := fileSize(fsys, filepath.Join(t.Dir, segment.Name(base, segment.LogSuffix))); err == nil &&
				t.wants(base) {
				total += max(size, 0)
			}
		}
	}
	return total
}
